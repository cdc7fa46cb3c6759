"""Recounts all samples of a company, while others may be written."""

from collections.abc import Callable, Mapping
from datetime import date

from sapa.db.pool import Database, Tx
from sapa.support.samples import queries, tallies
from sapa.support.samples.queries import SampledTicket

TICKETS_PER_TRANSACTION = 1_000

Progress = Callable[[int, int], None]
"""Called with the number done and the total."""


async def recount(database: Database, company_id: int, progress: Progress) -> int:
    """By ticket, then by day. Returns the number of days."""
    await _recount_tickets(database, company_id)
    async with database.connection() as db:
        days = await queries.list_days(db, company_id)
    for number, day in enumerate(days, start=1):
        await _recount_day(database, company_id, day)
        progress(number, len(days))
    return len(days)


async def _recount_tickets(database: Database, company_id: int) -> None:
    last = SampledTicket("", 0)
    while True:
        async with database.connection() as db:
            sources = await queries.list_tickets_after(db, company_id, last, TICKETS_PER_TRANSACTION)
        if not sources:
            return
        await _recount(database, company_id, sources)
        last = max(sources)


async def _recount(database: Database, company_id: int, sources: Mapping[SampledTicket, str]) -> None:
    async def work(tx: Tx) -> None:
        begun = await tallies.recount_tickets(tx, company_id, sources)
        await queries.add_to_cells(tx, company_id, tallies.build_additions([], begun))

    await database.transact(work)


async def _recount_day(database: Database, company_id: int, day: date) -> None:
    async def work(tx: Tx) -> None:
        await queries.recount_cells(tx, company_id, await queries.list_cells(tx, company_id, day))

    await database.transact(work)
