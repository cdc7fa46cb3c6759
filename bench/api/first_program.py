"""Runs inside the first version: makes its shops, then its API answers requests until the input ends.

Arguments: the folder of its database, the number of orders of each shop, and the port of its API. A line of the output
tells where it answers and what it holds: see `FirstVersion`.
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from bench.api.data import seed
from bench.ground import open_ground
from bench.servers import run_server


async def run(folder: Path, orders: int, port: int) -> None:
    async with open_ground(folder) as ground:
        data = await seed(ground, orders, orders, orders)
    # Stopped and started again, as today's.
    command = ["sapa", "api", "--port", str(port)]
    async with open_ground(folder) as ground, run_server("sapa", command, port, ground) as server:
        print(msgspec.json.encode({"address": server.address, "data": data}).decode(), flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(run(Path(sys.argv[1]), *map(int, sys.argv[2:])))
