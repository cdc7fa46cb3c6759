"""A file in a form that is sent as it is read."""

from collections.abc import AsyncIterator

from aiohttp import AsyncIterablePayload


class FilePayload(AsyncIterablePayload):
    """Its size is known beforehand."""

    def __init__(self, content: AsyncIterator[bytes], size: int, media_type: str | None) -> None:
        super().__init__(content, content_type=media_type)
        self._bytes = size

    @property
    def size(self) -> int:
        return self._bytes
