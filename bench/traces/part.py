"""Traces: what a call costs when none, some or all calls are traced."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web
from msgspec import Struct

from bench.api.load import Load, find_wrk, measure
from bench.findings import Findings, Table, at_most, ratios, spread
from bench.ground import SeededCompany, make_company, open_ground
from bench.servers import Server, free_port, run_sapa

MAX_RATIO = 1.05
"""Of the CPU of a call, at the sampling that is the default."""


class Size(Struct, frozen=True):
    rounds: int
    seconds: int


FULL = Size(rounds=6, seconds=5)
QUICK = Size(rounds=2, seconds=1)


async def measure_traces(folder: Path, is_quick: bool) -> Findings:
    find_wrk()
    size = QUICK if is_quick else FULL
    async with open_ground(folder) as ground, _open_collector() as url, AsyncExitStack() as stack:
        company = await make_company(ground, "Traces")
        ways = {"off": {}, "1 %": _trace(url, 1), "100 %": _trace(url, 100)}
        servers = {way: await stack.enter_async_context(run_sapa(ground, **settings)) for way, settings in ways.items()}
        order_id = await _create_order(servers["off"], company)
        load = Load(company.key, [f"GET /customer/v1/orders/{order_id} "], seconds=size.seconds)
        cpu: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(size.rounds + 1):
            for way, server in servers.items():
                cpu[way].append((await measure(server, ground.postgres, load, ground.folder)).cpu_us)
    cpu = {way: values[1:] for way, values in cpu.items()}  # the first round warms up
    rows = [[way, f"{spread(values).median:.0f}", f"{_against_off(cpu, way):.2f}"] for way, values in cpu.items()]
    return Findings(
        [
            at_most(
                MAX_RATIO, "×", "CPU of a get with 1 % of calls traced, against none", ratios(cpu["1 %"], cpu["off"])
            )
        ],
        [Table(["traced calls", "CPU of a get, µs", "against none"], rows)],
        cpu,
    )


def _against_off(cpu: dict[str, list[float]], way: str) -> float:
    return ratios(cpu[way], cpu["off"]).median


def _trace(url: str, percent: int) -> dict[str, str]:
    return {"SAPA_TRACES_URL": url, "SAPA_TRACES_PERCENT": str(percent)}


@asynccontextmanager
async def _open_collector() -> AsyncIterator[str]:
    """Takes everything and looks at nothing."""

    async def take(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(content_type="application/x-protobuf")

    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/traces", take)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


async def _create_order(server: Server, company: SeededCompany) -> str:
    async with (
        aiohttp.ClientSession(server.address, headers={"x-api-key": company.key}) as session,
        session.post(
            "/customer/v1/orders", json={"lineItems": [{"title": "Kopi", "price": 1, "quantity": 1}]}
        ) as answer,
    ):
        return str((await answer.json())["data"]["id"])
