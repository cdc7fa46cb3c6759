"""The lists and records of the first version, on this machine: what today's are compared with."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from bench.ground import plain_environment
from bench.history import unpack_version

COMMIT = "7f17393"
PROGRAM = Path(__file__).with_name("first_program.py")
COMPARED = {
    "orders", "orders, page 2", "orders, a tenth of the way down", "orders, filtered", "orders, a name searched for",
    "one order", "customers", "customers, a name searched for", "one customer", "products", "shipments", "wallets",
}  # fmt: skip


@asynccontextmanager
async def run_first_version(folder: Path, *numbers: int) -> AsyncIterator[Process | None]:
    """With a shop of so many orders, customers, products, shipments and messages; None without the history."""
    tree = unpack_version(COMMIT, folder)
    if tree is None:
        yield None
        return
    environment = plain_environment() | {"PYTHONPATH": f"{tree / 'src'}:{tree}"}
    command = [sys.executable, "-P", str(PROGRAM), str(tree / "run"), *map(str, numbers)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, cwd=tree, env=environment)
    try:
        await _read_line(process, b"ready")
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def time_pages(process: Process, first: int, number: int) -> dict[str, float]:
    """The median milliseconds of each page, over so many turns."""
    assert process.stdin is not None
    process.stdin.write(f"{first} {number}\n".encode())
    return msgspec.json.decode(await _read_line(process, b"{"), type=dict[str, float])


async def _read_line(process: Process, beginning: bytes) -> bytes:
    """The next line that begins so: it also says what it does."""
    assert process.stdout is not None
    async for line in process.stdout:
        if line.startswith(beginning):
            return line
    raise RuntimeError("the first version failed")
