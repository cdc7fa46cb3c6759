"""An S3-compatible bucket: small objects, each written with one request."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar
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

Result = TypeVar("Result")


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
    """Objects by their keys, below the prefix that the operator chose.

    The library is called in threads. Its own coroutines would be completed by threads that Python does not know, and
    one of them may abort a process that is about to end.
    """

    def __init__(self, address: BucketAddress) -> None:
        self._address = address
        self._opened: S3Store | None = None

    async def put(self, key: str, data: bytes) -> None:
        await self._run(_put, key, data)

    async def get(self, key: str) -> bytes:
        return await self._run(_get, key)

    async def delete_all(self, folder: str) -> None:
        """All objects whose keys start with this, which ends in a slash."""
        await self._run(_delete_all, folder)

    async def list_keys(self, folder: str | None = None) -> list[str]:
        return await self._run(_list_keys, folder)

    async def _run(self, call: Callable[..., Result], *parameters: object) -> Result:
        if self._opened is None:
            self._opened = _open_store(self._address)
        try:
            return await asyncio.to_thread(call, self._opened, *parameters)
        except (BaseError, OSError) as error:
            raise _build_failure(error) from None


def _put(store: S3Store, key: str, data: bytes) -> None:
    obstore.put(store, key, data, use_multipart=False)


def _get(store: S3Store, key: str) -> bytes:
    return bytes(obstore.get(store, key).bytes())


def _delete_all(store: S3Store, folder: str) -> None:
    if keys := _list_keys(store, folder):
        obstore.delete(store, keys)


def _list_keys(store: S3Store, folder: str | None) -> list[str]:
    return [item["path"] for batch in obstore.list(store, folder) for item in batch]


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
