"""Shipping: quotes, look-ups of places and new shipments, beside the least that does the same; searches for areas and
files of labels."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.api.load import Load, Measurement, find_wrk, measure, run_wrk
from bench.findings import Findings, Spread, Table, Verdict, at_most, ratios, spread
from bench.ground import Ground, SeededCompany, open_ground
from bench.say import say
from bench.servers import Server, free_port, run_sapa, run_server, run_worker
from bench.shipping.labels import measure_labels
from bench.shipping.search import measure_search
from sapa.access import actions
from sapa.access.types import (
    MAX_RATE_LIMIT,
    KeyIn,
    KeyProduct,
    Scope,
)
from sapa.db.pool import open_database
from sapa.settings import read_settings
from sapa.shipping.connections import actions as connections
from sapa.startup import build_context
from sapa.values.company import Company

SECONDS = 2
ROUNDS, QUICK_ROUNDS = 6, 1

PLACE = '{"kecamatanId":5783,"kelurahanId":31532%s}'
PERSON = ',"name":"Ayu Lestari","phone":"+6281234567890","address":"Jl. Jenderal Sudirman Kav. 52"'
QUOTE = '{"provider":"aggregator_carrier","origin":%s,"destination":%s,"package":{"weight":1.2,"itemValue":%s}}'
SHIPMENT = (
    '{"provider":"aggregator_carrier","serviceName":"JNE REG","fee":12000,"sender":%s,"delivery":%s,'
    '"package":{"weight":1.2,"itemName":"Kopi Gayo","itemValue":150000}}'
)

_loads = count(1)


class Scenario(Struct, frozen=True):
    name: str
    title: str
    sapa: str
    """A line as wrk's script reads it; @ stands for the number of the load, # for that of the request in it."""
    ceiling: str
    most: float
    """The budget: CPU of the API against the ceiling."""


class ShippingGround(Ground, frozen=True):
    """Whose carrier is one of our own."""

    carrier: str = ""

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"SAPA_UPSTREAM_KIRIMINAJA": self.carrier}


def build_scenarios() -> list[Scenario]:
    bare, person = PLACE % "", PLACE % PERSON
    ask = "POST /customer/v1/shipping/calculate-fee "
    return [
        Scenario("known", "quote that is remembered", ask + QUOTE % (bare, bare, "150000"), "POST /{}/known x", 1.5),
        Scenario("asked", "quote that is asked for", ask + QUOTE % (bare, bare, "@000#"), "POST /{}/asked x", 2.0),
        Scenario("coverage", "38 provinces", "GET /customer/v1/shipping/coverage/provinces", "GET /{}/coverage", 1.4),
        Scenario(
            "create", "new shipment", f"POST /customer/v1/shipping/shipments {SHIPMENT % (person, person)}",
            f"POST /{{}}/shipments {SHIPMENT % (person, person)}", 1.5,
        ),
    ]  # fmt: skip


async def measure_shipping(folder: Path, is_quick: bool) -> Findings:
    find_wrk()
    scenarios = build_scenarios()
    async with open_ground(folder) as opened, _run_carrier(opened) as ground:
        company = await _seed(ground)
        results = await _measure(ground, company, scenarios, QUICK_ROUNDS if is_quick else ROUNDS)
        found, searches = await measure_search(ground, company, is_quick)
        printed, labels = await measure_labels(ground, company, is_quick)
    verdicts = [*judge(scenarios, results), *found, *printed]
    return Findings(verdicts, [*build_tables(scenarios, results), searches, labels], results)


@asynccontextmanager
async def _run_carrier(ground: Ground) -> AsyncIterator[ShippingGround]:
    async with _run_app("bench.shipping.carrier", "carrier", ground) as carrier:
        yield ShippingGround(ground.folder, ground.server, carrier.address)


@asynccontextmanager
async def _run_app(module: str, name: str, ground: Ground) -> AsyncIterator[Server]:
    port = free_port()
    async with run_server(name, ["bench.api.serve", module, str(port)], port, ground) as server:
        yield server


async def _seed(ground: Ground) -> SeededCompany:
    """A live company with an account at the carrier."""
    async with open_database(ground.app_url) as database:
        async with database.transaction() as tx:
            made = await actions.create_company(tx, "Sender")
            given = KeyIn(name="benchmark", scopes=list(Scope), products=list(KeyProduct), rate_limit=MAX_RATE_LIMIT)
            key = await actions.create_key(tx, made.live_company_id, given)
        settings = msgspec.structs.replace(read_settings({}), secret_key=ground.server.secret_key)
        kit = build_context(settings, database)
        company = Company(made.live_company_id, "live", "ID", "IDR")
        account = {"api_key": "benchmark"}
        await connections.connect(kit, company, "aggregator_carrier", None, account, verify=False)
        await kit.close()
    return SeededCompany(made.live_company_id, key.key)


Results = dict[str, dict[str, list[Measurement]]]


async def _measure(
    ground: ShippingGround, company: SeededCompany, scenarios: Sequence[Scenario], rounds: int
) -> Results:
    """Sapa and the ceiling in turn, so that a busy machine is busy for both alike."""
    results: Results = {}
    async with (
        run_worker(ground),
        run_sapa(ground) as sapa,
        _run_app("bench.shipping.ceiling", "ceiling", ground) as ceiling,
    ):
        for scenario in scenarios:
            say(scenario.title)
            measured = results[scenario.name] = {"ceiling": [], "sapa": []}
            for server in (sapa, ceiling):
                await run_wrk(server, _load(server, scenario, company, 1), ground.folder)
            for _ in range(rounds):
                for server in (ceiling, sapa):
                    load = _load(server, scenario, company, SECONDS)
                    measured[server.name].append(await measure(server, ground.postgres, load, ground.folder))
    return results


def _load(server: Server, scenario: Scenario, company: SeededCompany, seconds: int) -> Load:
    line = scenario.sapa if server.name == "sapa" else scenario.ceiling.replace("{}", str(company.id), 1)
    return Load(company.key, [line.replace("@", str(next(_loads)))], seconds)


def judge(scenarios: Sequence[Scenario], results: Results) -> list[Verdict]:
    return [
        at_most(one.most, "×", f"CPU of: {one.title}, against the ceiling", _ratio(results[one.name]))
        for one in scenarios
    ]


def _ratio(measured: dict[str, list[Measurement]]) -> Spread:
    return ratios([one.cpu_us for one in measured["sapa"]], [one.cpu_us for one in measured["ceiling"]])


def build_tables(scenarios: Sequence[Scenario], results: Results) -> list[Table]:
    rows = []
    for scenario in scenarios:
        bare, ours = results[scenario.name]["ceiling"], results[scenario.name]["sapa"]
        ratio = _ratio(results[scenario.name])
        for name, measured in (("ceiling", bare), ("sapa", ours)):
            share = f"{ratio.median:.2f} ×" if name == "sapa" else ""
            rows.append([scenario.title, name, *_figures(measured), share])
    columns = ["16 callers", "server", "requests/s", "API CPU, µs", "PostgreSQL CPU, µs", "p50, ms", "p99, ms", "CPU"]
    return [Table(columns, rows, words=2)]


def _figures(measured: Sequence[Measurement]) -> list[str]:
    whole = [[getattr(one, name) for one in measured] for name in ("requests_per_second", "cpu_us", "postgres_cpu_us")]
    times = [[getattr(one, name) for one in measured] for name in ("p50_ms", "p99_ms")]
    return [f"{spread(one).median:,.0f}" for one in whole] + [f"{spread(one).median:.1f}" for one in times]
