"""Files: `sapa import` and `sapa export` as commands, beside a bare COPY of the same rows."""

import asyncio
import os
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from bench.findings import Findings, Table, Verdict, at_least, at_most, ratios, spread
from bench.ground import Ground, make_company, open_ground
from bench.history import open_version
from bench.imports.copying import Copier, open_copier
from bench.imports.files import write_customers, write_orders, write_shopify_orders
from bench.imports.first_version import COMMIT, time_first_version
from bench.imports.numbers import watch_numbers
from bench.say import say


class Size(Struct, frozen=True):
    customers: int
    orders: int
    single_orders: int
    rounds: int


FULL = Size(customers=100_000, orders=20_000, single_orders=4_000, rounds=3)
QUICK = Size(customers=5_000, orders=2_000, single_orders=500, rounds=1)

IMPORT, EXPORT = "copied in", "copied out"
SAPA, ONE_BY_ONE = "sapa", "bench.imports.one_by_one"
"""The commands, and the same with a transaction for each order."""


class Figure(Struct):
    """Rows per second of one command, round by round, and of the COPY that does the least of the same."""

    title: str
    rows: int
    yardstick: str
    per_second: list[float] = []
    copied: list[float] = []


async def measure_imports(folder: Path, is_quick: bool) -> Findings:
    size = QUICK if is_quick else FULL
    write_customers(folder / "customers.csv", size.customers)
    write_orders(folder / "orders.csv", size.orders, size.customers)
    write_orders(folder / "single.csv", size.single_orders, size.customers, prefix="single")
    write_shopify_orders(folder / "shopify.csv", size.orders, size.customers)
    figures = {
        "dry": Figure(f"check {size.customers:,} customers (dry run)", size.customers, IMPORT),
        "customers": Figure(f"import {size.customers:,} customers", size.customers, IMPORT),
        "again": Figure(f"import {size.customers:,} customers again", size.customers, IMPORT),
        "single": Figure(f"import {size.single_orders:,} orders, each in a transaction", size.single_orders, IMPORT),
        "orders": Figure(f"import {size.orders:,} orders", size.orders, IMPORT),
        "orders_again": Figure(f"import {size.orders:,} orders again", size.orders, IMPORT),
        "shopify": Figure(f"import {size.orders:,} orders of Shopify, as history", size.orders, IMPORT),
        "customers_out": Figure(f"export {size.customers:,} customers", size.customers, EXPORT),
        "orders_out": Figure(f"export {size.orders:,} orders", size.orders, EXPORT),
    }
    version = open_version(COMMIT, folder)
    first: list[float] = []
    waits: list[float] = []
    async with open_ground(folder) as ground, open_copier(ground) as copier:
        for number in range(size.rounds):
            say(f"round {number + 1} of {size.rounds}")
            if version is not None:
                os.sync()
                seconds = await time_first_version(version, folder / "customers.csv", folder / "single.csv")
                first.append(size.single_orders / seconds)
            await _run_round(ground, copier, figures, waits)
    tables = [build_table(list(figures.values()))]
    if first:
        tables.append(Table(["the same machine", "rows/s"], [
            [f"import {size.single_orders:,} orders with the first version", f"{spread(first).median:,.0f}"]
        ]))  # fmt: skip
    return Findings(build_verdicts(figures, waits, first), tables, {**figures, "first": first})


def build_verdicts(figures: dict[str, Figure], waits: Sequence[float], first: Sequence[float]) -> list[Verdict]:
    """`first` are the rows a second of the first version, if its source is at hand."""
    customers, orders, single = figures["customers"], figures["orders"], figures["single"]
    against_first = [
        at_least(10, "×", "import orders against the first version", ratios(orders.per_second, first))
    ] if first else []  # fmt: skip
    return [
        at_least(0.3, "×", "import customers against COPY", ratios(customers.per_second, customers.copied)),
        *against_first,
        at_least(10, "×", "import orders against one transaction each", ratios(orders.per_second, single.per_second)),
        at_most(200, " ms", "longest wait for an order number during an import", spread(waits)),
    ]


async def _run_round(ground: Ground, copier: Copier, figures: dict[str, Figure], waits: list[float]) -> None:
    """Companies of their own for each round, so that it imports into nothing."""
    company = (await make_company(ground, f"Importer {time.monotonic_ns()}")).id
    moving_in = (await make_company(ground, f"Moving in {time.monotonic_ns()}")).id
    shopify = str(ground.folder / "shopify.csv")
    customers, orders = str(ground.folder / "customers.csv"), str(ground.folder / "orders.csv")
    out = str(ground.folder / "out.csv")
    await _time(ground, figures["dry"], ["import", "customers", customers, "--dry-run"], company)
    await _time(ground, figures["customers"], ["import", "customers", customers], company)
    await _time(ground, figures["again"], ["import", "customers", customers], company)
    single = ["import", "orders", str(ground.folder / "single.csv")]
    await _time(ground, figures["single"], single, company, module=ONE_BY_ONE)
    async with watch_numbers(ground, company) as longest:
        await _time(ground, figures["orders"], ["import", "orders", orders], company)
    waits.append(1000 * longest[0])
    await _time(ground, figures["orders_again"], ["import", "orders", orders], company)
    await _time(ground, figures["shopify"], ["import", "orders", shopify, "--from", "shopify"], moving_in)
    await _time(ground, figures["customers_out"], ["export", "customers", "--output", out], company)
    await _time(ground, figures["orders_out"], ["export", "orders", "--output", out], company)
    for table, into, outof in (("customers", ("dry", "customers", "again"), "customers_out"),
                               ("orders", ("single", "orders", "orders_again", "shopify"), "orders_out")):  # fmt: skip
        written, read = await copier.copy(table, company)
        figures[outof].copied.append(written)
        for name in into:
            figures[name].copied.append(read)


async def _time(ground: Ground, figure: Figure, arguments: Sequence[str], company: int, *, module: str = SAPA) -> None:
    """The command as people run it, its start included. What the command before left to be written is on disk first."""
    os.sync()
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, "--company", str(company),
        stdout=PIPE, stderr=PIPE, env=ground.environment,
    )  # fmt: skip
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise RuntimeError(f"`sapa {' '.join(arguments)}` failed: {output.decode()}{errors.decode()[-2000:]}")
    figure.per_second.append(figure.rows / (time.monotonic() - started))


def build_table(figures: Sequence[Figure]) -> Table:
    rows = []
    for figure in figures:
        ratio = ratios(figure.per_second, figure.copied)
        apart = f"{ratio.least:.3f}–{ratio.most:.3f}"
        speeds = [f"{spread(values).median:,.0f}" for values in (figure.per_second, figure.copied)]
        rows.append([figure.title, speeds[0], figure.yardstick, speeds[1], f"{ratio.median:.3f} ×", apart])
    return Table(["command", "rows/s", "the same rows", "rows/s", "ratio", "rounds"], rows)
