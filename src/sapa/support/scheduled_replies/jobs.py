"""The worker sends scheduled replies."""

import asyncio

import structlog

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.support.scheduled_replies import actions, queries
from sapa.support.scheduled_replies.types import DueReply
from sapa.work.loops import repeat_when_due

PAUSE_SECONDS = 1.0
BATCH = 20
CONCURRENCY = 4

log = structlog.get_logger()


async def send_due(context: AppContext, stopping: asyncio.Event) -> None:
    """The worker's service: a few at a time."""

    async def step() -> bool:
        async with context.database.connection() as db:
            due = await queries.list_due(db, BATCH)
        slots = asyncio.Semaphore(CONCURRENCY)
        await asyncio.gather(*(_send(context, slots, one) for one in due))
        return len(due) >= BATCH

    await repeat_when_due(context.database, queries.QUEUE, step, stopping, pause=PAUSE_SECONDS)


async def _send(context: AppContext, slots: asyncio.Semaphore, due: DueReply) -> None:
    """A failure of one does not stop the others."""
    async with slots:
        try:
            async with context.database.connection() as db:
                company = await access.get_company(db, due.company_id)
            await actions.send(context, company, due)
        except DatabaseAway:
            raise
        except Exception:
            log.exception("scheduled reply failed", company_id=due.company_id, scheduled_reply_id=due.id)
