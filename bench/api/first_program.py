"""Runs inside the first version: makes its shops, then answers requests until its input ends.

Arguments: the folder of its database and the number of orders of each shop. A line of the output tells where it
answers and what it holds: see `FirstVersion`.
"""

import asyncio
import os
import sys
from pathlib import Path

import msgspec
import uvloop

from bench.api.data import seed
from bench.first_server import serve
from bench.ground import open_ground
from sapa.app import create_app


async def run(folder: Path, orders: int) -> None:
    async with open_ground(folder) as ground:
        data = await seed(ground, orders, orders, orders)
    # Stopped and started again, as today's.
    async with open_ground(folder) as ground:
        os.environ.update(ground.environment)
        async with serve(create_app()) as address:
            print(msgspec.json.encode({"address": address, "data": data}).decode(), flush=True)
            await asyncio.to_thread(sys.stdin.read)


uvloop.run(run(Path(sys.argv[1]), int(sys.argv[2])))
