"""A file in a form that is sent as it is read."""

from aiohttp import AsyncIterablePayload

from sapa.outbound.client import FormFile


class FilePayload(AsyncIterablePayload):
    def __init__(self, file: FormFile) -> None:
        super().__init__(file.content, content_type=file.media_type)
        self._bytes = file.size

    @property
    def size(self) -> int:
        return self._bytes
