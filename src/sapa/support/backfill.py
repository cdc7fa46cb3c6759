"""Measures the tickets of a company again from their entries."""

from collections.abc import Callable
from functools import partial

from sapa.access.actions import get_company
from sapa.db.pool import Database, Tx
from sapa.support import queries
from sapa.support.ticket_change import TicketChange
from sapa.values.company import Company

BATCH = 500

Progress = Callable[[int], None]


async def rebuild(tx: Tx, company: Company, ticket_id: str) -> None:
    """Rebuilds the samples of one ticket. The last cycle comes last, and sets the ticket's clock."""
    change = TicketChange(await queries.lock_ticket(tx, company.id, ticket_id))
    for cycle in range(1, change.locked.cycle + 1):
        await change.replay(tx, company, cycle)


async def rebuild_company(database: Database, company_id: int, progress: Progress) -> int:
    """Each ticket has its own transaction, so that support continues. Returns the number of tickets; `progress` is
    called for each one."""
    async with database.connection() as db:
        company = await get_company(db, company_id)
    done, last = 0, ""
    while True:
        async with database.connection() as db:
            ids = await queries.list_ids(db, company.id, last, BATCH)
        for id in ids:
            await database.transact(partial(_rebuild, company, id))
            progress(1)
        done += len(ids)
        if len(ids) < BATCH:
            return done
        last = ids[-1]


async def _rebuild(company: Company, id: str, tx: Tx) -> None:
    await rebuild(tx, company, id)
