"""Runs the conversion of a file in its own process, so that no file can stop this one."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec

from sapa.imports import converter_process
from sapa.imports.conversion import FileReading, ImportPreview
from sapa.imports.converter_process import END, ConversionFailure, ConversionRefusal, ConversionRequest
from sapa.imports.types import UnusableFile

PREVIEW_SECONDS = 20
UPLOAD_SECONDS = 120
"""Of CPU time, for a file of 32 MiB."""
MAX_LINE_BYTES = 8 * 1_048_576
PIECE = 1_048_576

Write = Callable[[bytes], Awaitable[None]]

_OWN_VARIABLES = "SAPA_"
_END_LINE = END.rstrip(b"\n")


async def convert_file(path: Path, reading: FileReading, write: Write, seconds: int | None = None) -> int:
    """Writes the converted file in pieces and returns its size; raises UnusableFile with what is wrong with it.

    `seconds` limit the CPU time.
    """
    size, pending = 0, bytearray()
    async for line in _run(path, reading, is_preview=False, seconds=seconds):
        pending += line
        if len(pending) >= PIECE:
            size += len(pending)
            await write(bytes(pending))
            pending.clear()
    if pending:
        await write(bytes(pending))
    return size + len(pending)


async def preview_file(path: Path, reading: FileReading) -> ImportPreview:
    """Raises UnusableFile. The source may be `auto`."""
    async for line in _run(path, reading, is_preview=True, seconds=PREVIEW_SECONDS):
        return msgspec.json.decode(line, type=ImportPreview)
    raise UnusableFile("The file cannot be read.")


async def _run(path: Path, reading: FileReading, *, is_preview: bool, seconds: int | None) -> AsyncIterator[bytes]:
    request = msgspec.json.encode(ConversionRequest(str(path), reading, is_preview, seconds))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_VARIABLES)}
    command = [sys.executable, "-m", converter_process.__name__]
    # What the process says when it runs out of memory is of no use to anybody.
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, limit=MAX_LINE_BYTES
    )
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the process that converts files has no pipes")
    try:
        process.stdin.write(request)
        process.stdin.close()
        async for line in _read_lines(process.stdout):
            yield line
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _read_lines(output: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """All but the last line, which says that the file is complete or why there is none."""
    while line := await output.readline():
        if line.rstrip(b"\n") == _END_LINE:
            return
        if line.startswith(b'{"refusal":'):
            raise UnusableFile(msgspec.json.decode(line, type=ConversionRefusal).refusal)
        if line.startswith(b'{"failure":'):
            raise RuntimeError(msgspec.json.decode(line, type=ConversionFailure).failure)
        yield line
    raise UnusableFile("Reading the file took too much time or memory. Split it, or save it as CSV and try again.")
