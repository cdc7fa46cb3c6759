"""`sapa mcp`: MCP for clients that start a program instead of calling a URL."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from typing import Annotated

import typer

from sapa.cli.signals import run_until_signal
from sapa.http.keys import is_well_formed
from sapa.mcp.bridge import Bridge
from sapa.settings import read_settings

CHUNK_BYTES = 65_536


def mcp(
    key: Annotated[str, typer.Option(envvar="SAPA_API_KEY", help="The API key, svc_…. Set the variable instead.")],
    server: Annotated[
        str | None, typer.Option(envvar="SAPA_BASE_URL", help="The installation's address. Defaults to this machine's.")
    ] = None,
    toolsets: Annotated[str, typer.Option(help="Only these sections of the API, such as orders,customers.")] = "",
    readonly: Annotated[bool, typer.Option("--readonly", help="Only tools that change nothing.")] = False,
) -> None:
    """Connect an AI agent whose client starts a program: MCP over standard input and output."""
    if not is_well_formed(key):
        raise typer.BadParameter("SAPA_API_KEY is not an API key: it begins with svc_live_ or svc_test_.")
    bridge = Bridge(server or read_settings().server.address, key, _write_line, toolsets, readonly)
    try:
        asyncio.run(run_until_signal(bridge.run(_read_lines())))
    except* BrokenPipeError:
        pass  # the client is gone


def _write_line(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


async def _read_lines() -> AsyncIterator[bytes]:
    """Standard input, read by a thread: it may be a file, which an event loop cannot wait for."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        # Not sys.stdin: its lock, held by a thread that waits, would break the end of the process.
        rest = b""
        while chunk := os.read(0, CHUNK_BYTES):
            *complete, rest = (rest + chunk).split(b"\n")
            for line in complete:
                loop.call_soon_threadsafe(lines.put_nowait, line + b"\n")
        loop.call_soon_threadsafe(lines.put_nowait, rest)
        loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()
    while line := await lines.get():
        yield line
