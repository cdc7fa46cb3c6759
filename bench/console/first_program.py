"""Runs inside the first version: makes its shop, then reads its pages as often as it is told to.

Arguments: the folder of its database, the numbers of orders, customers, products, shipments and messages. Each line of
the input is a first turn and a number of turns; each line of the output has the median milliseconds of every page.

The pages are requested from the application itself: the HTTP server that it had is no longer installed. So its times
lack what a server and a connection take.
"""

import asyncio
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

from bench.ground import make_company, open_ground
from bench.loyalty.owner import open_owner
from sapa.app import create_app
from sapa.db.pool import open_database
from sapa.people import actions as people

part: Any = import_module("bench.console.part")
pages: Any = import_module("bench.console.pages")
"""Those of the first version, whose types are not today's."""


async def run(folder: Path, *numbers: int) -> None:
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
        os.environ.update(ground.environment)
        app = create_app()
        await app.start()
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            first, number = map(int, line.split())
            turns = [pages.build_pages(shop, turn) for turn in range(first, first + number)]
            times = {}
            for shown in zip(*turns, strict=True):
                taken = [await _time_page(app, f"/console/live{page.path}", secret) for page in (shown[0], *shown)]
                times[shown[0].title] = median(taken[1:])
            print(json.dumps(times), flush=True)
        await app.stop()


async def _time_page(app: Any, address: str, secret: str) -> float:
    path, _, query = address.partition("?")
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "path": path,
        "raw_path": path.encode(), "query_string": query.encode(), "root_path": "", "state": {},
        "headers": [(b"host", b"127.0.0.1"), (b"cookie", f"sapa_session={secret}".encode())],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 1),
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    started = time.monotonic()
    await app(scope, receive, send)
    taken = (time.monotonic() - started) * 1000
    if sent[0]["status"] != 200:
        raise RuntimeError(f"{address} was answered {sent[0]['status']}")
    return taken


uvloop.run(run(Path(sys.argv[1]), *map(int, sys.argv[2:])))
