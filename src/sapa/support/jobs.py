"""What the worker does for tickets: those in which nobody has anything to say any more are resolved."""

import time

import asyncpg
import structlog
from msgspec import Struct

from sapa.access.actions import get_company
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database
from sapa.db.sql import sql
from sapa.support import queries, tickets

BATCH = 200
RUN_SECONDS = 12.0
DEFAULT_HOURS = 72

log = structlog.get_logger()


class Silent(Struct, frozen=True):
    company_id: int
    id: str
    silent_since: str


# Those in which the customer waits for an answer are never resolved by themselves. Companies take turns, so that the
# many of one do not come before the few of another.
LIST_SILENT = sql(
    f"""
    SELECT due.company_id, due.id, due.silent_since
      FROM companies c
      LEFT JOIN support_settings s ON s.company_id = c.company_id
     CROSS JOIN LATERAL (
           SELECT t.company_id, t.id, t.silent_since, row_number() OVER (ORDER BY t.silent_since) AS place
             FROM tickets t
            WHERE t.company_id = c.company_id AND t.status <> 'resolved' AND t.waiting_since IS NULL
              AND t.silent_since <= now() + c.clock_offset
                                  - make_interval(hours => coalesce(s.auto_resolve_hours, {DEFAULT_HOURS}))
            ORDER BY t.silent_since
            LIMIT $1) AS due
     WHERE coalesce(s.auto_resolve_hours, {DEFAULT_HOURS}) > 0
     ORDER BY due.place, due.silent_since
     LIMIT $1""",
    row=Silent,
    crosses="the worker looks for due work over all companies, then resolves ticket by ticket",
)


async def resolve_silent(database: Database) -> None:
    """The worker's job: each ticket in a transaction of its own, each company's longest silent first."""
    ends = time.monotonic() + RUN_SECONDS
    while time.monotonic() < ends:
        async with database.connection() as db:
            due = await LIST_SILENT.all(db, BATCH)
        resolved = [await _resolve(database, ticket) for ticket in due if time.monotonic() < ends]
        if len(due) < BATCH or not any(resolved):
            return


async def _resolve(database: Database, silent: Silent) -> bool:
    """Unless somebody wrote in the meantime. What stands in one ticket's way is not in the others'."""
    try:
        async with database.transaction() as tx:
            company = await get_company(tx, silent.company_id)
            held = await queries.lock_ticket(tx, company.id, silent.id)
            if not held.is_active or held.silent_since != silent.silent_since or held.read_clock().waiting_since:
                return False
            await tickets.close(tx, company, held, None, "inactivity")
            return True
    except asyncpg.LockNotAvailableError:
        return False  # somebody is at it; the next run looks again
    except DatabaseAway:
        raise
    except Exception:
        log.exception("a silent ticket was not resolved", company_id=silent.company_id, ticket_id=silent.id)
        return False
