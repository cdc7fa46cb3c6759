"""An S3-compatible bucket: small objects, each written with one request."""

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

import obstore
from msgspec import Struct
from obstore.exceptions import BaseError
from obstore.store import S3Store

if TYPE_CHECKING:
    from obstore.store import S3Config

REQUEST_SECONDS = 30
CONNECT_SECONDS = 5
RETRY_SECONDS = 20
MAX_RETRIES = 3
MAX_REASON_LENGTH = 300
USUAL_REGION = "us-east-1"


class BucketFailed(Exception):
    """The bucket did not do what was asked, also after some retries."""


class BucketAddress(Struct, frozen=True):
    """Where a bucket is, and the key to it."""

    endpoint: str
    bucket: str
    prefix: str
    region: str
    access_key: str | None
    secret_key: str | None


def parse_address(url: str) -> BucketAddress:
    """The parts of SAPA_FILES_URL."""
    parts = urlsplit(url)
    bucket, _, prefix = parts.path.strip("/").partition("/")
    return BucketAddress(
        endpoint=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
        bucket=bucket,
        prefix=prefix,
        region=parse_qs(parts.query).get("region", [USUAL_REGION])[0],
        access_key=unquote(parts.username) if parts.username else None,
        secret_key=unquote(parts.password) if parts.password else None,
    )


class Bucket:
    """Objects by their keys, below the prefix that the operator chose."""

    def __init__(self, address: BucketAddress) -> None:
        self._address = address
        self._opened: S3Store | None = None

    async def put(self, key: str, data: bytes) -> None:
        try:
            await obstore.put_async(self._open(), key, data, use_multipart=False)
        except (BaseError, OSError) as error:
            raise _build_failure(error) from None

    async def get(self, key: str) -> bytes:
        try:
            found = await obstore.get_async(self._open(), key)
            return bytes(await found.bytes_async())
        except (BaseError, OSError) as error:
            raise _build_failure(error) from None

    async def delete_all(self, folder: str) -> None:
        """All objects whose keys start with this, which ends in a slash."""
        try:
            keys = await self.list_keys(folder)
            if keys:
                await obstore.delete_async(self._open(), keys)
        except (BaseError, OSError) as error:
            raise _build_failure(error) from None

    async def list_keys(self, folder: str | None = None) -> list[str]:
        try:
            return [item["path"] async for batch in obstore.list(self._open(), folder) for item in batch]
        except (BaseError, OSError) as error:
            raise _build_failure(error) from None

    def _open(self) -> S3Store:
        if self._opened is None:
            self._opened = _open_store(self._address)
        return self._opened


def _open_store(address: BucketAddress) -> S3Store:
    """Without a key, the machine's own credentials are used: the AWS variables, or the instance's role."""
    config: S3Config = {
        "endpoint": address.endpoint,
        "region": address.region,
        "virtual_hosted_style_request": False,
        "disable_bulk_delete": True,  # not every server has it
    }
    if address.access_key and address.secret_key:
        config |= {"access_key_id": address.access_key, "secret_access_key": address.secret_key}
    return S3Store(
        address.bucket,
        prefix=address.prefix or None,
        config=config,
        client_options={
            "allow_http": address.endpoint.startswith("http://"),
            "timeout": timedelta(seconds=REQUEST_SECONDS),
            "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
        },
        retry_config={"max_retries": MAX_RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
    )


def _build_failure(error: Exception) -> BucketFailed:
    """The first line: the rest of the library's message is for its authors."""
    return BucketFailed((str(error).strip() or type(error).__name__).splitlines()[0][:MAX_REASON_LENGTH])
