"""Worker job for tickets: resolves silent ones."""

import time

import asyncpg
import structlog

from sapa.access.actions import get_company
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database
from sapa.support import queries, tickets
from sapa.support.types import SilentTicket

BATCH = 200
RUN_SECONDS = 12.0

log = structlog.get_logger()


async def resolve_silent(database: Database) -> None:
    """Worker job. Each ticket has its own transaction; each company's longest silent ticket comes first."""
    ends = time.monotonic() + RUN_SECONDS
    while time.monotonic() < ends:
        async with database.connection() as db:
            due = await queries.list_silent(db, BATCH)
        resolved = [await _resolve(database, ticket) for ticket in due if time.monotonic() < ends]
        if len(due) < BATCH or not any(resolved):
            return


async def _resolve(database: Database, silent: SilentTicket) -> bool:
    """Skips a ticket with a new message. A failing ticket does not block the others."""
    try:
        async with database.transaction() as tx:
            company = await get_company(tx, silent.company_id)
            locked = await queries.lock_ticket(tx, company.id, silent.id)
            if not locked.is_active or locked.silent_since != silent.silent_since or locked.read_clock().waiting_since:
                return False
            await tickets.close(tx, company, locked, None, "inactivity")
            return True
    except asyncpg.LockNotAvailableError:
        return False  # locked by another transaction; the next run tries again
    except DatabaseAway:
        raise
    except Exception:
        log.exception("silent ticket not resolved", company_id=silent.company_id, ticket_id=silent.id)
        return False
