"""The console: each main page over HTTP beside the calls behind it, in a company with very many orders."""

import gzip
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import zip_longest
from pathlib import Path
from statistics import median

import aiohttp
from msgspec import Struct

from bench.analytics.seeding import seed_agents, seed_samples
from bench.api.data import Shop, fill, find_shop, without_indexes
from bench.console.first_version import COMPARED, FirstVersion, start_first_version, wait_for_pages
from bench.console.pages import BREAKDOWNS, OVERVIEW, Page, Talk, build_pages
from bench.console.plain import add_up
from bench.console.seeding import seed_goods
from bench.console.talk import ACTIVE, seed_talk
from bench.findings import Findings, Table, Verdict, at_most, ratios, spread
from bench.ground import Ground, SeededCompany, make_company, open_ground
from bench.loyalty.owner import Connection, open_owner
from bench.say import say
from bench.servers import Server, run_sapa
from sapa.access import actions as access
from sapa.access.types import (
    MAX_RATE_LIMIT,
    KeyIn,
    KeyProduct,
    Scope,
)
from sapa.console.rendering import HERE as CONSOLE
from sapa.console.routes import COOKIE
from sapa.db.pool import open_database
from sapa.people import actions as people
from sapa.support.samples.backfill import recount

MAX_TIMES = 3
MAX_TIMES_BEFORE = 1.5
MAX_SCRIPT = 60
REPORTS_EACH = 10
"""A report is read once where other pages are read so many times."""
PASSWORD = "kopi gayo enak sekali"
HERE = people.Origin("127.0.0.1", "benchmark")
ANSWER_AS = """
    UPDATE agents SET user_id = (SELECT max(id) FROM users)
     WHERE company_id = $1 AND id = (SELECT min(id) FROM agents WHERE company_id = $1 AND type = 'human')"""
"""The owner answers customers, too."""


class Size(Struct, frozen=True):
    orders: int
    customers: int
    products: int
    shipments: int
    messages: int
    samples: int
    rounds: int
    reads: int


FULL = Size(1_000_000, 100_000, 5_000, 100_000, 1_000_000, 100_000, rounds=5, reads=40)
QUICK = Size(50_000, 10_000, 500, 5_000, 50_000, 5_000, rounds=2, reads=10)


class Reading(Struct):
    """A page and what is beside it: the median of each round, in milliseconds."""

    title: str
    beside: str
    max_ms: float | None = None
    page: list[float] = []
    calls: list[float] = []
    before: list[float] = []
    """The page of the first version."""
    kilobytes: float = 0.0


class Browser(Struct, frozen=True):
    """Somebody who is signed in, and a program with a key: both of one company."""

    session: aiohttp.ClientSession
    program: aiohttp.ClientSession
    first_session: aiohttp.ClientSession
    """The same person in the first version."""

    async def open(self, path: str) -> tuple[float, int]:
        return await _get(self.session, f"/console/live{path}")

    async def open_first(self, path: str) -> float:
        return (await _get(self.first_session, f"/console/live{path}"))[0]

    async def call(self, paths: Sequence[str]) -> float:
        return sum([(await _get(self.program, path))[0] for path in paths])


async def measure_console(folder: Path, is_quick: bool) -> Findings:
    size = QUICK if is_quick else FULL
    numbers = (size.orders, size.customers, size.products, size.shipments, size.shipments)
    async with (
        start_first_version(folder, size.rounds * size.reads, *numbers) as process,
        open_ground(folder) as ground,
        open_owner(ground) as owner,
    ):
        company = await make_company(ground, "Many orders")
        shop, talk = await _seed(ground, owner, company, size)
        first = FirstVersion() if process is None else await wait_for_pages(process)
        async with run_sapa(ground) as server, _open_browser(ground, server, company, first) as browser:
            await owner.execute(ANSWER_AS, company.id)
            readings = await _measure(browser, owner, shop, talk, size, first)
    verdicts = [verdict for one in readings for verdict in _judge(one)]
    return Findings([*verdicts, _weigh_scripts()], [_table(readings, size)], {"reading": readings})


async def _seed(ground: Ground, owner: Connection, company: SeededCompany, size: Size) -> tuple[Shop, Talk]:
    say(f"making {size.orders:,} orders of {size.customers:,} customers, {size.messages:,} messages, and the rest")
    await owner.execute("SET maintenance_work_mem = '512MB'; SET work_mem = '256MB'")
    async with without_indexes(owner):
        await fill(owner, company, size.orders, size.customers)
    await seed_goods(owner, company.id, size.products, size.shipments)
    await seed_samples(owner, company.id, await seed_agents(owner, company.id, 20), size.samples)
    words = await seed_talk(owner, company.id, size.messages)
    async with open_database(ground.app_url) as database:
        await recount(database, company.id, lambda done, of: None)
    await owner.execute("VACUUM ANALYZE")
    active = "SELECT id, customer_id FROM tickets WHERE company_id = $1 AND status <> 'resolved' LIMIT $2"
    ticket_ids, customer_ids = zip(*await owner.fetch(active, company.id, ACTIVE), strict=True)
    shop = await find_shop(owner, company, (size.orders, size.customers))
    return shop, Talk(list(ticket_ids), list(customer_ids), words)


