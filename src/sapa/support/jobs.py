"""Worker jobs for tickets: resolve silent ones, wake snoozed ones, mark missed targets, assign waiting ones."""

import time
from collections.abc import Awaitable, Callable

import asyncpg
import structlog

from sapa.access.actions import get_company, read_clock
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Connection, Database, Tx
from sapa.support import changes, queries, tickets
from sapa.support.presence import actions as presence
from sapa.support.rows import DueTicket
from sapa.support.ticket_change import TicketChange
from sapa.values.company import Company

BATCH = 200
RUN_SECONDS = 12.0

ListDue = Callable[[Connection, int], Awaitable[list[DueTicket]]]
Handle = Callable[[Tx, Company, DueTicket], Awaitable[bool]]

log = structlog.get_logger()


async def resolve_silent(database: Database) -> None:
    """Worker job. Each company's longest silent ticket comes first."""
    await _process(database, queries.list_silent, _resolve)


async def wake_snoozed(database: Database) -> None:
    """Worker job. Returns tickets to the queue when their time has come."""
    await _process(database, queries.list_snoozed, _wake)


async def mark_breached(database: Database) -> None:
    """Worker job. Marks tickets whose target for a response or resolution has passed."""
    await _process(database, queries.list_breached, _mark_breached)


async def assign_waiting(database: Database) -> None:
    """Worker job. One worker at a time assigns, so that every agent's load is known."""
    await _process(database, presence.list_unassigned, _assign)


async def _process(database: Database, list_due: ListDue, handle: Handle) -> None:
    """Each ticket has its own transaction. Ends when a batch changed nothing."""
    ends = time.monotonic() + RUN_SECONDS
    while time.monotonic() < ends:
        async with database.connection() as db:
            due = await list_due(db, BATCH)
        changed = [await _handle(database, handle, ticket) for ticket in due if time.monotonic() < ends]
        if len(due) < BATCH or not any(changed):
            return


async def _handle(database: Database, handle: Handle, due: DueTicket) -> bool:
    """A failing ticket does not block the others."""
    try:
        async with database.transaction() as tx:
            return await handle(tx, await get_company(tx, due.company_id), due)
    except asyncpg.LockNotAvailableError:
        return False  # locked by another transaction; the next run tries again
    except DatabaseAway:
        raise
    except Exception:
        log.exception("due ticket not changed", company_id=due.company_id, ticket_id=due.id, job=handle.__name__)
        return False


async def _resolve(tx: Tx, company: Company, silent: DueTicket) -> bool:
    """Skips a ticket with a new message, and one that was snoozed meanwhile."""
    locked = await queries.lock_ticket(tx, company.id, silent.id)
    is_silent = locked.is_active and locked.silent_since == silent.due_at and locked.snoozed_until is None
    if not is_silent or locked.read_clock().waiting_since:
        return False
    await tickets.close(tx, company, locked, None, "inactivity")
    return True


async def _wake(tx: Tx, company: Company, snoozed: DueTicket) -> bool:
    """Skips a ticket that was woken or snoozed again meanwhile."""
    locked = await queries.lock_ticket(tx, company.id, snoozed.id)
    if locked.snoozed_until is None or locked.snoozed_until > (await read_clock(tx, company.id)).now:
        return False
    await changes.wake(tx, company, TicketChange(locked))
    return True


async def _mark_breached(tx: Tx, company: Company, due: DueTicket) -> bool:
    """Skips a ticket that was answered or changed meanwhile."""
    locked = await queries.lock_ticket(tx, company.id, due.id)
    if locked.sla_due_at != due.due_at:
        return False
    change = TicketChange(locked)
    change.check_targets()
    await change.write(tx, company)
    return True


async def _assign(tx: Tx, company: Company, waiting: DueTicket) -> bool:
    return await tickets.assign_to_free_agent(tx, company, waiting.id)
