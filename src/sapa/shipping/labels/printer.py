"""Prints a request as a PDF: here in this process, or in one of its own for large files.

A process of its own keeps the worker's event loop free: drawing 500 labels is seconds of computation.
"""

import asyncio
import sys
from collections.abc import Sequence
from importlib import import_module

import msgspec

from sapa.shipping.labels.content import PrintRequest

SECONDS = 120.0
DOCUMENTS = "sapa.shipping.labels.documents"
"""The module that draws. It is loaded with the first page, not with the process: see decision 39."""


class PrintFailed(Exception):
    """The printing process ended without a file."""


async def print_here(request: PrintRequest) -> bytes:
    """Few pages, in a thread."""
    return await asyncio.to_thread(_draw, request)


def _draw(request: PrintRequest) -> bytes:
    content: bytes = import_module(DOCUMENTS).draw(request)
    return content


async def print_apart(work: PrintRequest | Sequence[bytes]) -> bytes:
    """Many pages, or files to join, in a process of its own. Raises PrintFailed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", DOCUMENTS, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
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
