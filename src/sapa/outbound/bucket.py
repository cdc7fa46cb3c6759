"""An S3-compatible bucket: small objects, each written with one request."""

from datetime import timedelta
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from sapa.settings import BucketSettings

if TYPE_CHECKING:
    from obstore.store import S3Config

REQUEST_SECONDS = 30
CONNECT_SECONDS = 5
RETRY_SECONDS = 20
MAX_RETRIES = 3
MAX_REASON_LENGTH = 300


class BucketFailed(Exception):
    """The bucket did not do what was asked, also after some retries."""


class Bucket:
    """Objects by their keys, below the prefix that the operator chose."""

    def __init__(self, settings: BucketSettings) -> None:
        self._settings = settings
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
            self._opened = _open_store(self._settings)
        return self._opened


def _open_store(settings: BucketSettings) -> S3Store:
    """Without a key, the machine's own credentials are used: the AWS variables, or the instance's role."""
    config: S3Config = {
        "endpoint": settings.endpoint,
        "region": settings.region,
        "virtual_hosted_style_request": False,
        "disable_bulk_delete": True,  # not every server has it
    }
    if settings.access_key and settings.secret_key:
        config |= {"access_key_id": settings.access_key, "secret_access_key": settings.secret_key}
    return S3Store(
        settings.bucket,
        prefix=settings.prefix or None,
        config=config,
        client_options={
            "allow_http": settings.endpoint.startswith("http://"),
            "timeout": timedelta(seconds=REQUEST_SECONDS),
            "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
        },
        retry_config={"max_retries": MAX_RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
    )


def _build_failure(error: Exception) -> BucketFailed:
    """The first line: the rest of the library's message is for its authors."""
    return BucketFailed((str(error).strip() or type(error).__name__).splitlines()[0][:MAX_REASON_LENGTH])
