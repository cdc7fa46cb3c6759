"""Tool calls of MCP beside the same calls of the API."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

import msgspec
from msgspec import Struct

from bench.api.data import Shop, fill, find_shop
from bench.api.load import Load, Measurement, find_wrk, measure, run_wrk
from bench.findings import Findings, Table, Verdict, at_most, ratios
from bench.ground import Ground, make_company, open_ground
from bench.loyalty.owner import open_owner
from bench.say import say
from bench.servers import Server, run_sapa, run_worker
from sapa.mcp.protocol import MODERN

MAX_TIMES = 1.3
ORDERS = 10_000
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}


class Size(Struct, frozen=True):
    rounds: int
    seconds: int


FULL = Size(rounds=12, seconds=3)
QUICK = Size(rounds=3, seconds=1)


class Pair(Struct):
    """An operation over both interfaces, and what a call of each cost in every round."""

    title: str
    tool: Load
    call: Load | None = None
    """None if the API has no such call."""
    tools: list[Measurement] = []
    calls: list[Measurement] = []


async def measure_mcp(folder: Path, is_quick: bool) -> Findings:
    find_wrk()
    size = QUICK if is_quick else FULL
    async with open_ground(folder) as ground:
        shop = await _seed(ground)
        async with run_worker(ground), run_sapa(ground) as server:
            pairs = build_pairs(shop, size.seconds)
            await _run(server, ground, pairs, size.rounds)
    verdicts = [_judge(pair) for pair in pairs if pair.call]
    return Findings(verdicts, [_table(pairs)], {"pairs": pairs})


async def _seed(ground: Ground) -> Shop:
    say(f"making {ORDERS:,} orders")
    company = await make_company(ground, "Orders")
    async with open_owner(ground) as owner:
        await fill(owner, company, ORDERS, ORDERS)
        await owner.execute("VACUUM ANALYZE")
        return await find_shop(owner, company, (ORDERS, ORDERS))


def build_pairs(shop: Shop, seconds: int) -> list[Pair]:
    key = shop.company.key

    def tool(name: str, arguments: Sequence[object]) -> Load:
        lines = [_tool_line("tools/call", name=name, arguments=one) for one in arguments]
        return Load(key, lines, seconds, headers=_headers("tools/call", name))

    def call(lines: Sequence[str]) -> Load:
        return Load(key, list(lines), seconds)

    notes = [(id, {"notes": "Change # of a load."}) for id in shop.order_ids]
    return [
        Pair(
            "get one order", tool("get_order", [{"id": id} for id in shop.order_ids]),
            call([f"GET /customer/v1/orders/{id} " for id in shop.order_ids]),
        ),
        Pair(
            f"list 20 of {ORDERS:,} orders", tool("list_orders", [{}]), call(["GET /customer/v1/orders "]),
        ),
        Pair(
            "update an order", tool("update_order", [{"id": id, **note} for id, note in notes]),
            call([f"PUT /customer/v1/orders/{id} {msgspec.json.encode(note).decode()}" for id, note in notes]),
        ),
        Pair("list the tools", Load(key, [_tool_line("tools/list")], seconds, headers=_headers("tools/list"))),
    ]  # fmt: skip


def _tool_line(method: str, **params: object) -> str:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    return f"POST /mcp {msgspec.json.encode(message).decode()}"


def _headers(method: str, name: str | None = None) -> dict[str, str]:
    return {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
        **({"mcp-name": name} if name else {}),
    }


async def _run(server: Server, ground: Ground, pairs: Sequence[Pair], rounds: int) -> None:
    for pair in pairs:
        say(pair.title)
        loads = [(pair.tool, pair.tools), *([(pair.call, pair.calls)] if pair.call else [])]
        for load, _ in loads:
            await run_wrk(server, msgspec.structs.replace(load, seconds=1), ground.folder)
        for _ in range(rounds):
            for load, measured in loads:
                measured.append(await measure(server, ground.postgres, load, ground.folder))


def _judge(pair: Pair) -> Verdict:
    times = ratios([one.cpu_us for one in pair.tools], [one.cpu_us for one in pair.calls])
    return at_most(MAX_TIMES, "×", f"CPU of the tool against the call: {pair.title}", times)


def _table(pairs: Sequence[Pair]) -> Table:
    columns = ["16 callers", "interface", "requests/s", "API CPU, µs", "PostgreSQL CPU, µs", "p50, ms"]
    rows = [
        [pair.title, interface, *_figures(measured)]
        for pair in pairs
        for interface, measured in (("API", pair.calls), ("MCP", pair.tools))
        if measured
    ]
    return Table(columns, rows, words=2)


def _figures(measured: Sequence[Measurement]) -> list[str]:
    typical = [
        median(one.requests_per_second for one in measured),
        median(one.cpu_us for one in measured),
        median(one.postgres_cpu_us for one in measured),
    ]
    return [*(f"{value:,.0f}" for value in typical), f"{median(one.p50_ms for one in measured):.1f}"]
