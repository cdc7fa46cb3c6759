"""Prints a request as a PDF: here in this process, or in one of its own for large files.

Run as a module it reads a request from standard input and writes the PDF to standard output. A process of its own
keeps the worker's event loop free: drawing 500 labels is seconds of computation.
"""

import asyncio
import sys
from collections.abc import Sequence
from io import BytesIO

import msgspec
from pypdf import PdfReader, PdfWriter

from sapa.shipping.labels.content import PrintRequest
from sapa.shipping.labels.label_pages import draw_labels
from sapa.shipping.labels.manifest_pages import draw_manifests
from sapa.shipping.labels.slip_pages import draw_slips

SECONDS = 120.0
DOCUMENTS = {"label": draw_labels, "packing_slip": draw_slips, "manifest": draw_manifests}

_read = msgspec.msgpack.Decoder(PrintRequest | list[bytes]).decode


class PrintFailed(Exception):
    """The printing process ended without a file."""


def draw(request: PrintRequest) -> bytes:
    return DOCUMENTS[request.document](request)


def join(files: Sequence[bytes]) -> bytes:
    """One file with the pages of all."""
    writer = PdfWriter()
    for content in files:
        writer.append(PdfReader(BytesIO(content)))
    joined = BytesIO()
    writer.write(joined)
    return joined.getvalue()


async def print_here(request: PrintRequest) -> bytes:
    """Few pages, in a thread."""
    return await asyncio.to_thread(draw, request)


async def print_apart(work: PrintRequest | Sequence[bytes]) -> bytes:
    """Many pages, or files to join, in a process of its own. Raises PrintFailed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(SECONDS):
            content, errors = await process.communicate(msgspec.msgpack.encode(work))
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        raise PrintFailed(errors.decode(errors="replace")[-1_000:])
    return content


def run() -> None:
    work = _read(sys.stdin.buffer.read())
    sys.stdout.buffer.write(draw(work) if isinstance(work, PrintRequest) else join(work))


if __name__ == "__main__":
    run()
