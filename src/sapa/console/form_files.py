"""The files of a form, as the API takes them."""

from collections.abc import AsyncIterator

from starlette.datastructures import UploadFile

from sapa.console.page_request import PageRequest
from sapa.http.uploads import FileStream

PIECE_BYTES = 65_536


def list_files(page: PageRequest, name: str = "files") -> list[UploadFile]:
    """Those that were chosen."""
    return [file for file in page.form.getlist(name) if isinstance(file, UploadFile) and file.filename]


def open_stream(page: PageRequest, file: UploadFile) -> FileStream:
    return FileStream(_read_pieces(file), page.context.settings.files.max_bytes, file.size)


async def _read_pieces(file: UploadFile) -> AsyncIterator[bytes]:
    while piece := await file.read(PIECE_BYTES):
        yield piece
