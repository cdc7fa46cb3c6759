"""The lists and records of the first version, on this machine: what today's are compared with."""

from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from bench.history import open_version, read_answer, run_program
from bench.servers import free_port

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
    version = open_version(COMMIT, folder)
    if version is None:
        yield None
        return
    async with run_program(version, PROGRAM, version.tree / "run", free_port(), turns, *numbers) as process:
        yield process


async def wait_for_pages(process: Process) -> FirstVersion:
    """Once its shop is made."""
    return msgspec.json.decode(await read_answer(process), type=FirstVersion)
