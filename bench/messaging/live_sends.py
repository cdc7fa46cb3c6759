"""Sends over the live WhatsApp adapter, everything stored, beside a bare process that only passes them on.

The provider is a process of its own that answers at once, and both send to it. A number sends at most 80 messages a
second, so the senders take turns between the companies.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench.api.load import Load, Measurement, measure, run_wrk
from bench.findings import Table, Verdict, at_least, ratios, spread
from bench.ground import Ground
from bench.loyalty.owner import open_owner
from bench.messaging.bare import PROVIDER
from bench.messaging.numbers import SOURCE, ConnectedNumber, connect_number
from bench.say import say
from bench.servers import Server, free_port, run_sapa, run_server

COMPANIES = 40
CUSTOMERS = 10
"""Of each company."""


async def measure_live_sends(ground: Ground, rounds: int, seconds: int) -> dict[str, list[Measurement]]:
    """By server."""
    say(f"sends over the live adapter, {rounds} rounds")
    numbers = [await connect_number(ground, f"Sender {n}", _list_customers(n)) for n in range(COMPANIES)]
    load = Load(",".join(number.company.key for number in numbers), _build_sends(numbers), seconds)
    async with _run_provider(ground) as provider:
        settings = {PROVIDER: provider.address}
        async with run_sapa(ground, **settings) as sapa, _run_bare(ground, settings) as bare:
            measured: dict[str, list[Measurement]] = {server.name: [] for server in (bare, sapa)}
            for server in (bare, sapa):
                await run_wrk(server, load, ground.folder)
            async with open_owner(ground) as db:
                await db.execute("ANALYZE")  # as PostgreSQL does by itself within a minute
            for _ in range(rounds):
                for server in (bare, sapa):
                    measured[server.name].append(await measure(server, ground.postgres, load, ground.folder))
    return measured


def judge_live_sends(sends: dict[str, list[Measurement]]) -> Verdict:
    what = "sends over the live adapter, 16 senders, against the bare process"
    return at_least(0.3, "×", what, ratios(*(_speeds(sends[name]) for name in ("sapa", "bare"))))


def build_sends_table(sends: dict[str, list[Measurement]]) -> Table:
    rows = []
    for name, measured in sends.items():
        ratio = ratios(_speeds(measured), _speeds(sends["bare"]))
        figures = [
            spread(_speeds(measured)).median,
            spread([one.cpu_us for one in measured]).median,
            spread([one.postgres_cpu_us for one in measured]).median,
        ]
        latency = [spread([one.p50_ms for one in measured]).median, spread([one.p99_ms for one in measured]).median]
        rows.append([name, *(f"{figure:,.0f}" for figure in figures), *(f"{one:.1f}" for one in latency),
                     f"{ratio.median:.3f} ×"])  # fmt: skip
    return Table(["16 senders", "sends/s", "CPU, µs", "PostgreSQL CPU, µs", "p50, ms", "p99, ms", "ratio"], rows)


def _speeds(measured: Sequence[Measurement]) -> list[float]:
    return [one.requests_per_second for one in measured]


def _list_customers(company: int) -> list[str]:
    return [f"+62811{company * CUSTOMERS + n:07d}" for n in range(CUSTOMERS)]


def _build_sends(numbers: Sequence[ConnectedNumber]) -> list[str]:
    """In turn with the keys, each to a customer of its company."""
    body = '{{"to":"{to}","sources":"{source}","message":"Halo, pesanan # sudah dikirim."}}'
    customers = [_list_customers(n) for n in range(len(numbers))]
    return [
        f"POST /messaging/v1/messages/send {body.format(to=own[n], source=SOURCE)}"
        for n in range(CUSTOMERS)
        for own in customers
    ]


@asynccontextmanager
async def _run_provider(ground: Ground) -> AsyncIterator[Server]:
    port = free_port()
    async with run_server("provider", ["bench.messaging.provider", str(port)], port, ground) as server:
        yield server


@asynccontextmanager
async def _run_bare(ground: Ground, settings: dict[str, str]) -> AsyncIterator[Server]:
    port, module = free_port(), ["bench.api.serve", "bench.messaging.bare"]
    async with run_server("bare", [*module, str(port)], port, ground, settings) as server:
        yield server
