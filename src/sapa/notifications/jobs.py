"""The worker sends queued notifications."""

import asyncio

import structlog

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.notifications import actions, queries
from sapa.notifications.types import DueNotification
from sapa.work.loops import repeat_when_due

PAUSE_SECONDS = 1.0
BATCH = 20
CONCURRENCY = 4

log = structlog.get_logger()


async def send_queued(context: AppContext, stopping: asyncio.Event) -> None:
    """The worker's service: a few at a time, companies in turn."""

    async def step() -> bool:
        due = await actions.list_due(context, BATCH)
        slots = asyncio.Semaphore(CONCURRENCY)
        await asyncio.gather(*(_send(context, slots, one) for one in due))
        return len(due) >= BATCH

    await repeat_when_due(context.database, queries.NOTIFICATIONS, step, stopping, pause=PAUSE_SECONDS)


async def _send(context: AppContext, slots: asyncio.Semaphore, due: DueNotification) -> None:
    """A failure of one does not stop the others; its outcome is unknown after its lease."""
    async with slots:
        try:
            async with context.database.connection() as db:
                company = await access.get_company(db, due.company_id)
            await actions.process(context, company, due)
        except DatabaseAway:
            raise
        except Exception:
            log.exception("notification failed", company_id=due.company_id, shipment_id=due.shipment_id, step=due.step)
