"""The worker's services for shipments: callbacks, bookings, cancellations and polling."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database
from sapa.shipping.bookings import actions as bookings
from sapa.shipping.bookings import cancel, reconcile
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.tracking import actions as tracking
from sapa.shipping.tracking import hooks as callbacks
from sapa.work.loops import repeat_when_due

BATCH = 50
CONCURRENCY = 4
CALLBACK_PAUSE = 0.2
BOOKING_PAUSE = 0.5
TRACKING_PAUSE = 2.0

Due = TypeVar("Due")

log = structlog.get_logger()


async def process_callbacks(context: AppContext, stopping: asyncio.Event) -> None:
    """Applies stored callbacks, in order of arrival per company."""

    async def step() -> bool:
        due = await callbacks.list_due(context, BATCH)
        for one in due:
            await callbacks.process(context, one)
        return len(due) >= BATCH

    await repeat_when_due(context.database, callbacks.QUEUE, step, stopping, pause=CALLBACK_PAUSE)


async def reconcile_bookings(context: AppContext, stopping: asyncio.Event) -> None:
    """Settles bookings with an open outcome and cancellations without a response."""

    async def step() -> bool:
        due = await reconcile.list_due(context, BATCH)
        cancelled = await cancel.list_due(context, BATCH)
        await _run_each(due, lambda one: reconcile.process(context, one))
        await _run_each(cancelled, lambda one: cancel.settle_due(context, one))
        return len(due) + len(cancelled) >= BATCH

    await repeat_when_due(context.database, bookings.QUEUE, step, stopping, pause=BOOKING_PAUSE)


async def poll_carriers(context: AppContext, stopping: asyncio.Event) -> None:
    """Polls the carriers of shipments that have had no event for a while."""

    async def step() -> bool:
        due = await tracking.list_due(context, BATCH)
        await _run_each(due, lambda one: tracking.poll(context, one))
        return len(due) >= BATCH

    await repeat_when_due(context.database, tracking.QUEUE, step, stopping, pause=TRACKING_PAUSE)


async def reschedule(database: Database) -> None:
    """Makes work due that waits for a time from which a test clock was set back."""
    async with database.connection() as db:
        await shipments.reschedule_rewound(db)
        await bookings.reschedule_rewound(db)


async def _run_each(due: Sequence[Due], work: Callable[[Due], Awaitable[None]]) -> None:
    """Runs a few at a time; a failure does not stop the others."""
    slots = asyncio.Semaphore(CONCURRENCY)

    async def run(one: Due) -> None:
        async with slots:
            try:
                await work(one)
            except DatabaseAway:
                raise
            except Exception:
                log.exception("due shipment failed", work=repr(one))

    await asyncio.gather(*map(run, due))