@asynccontextmanager
async def _open_browser(
    ground: Ground, server: Server, company: SeededCompany, first: FirstVersion
) -> AsyncIterator[Browser]:
    given = KeyIn(name="beside", scopes=list(Scope), products=list(KeyProduct), rate_limit=MAX_RATE_LIMIT)
    async with open_database(ground.app_url) as database:
        async with database.transaction() as tx:
            link = await people.make_setup_link(tx, company.id)
            key = (await access.create_key(tx, company.id, given)).key
        owner = people.Newcomer("owner@toko.example", "Sari")
        secret = await people.use_link(database, link, PASSWORD, owner, HERE)
    async with (
        aiohttp.ClientSession(server.address, headers={"cookie": f"{COOKIE}={secret}"}) as session,
        aiohttp.ClientSession(server.address, headers={"x-api-key": key}) as program,
        aiohttp.ClientSession(first.address, headers={"cookie": f"{COOKIE}={first.secret}"}) as first_session,
    ):
        yield Browser(session, program, first_session)


async def _measure(
    browser: Browser, owner: Connection, shop: Shop, talk: Talk, size: Size, first: FirstVersion
) -> list[Reading]:
    readings = [Reading(page.title, page.beside, page.max_ms) for page in build_pages(shop, talk, 0)]
    overview = Reading(OVERVIEW.title, "plain aggregates, no HTTP")
    breakdowns = [Reading(page.title, "–") for page in BREAKDOWNS]
    reports = max(2, size.reads // REPORTS_EACH)
    for number in range(size.rounds):
        say(f"round {number + 1} of {size.rounds}")
        part = slice(number * size.reads, (number + 1) * size.reads)
        turns = [build_pages(shop, talk, turn) for turn in range(part.start, part.stop)]
        for place, reading in enumerate(readings):
            before = [paths[reading.title] for paths in first.turns[part]] if reading.title in COMPARED else []
            await _read(reading, browser, [pages[place] for pages in turns], before)
        await _read_overview(overview, browser, owner, shop.company.id, reports)
        for page, reading in zip(BREAKDOWNS, breakdowns, strict=True):
            await _read(reading, browser, [page] * reports)
    return [*readings, overview, *breakdowns]


async def _read(reading: Reading, browser: Browser, pages: Sequence[Page], before: Sequence[str] = ()) -> None:
    """All in turn, so that what else the machine does is shared; the first of each is not counted."""
    shown, called, shown_before = [], [], []
    for page, path_before in zip_longest([pages[0], *pages], [*before[:1], *before]):
        took, size = await browser.open(page.path)
        shown.append(took)
        called.append(await browser.call(page.calls))
        if path_before is not None:
            shown_before.append(await browser.open_first(path_before))
        reading.kilobytes = max(reading.kilobytes, size / 1000)
    reading.page.append(median(shown[1:]))
    if pages[0].calls:
        reading.calls.append(median(called[1:]))
    if before:
        reading.before.append(median(shown_before[1:]))


async def _read_overview(reading: Reading, browser: Browser, owner: Connection, company_id: int, times: int) -> None:
    shown, added = [], []
    for _ in range(times + 1):
        took, size = await browser.open(OVERVIEW.path)
        shown.append(took)
        added.append(await add_up(owner, company_id))
        reading.kilobytes = max(reading.kilobytes, size / 1000)
    reading.page.append(median(shown[1:]))
    reading.calls.append(median(added[1:]))


async def _get(session: aiohttp.ClientSession, path: str) -> tuple[float, int]:
    """Milliseconds and bytes. Raises when it is not what was asked for: what fails fast would look fast."""
    started = time.monotonic()
    async with session.get(path, allow_redirects=False) as answer:
        body = await answer.read()
    took = (time.monotonic() - started) * 1000
    if answer.status != 200:
        raise RuntimeError(f"{path} was answered {answer.status}: {body[:500]!r}")
    return took, len(body)


def _judge(reading: Reading) -> list[Verdict]:
    what = f"time of the page: {reading.title}"
    verdicts = []
    if reading.calls:
        verdicts.append(at_most(MAX_TIMES, "×", what, ratios(reading.page, reading.calls)))
    if reading.before:
        against = ratios(reading.page, reading.before)
        verdicts.append(at_most(MAX_TIMES_BEFORE, "×", f"{what}, against its first version", against))
    if reading.max_ms is not None:
        verdicts.append(at_most(reading.max_ms, " ms", f"{what}, p50", spread(reading.page)))
    return verdicts


def _weigh_scripts() -> Verdict:
    """All of them; no page has more than three."""
    scripts = [gzip.compress(file.read_bytes()) for file in (CONSOLE / "static").glob("*.js")]
    return at_most(MAX_SCRIPT, " kB", "scripts of the console, compressed", spread([sum(map(len, scripts)) / 1000]))


def _table(readings: Sequence[Reading], size: Size) -> Table:
    columns = [
        f"page, {size.orders:,} orders",
        "beside it",
        "page, p50 ms",
        "calls, p50 ms",
        "first version, p50 ms",
        "page, kB",
    ]
    return Table(columns, [_row(one) for one in readings], words=2)


def _row(reading: Reading) -> list[str]:
    times = [f"{spread(one).median:.2f}" if one else "–" for one in (reading.page, reading.calls, reading.before)]
    return [reading.title, reading.beside, *times, f"{reading.kilobytes:.1f}"]
