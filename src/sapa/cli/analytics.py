"""`sapa analytics`: support analytics."""

import asyncio
from collections.abc import Callable

import typer
from msgspec import Struct

from sapa.access import actions as access
from sapa.cli.connect import AsJson, CompanyId, reach_database, show
from sapa.cli.progress import Show, open_progress
from sapa.db.counters import get_total
from sapa.support.backfill import rebuild_company
from sapa.support.samples.backfill import recount

PERCENT = 100

app = typer.Typer(no_args_is_help=True, help="Support analytics.")


class Rebuilt(Struct, frozen=True, rename="camel"):
    """What was processed."""

    company_id: int
    tickets: int
    days: int


@app.callback()
def group() -> None:
    """Support analytics."""


@app.command()
def rebuild(company: CompanyId, json: AsJson = False) -> None:
    """Recompute the samples of every ticket and their totals. Safe to run while Sapa is serving."""
    show(asyncio.run(_rebuild(company, is_quiet=json)), json, "Rebuilt", ["companyId", "tickets", "days"])


async def _rebuild(company_id: int, is_quiet: bool) -> Rebuilt:
    async with reach_database() as database:
        async with database.connection() as db:
            await access.get_company(db, company_id)
            total = await get_total(db, company_id, "tickets")
        with open_progress("tickets", total, is_quiet=is_quiet) as progress:
            tickets = await rebuild_company(database, company_id, _counting(progress))
        with open_progress("days", PERCENT, is_quiet=is_quiet) as progress:
            days = await recount(database, company_id, lambda done, of: progress(PERCENT * done // of, done))
    return Rebuilt(company_id, tickets, days)


def _counting(progress: Show) -> Callable[[int], None]:
    done = 0

    def report(more: int) -> None:
        nonlocal done
        done += more
        progress(done, done)

    return report
