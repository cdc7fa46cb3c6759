"""The same calls on one PostgreSQL and on a Citus cluster, in turns: requests per second, and their ratio.

`python -m bench.sharding ONE_URL CLUSTER_URL`: two migrated databases without a worker, the second one distributed.
"""

import asyncio
import secrets
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGTERM
from tempfile import TemporaryDirectory

import httpx
import psutil
from msgspec import Struct

from bench.api.load import Load, find_wrk, run_wrk
from bench.findings import Table, ratios, spread
from bench.ground import SeededCompany, create_company, plain_environment
from bench.report import print_tables
from bench.servers import Server, end, free_port, wait_for_answer
from sapa.runtime.processes import spawn
from sapa.wiring import install

ORDERS = 200
ROUNDS = 6
SECONDS = 3
LINE = '{"title":"Kopi Gayo 250 g","price":125000,"quantity":2}'


class Side(Struct, frozen=True):
    """A database with an API process and a company of its own."""

    server: Server
    company: SeededCompany
    requests: dict[str, list[str]]
    """By what they do, as wrk's script reads them."""


@asynccontextmanager
async def open_side(name: str, url: str, folder: Path) -> AsyncIterator[Side]:
    port, log = free_port(), folder / f"{name}.log"
    settings = {
        "SAPA_DATABASE_URL": url,
        "SAPA_PROCESSES": "1",
        "SAPA_DRAIN_SECONDS": "0",
        "SAPA_SECRET_KEY": b64encode(secrets.token_bytes(32)).decode(),
    }
    command = [sys.executable, "-m", "sapa", "api", "--port", str(port)]
    with log.open("wb") as output:
        child = spawn(command, SIGTERM, env=plain_environment() | settings, output=output.fileno())
    try:
        server = Server(name, f"http://127.0.0.1:{port}", psutil.Process(child.pid))
        await wait_for_answer(server.address + "/readyz", child, log, status=200)
        company = await create_company(url, name)
        ids = await make_orders(server, company)
        yield Side(
            server,
            company,
            {
                "get one order": [f"GET /customer/v1/orders/{id} " for id in ids],
                f"list 20 of {ORDERS} orders": ["GET /customer/v1/orders "],
                "create an order": [f'POST /customer/v1/orders {{"lineItems":[{LINE}]}}'],
            },
        )
    finally:
        await end(child)


async def make_orders(server: Server, company: SeededCompany) -> list[str]:
    headers = {"x-api-key": company.key, "content-type": "application/json"}
    async with httpx.AsyncClient(base_url=f"{server.address}/customer/v1", headers=headers, timeout=60) as api:
        answers = [await api.post("/orders", content=f'{{"lineItems":[{LINE}]}}') for _ in range(ORDERS)]
    return [answer.raise_for_status().json()["data"]["id"] for answer in answers]


async def compare(one_url: str, cluster_url: str) -> Table:
    with TemporaryDirectory() as made:
        folder = Path(made)
        async with open_side("one", one_url, folder) as one, open_side("cluster", cluster_url, folder) as cluster:
            rows = [await compare_requests(what, one, cluster, folder) for what in one.requests]
    return Table(["16 callers, requests per second", "one PostgreSQL", "cluster", "ratio", "rounds"], rows)


async def compare_requests(what: str, one: Side, cluster: Side, folder: Path) -> list[str]:
    rates: dict[str, list[float]] = {"one": [], "cluster": []}
    for _ in range(ROUNDS + 1):
        for side in (one, cluster):
            load = Load(side.company.key, side.requests[what], SECONDS)
            counted = await run_wrk(side.server, load, folder)
            rates[side.server.name].append(counted.requests / counted.seconds)
    on_one, on_cluster = rates["one"][1:], rates["cluster"][1:]  # the first round warms up
    ratio = ratios(on_cluster, on_one)
    return [
        what,
        f"{spread(on_one).median:,.0f}",
        f"{spread(on_cluster).median:,.0f}",
        f"{ratio.median:.2f}",
        f"{ratio.least:.2f}–{ratio.most:.2f}",
    ]


if __name__ == "__main__":
    find_wrk()
    install()
    print_tables([asyncio.run(compare(*sys.argv[1:3]))])
