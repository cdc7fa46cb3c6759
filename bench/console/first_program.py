"""Runs inside the first version: makes its shop, then serves its pages until its input ends.

Arguments: the folder of its database, its port, the number of turns, and the numbers of orders, customers, products,
shipments and messages. A line of the output tells where the pages are: see `FirstVersion`.
"""

import asyncio
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from bench.ground import make_company, open_ground
from bench.loyalty.owner import open_owner
from bench.servers import run_server
from sapa.db.pool import open_database
from sapa.people import actions as people

part: Any = import_module("bench.console.part")
pages: Any = import_module("bench.console.pages")
"""Those of the first version, whose types are not today's."""


async def run(folder: Path, port: int, turns: int, *numbers: int) -> None:
    size = part.Size(*numbers, samples=1_000, rounds=0, reads=0)
    async with open_ground(folder) as ground:
        async with open_owner(ground) as owner:
            company = await make_company(ground, "Many orders")
            shop = await part._seed(ground, owner, company, size)
        async with open_database(ground.app_url) as database:
            async with database.transaction() as tx:
                link = await people.make_setup_link(tx, company.id)
            newcomer = people.Newcomer("owner@toko.example", "Sari")
            secret = await people.use_link(database, link, part.PASSWORD, newcomer, part.HERE)
        async with run_server("sapa", ["sapa", "api", "--port", str(port)], port, ground) as server:
            paths = [{page.title: page.path for page in pages.build_pages(shop, turn)} for turn in range(turns)]
            version = {"address": server.address, "secret": secret, "turns": paths}
            print(msgspec.json.encode(version).decode(), flush=True)
            await asyncio.to_thread(sys.stdin.read)


asyncio.run(run(Path(sys.argv[1]), *map(int, sys.argv[2:])))
