"""The search for an area among 83,762: as people type, with misspellings, one caller at a time."""

import time
from collections.abc import Sequence
from random import Random

import aiohttp

from bench.findings import Table, Verdict, at_most, percentile, spread
from bench.ground import Ground, SeededCompany
from bench.say import say
from bench.servers import Server, run_sapa
from bench.shipping.area_names import build_areas
from sapa.db.pool import open_database
from sapa.shipping.areas.files import AreaFile
from sapa.shipping.areas.importing import import_areas
from sapa.shipping.areas.types import AreaRow

SEARCHES, QUICK_SEARCHES = 2_000, 200
ROUNDS, QUICK_ROUNDS = 3, 1
BUDGET_MS = 20
KINDS = ("name and city", "beginning of a name", "misspelled", "postal code", "vague")


async def measure_search(ground: Ground, company: SeededCompany, is_quick: bool) -> tuple[list[Verdict], Table]:
    rows = build_areas()
    seconds = await _import(ground, rows)
    searches = build_searches(rows, QUICK_SEARCHES if is_quick else SEARCHES)
    async with run_sapa(ground) as sapa:
        say("searches for areas")
        await _search(sapa, company, searches[:50])
        rounds = [await _search(sapa, company, searches) for _ in range(QUICK_ROUNDS if is_quick else ROUNDS)]
    worst = spread([percentile([ms for _, ms in measured], 99) for measured in rounds])
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for kind, ms in rounds[-1]:
        times[kind].append(ms)
    lines = [
        [kind, *(f"{percentile(measured, percent):.1f}" for percent in (50, 99))] for kind, measured in times.items()
    ]
    lines.append([f"import of {len(rows):,} areas with their index", f"{seconds * 1000:,.0f}", ""])
    verdict = at_most(BUDGET_MS, " ms", "p99 of a search among 83,762 sub-districts", worst)
    return [verdict], Table(["search for an area", "p50, ms", "p99, ms"], lines)


async def _import(ground: Ground, rows: Sequence[AreaRow]) -> float:
    async with open_database(ground.app_url) as database:
        started = time.perf_counter()
        async with database.transaction() as tx:
            await import_areas(tx, AreaFile("benchmark", "benchmark", False, None, {}), rows, lambda count: None)
        seconds = time.perf_counter() - started
    async with open_database(ground.server.owner_url) as database, database.connection() as db:
        await db.execute("ANALYZE areas, area_words, area_spellings")
    return seconds


def build_searches(rows: Sequence[AreaRow], count: int) -> list[tuple[str, str]]:
    random = Random(11)
    by_code = {row.code: row for row in rows}
    villages = [row for row in rows if row.level == 4]
    return [
        (kind, _build_words(random, by_code, random.choice(villages), kind)) for kind in KINDS * (count // len(KINDS))
    ]


def _build_words(random: Random, by_code: dict[int, AreaRow], village: AreaRow, kind: str) -> str:
    district = by_code[village.parent]
    city = by_code[district.parent].name.partition(" ")[2]
    if kind == "postal code":
        return village.zip or ""
    if kind == "vague":
        return random.choice(["jawa", "suka", "kota", "tanjung", "barat", "kabupaten", "karang", "sumatera utara"])
    if kind == "beginning of a name":
        return village.name[:4]
    words = f"{village.name} {random.choice([district.name, city])}"
    if kind == "name and city":
        return words
    place = random.randrange(1, max(2, len(village.name) - 1))
    return words[:place] + random.choice(["", "x", words[place] * 2]) + words[place + 1 :]


async def _search(sapa: Server, company: SeededCompany, searches: Sequence[tuple[str, str]]) -> list[tuple[str, float]]:
    """Each with its milliseconds, HTTP and JSON included."""
    measured = []
    address = f"{sapa.address}/customer/v1/shipping/coverage/search"
    async with aiohttp.ClientSession(headers={"x-api-key": company.key}) as session:
        for kind, words in searches:
            started = time.perf_counter()
            async with session.get(address, params={"q": words, "provider": "custom"}) as response:
                await response.read()
                if response.status != 200:
                    raise RuntimeError(f"a search for {words} was answered with {response.status}")
            measured.append((kind, (time.perf_counter() - started) * 1000))
    return measured
