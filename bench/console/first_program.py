"""Runs inside the first version: makes its shop, then serves its pages until its input ends.

Arguments: the folder of its database, the number of turns, and the numbers of orders, customers, products, shipments
and messages. A line of the output tells where the pages are: see `FirstVersion`.

The HTTP server that it had is no longer installed. The one below does less than any real one.
"""

import asyncio
import os
import sys
from asyncio import Task
from importlib import import_module
from pathlib import Path
from typing import Any

import httptools
import msgspec
import uvloop

from bench.ground import make_company, open_ground
from bench.loyalty.owner import open_owner
from sapa.app import create_app
from sapa.db.pool import open_database
from sapa.people import actions as people

part: Any = import_module("bench.console.part")
pages: Any = import_module("bench.console.pages")
"""Those of the first version, whose types are not today's."""


class PageConnection(asyncio.Protocol):
    """One GET after the other, each answered before the next is sent."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.tasks: set[Task[None]] = set()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.url, self.headers = b"", list[tuple[bytes, bytes]]()

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_message_complete(self) -> None:
        path, query = self.url.partition(b"?")[::2]
        scope = {
            "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "path": path.decode(),
            "raw_path": path, "query_string": query, "root_path": "", "state": {}, "headers": self.headers,
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 1),
        }  # fmt: skip
        task = asyncio.create_task(self.app(scope, self.receive, self.send))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def receive(self) -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            lines = [b"%s: %s\r\n" % header for header in message["headers"]]
            self.transport.write(b"HTTP/1.1 %d OK\r\n%s\r\n" % (message["status"], b"".join(lines)))
        else:
            self.transport.write(message["body"])


async def run(folder: Path, turns: int, *numbers: int) -> None:
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
        server = await asyncio.get_running_loop().create_server(lambda: PageConnection(app), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        paths = [{page.title: page.path for page in pages.build_pages(shop, turn)} for turn in range(turns)]
        version = {"address": f"http://127.0.0.1:{port}", "secret": secret, "turns": paths}
        print(msgspec.json.encode(version).decode(), flush=True)
        await asyncio.to_thread(sys.stdin.read)
        server.close()
        await app.stop()


uvloop.run(run(Path(sys.argv[1]), *map(int, sys.argv[2:])))
