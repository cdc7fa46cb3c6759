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


class FirstVersion(msgspec.Struct, frozen=True):
    """Its pages, for somebody who is signed in."""

    address: str | None = None
    secret: str = ""
    turns: list[dict[str, str]] = []
    """The path of each page by its title, at every turn; nothing without the history."""


@asynccontextmanager
async def start_first_version(folder: Path, turns: int, *numbers: int) -> AsyncIterator[Process | None]:
    """With a shop of so many orders, customers, products, shipments and messages; None without the history."""
    tree = unpack_version(COMMIT, folder)
    if tree is None:
        yield None
        return
    environment = plain_environment() | {"PYTHONPATH": f"{tree / 'src'}:{tree}"}
    command = [sys.executable, "-P", str(PROGRAM), str(tree / "run"), str(turns), *map(str, numbers)]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, cwd=tree, env=environment, limit=2**24
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def wait_for_pages(process: Process) -> FirstVersion:
    """Once its shop is made."""
    assert process.stdout is not None
    async for line in process.stdout:
        if line.startswith(b"{"):
            return msgspec.json.decode(line, type=FirstVersion)
    raise RuntimeError("the first version failed")
