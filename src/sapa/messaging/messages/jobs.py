"""Expires messages whose outcome stayed unknown."""

import time
from functools import partial

import structlog

from sapa.access.actions import get_company, read_clock
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database, Tx
from sapa.messaging.messages import actions, queries
from sapa.messaging.messages.queries import UnsettledMessage

BATCH = 500
SECONDS = 15.0

log = structlog.get_logger()


async def expire_unsettled(database: Database) -> None:
    """Worker job. Each message has its own transaction, so that a failing one does not block the others."""
    ends = time.monotonic() + SECONDS
    async with database.connection() as db:
        found = await queries.list_unsettled(db, actions.STATUS_TIMEOUT, BATCH)
    for message in found:
        if time.monotonic() > ends:
            return
        try:
            await database.transact(partial(_expire, message))
        except DatabaseAway:
            raise
        except Exception:
            log.exception("message not expired", company_id=message.company_id, message_id=message.id)


async def _expire(message: UnsettledMessage, tx: Tx) -> None:
    company = await get_company(tx, message.company_id)
    await actions.expire_unsettled(tx, company, message.id, (await read_clock(tx, company.id)).now)
