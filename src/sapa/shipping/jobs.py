"""What the worker does for shipments: callbacks, bookings and cancellations to settle, carriers to ask."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import structlog

from sapa.access import actions as access
from sapa.context import Kit
from sapa.db.pool import AWAY, Database
from sapa.sandbox.carriers import bookings as simulated
from sapa.shipping.bookings import cancel, reconcile
from sapa.shipping.bookings import queries as bookings
from sapa.shipping.carriers import call_log
from sapa.shipping.carriers.interface import CarrierAway, Tracked
from sapa.shipping.connections.actions import find_carrier, note_health
from sapa.shipping.shipments import due_queries
from sapa.shipping.shipments import queries as shipments
from sapa.shipping.shipments.due_queries import DueShipment
from sapa.shipping.shipments.status_changes import POLLED, apply_events
from sapa.shipping.tracking import actions as tracking
from sapa.shipping.tracking import hooks as callbacks

BATCH = 50
AT_ONCE = 4
CALLBACK_REST = 0.2
BOOKING_REST = 0.5
TRACKING_REST = 2.0
TAKEN_SECONDS = 60.0

Due = TypeVar("Due")

log = structlog.get_logger()


async def process_callbacks(kit: Kit, stopping: asyncio.Event) -> None:
    """The worker's service: of each company in the order in which they came."""

    async def work() -> int:
        async with kit.database.connection() as db:
            due = await callbacks.list_due(db, BATCH)
        for one in due:
            await callbacks.process(kit, one)
        return len(due)

    await _go_on(stopping, CALLBACK_REST, work)


async def look_after_bookings(kit: Kit, stopping: asyncio.Event) -> None:
    """The worker's service: bookings left behind or unknown, and cancellations without an answer."""

    async def work() -> int:
        async with kit.database.connection() as db:
            due = await bookings.list_due(db, BATCH)
            cancelled = await due_queries.list_cancelling(db, BATCH)
        await _each(due, lambda one: reconcile.look_after(kit, one))
        await _each(cancelled, lambda one: _settle_cancel(kit, one))
        return len(due) + len(cancelled)

    await _go_on(stopping, BOOKING_REST, work)


async def ask_carriers(kit: Kit, stopping: asyncio.Event) -> None:
    """The worker's service: how those go of which their carriers have said nothing for a while."""

    async def work() -> int:
        async with kit.database.connection() as db:
            due = await due_queries.list_untracked(db, BATCH)
        await _each(due, lambda one: _ask(kit, one))
        return len(due)

    await _go_on(stopping, TRACKING_REST, work)


async def forget_old(database: Database) -> None:
    """The worker's job: what carriers answered long ago, and what their simulators took on."""
    await call_log.forget_old(database)
    await simulated.forget_old(database)


async def bring_back(database: Database) -> None:
    """The worker's job: nothing waits for a time that a test clock was turned back from."""
    async with database.connection() as db:
        for company_id in await due_queries.list_turned_back(db):
            await due_queries.bring_back(db, company_id)


async def _go_on(stopping: asyncio.Event, rest: float, work: Callable[[], Awaitable[int]]) -> None:
    """At once again after a full batch, else after a rest."""
    while not stopping.is_set():
        done = await work()
        if done < BATCH:
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), rest)


async def _each(due: Sequence[Due], work: Callable[[Due], Awaitable[None]]) -> None:
    """A few at once; one that fails does not keep the others."""
    places = asyncio.Semaphore(AT_ONCE)

    async def run(one: Due) -> None:
        async with places:
            try:
                await work(one)
            except AWAY:
                raise
            except Exception:
                log.exception("work on a shipment failed", work=repr(one))

    await asyncio.gather(*map(run, due))


async def _settle_cancel(kit: Kit, due: DueShipment) -> None:
    async with kit.database.connection() as db:
        if not await due_queries.take_cancelling(db, due, TAKEN_SECONDS):
            return
        company = await access.get_company(db, due.company_id)
        kept = await shipments.get_kept(db, company.id, due.id)
        opened = await find_carrier(kit, db, company, kept.provider)
    if opened is None or opened.carrier.name != kept.adapter:
        outcome: cancel.CancelOutcome = CarrierAway("The carrier is not connected any more.")
    else:
        outcome = await cancel.ask_carrier(opened, kept, is_first=False)
    async with kit.database.transaction() as tx:
        await cancel.settle_cancel(tx, company, kept, outcome, is_watched=False)


async def _ask(kit: Kit, due: DueShipment) -> None:
    async with kit.database.connection() as db:
        if not await due_queries.take_untracked(db, due, TAKEN_SECONDS):
            return
        company = await access.get_company(db, due.company_id)
        kept = await shipments.get_kept(db, company.id, due.id)
        opened = await find_carrier(kit, db, company, kept.provider)
    told = await tracking.ask_carrier(opened, kept)
    async with kit.database.transaction() as tx:
        events = told.events if isinstance(told, Tracked) else ()
        await apply_events(tx, company, kept, events, POLLED)
    if opened is not None:
        await _note(kit.database, opened.connection.company.id, opened.connection.id, told)


async def _note(database: Database, company_id: int, connection_id: str, told: Tracked | str) -> None:
    async with database.connection() as db:
        await note_health(db, company_id, connection_id, told if isinstance(told, str) else None)
