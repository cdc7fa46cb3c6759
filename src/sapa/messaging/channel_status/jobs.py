"""Asks channels what they think of the accounts, each by one worker."""

import asyncio

import structlog

from sapa.access.actions import get_company
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.messaging.channel_status import actions, queries
from sapa.messaging.channel_status.types import DueCheck
from sapa.messaging.channels.abilities import AccountRatings
from sapa.messaging.channels.interface import BadAccount
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.connections.environment import get_environment
from sapa.outbound.client import NotSent, Unclear
from sapa.work.loops import repeat_when_due

PAUSE_SECONDS = 1.0
NEW_SECONDS = 60.0
"""Between two searches for accounts that were never checked."""
CHECK_SECONDS = 3600.0
"""Between two checks of an account. Few of its changes are called back."""
BATCH = 100

RATING_SOURCES = [source for source, channel in CHANNELS.items() if isinstance(channel, AccountRatings)]

log = structlog.get_logger()


async def refresh_due(context: AppContext, stopping: asyncio.Event) -> None:
    """The service."""

    async def step() -> None:
        async with context.database.connection() as db:
            due = await queries.list_due(db, RATING_SOURCES, BATCH)
        for check in due:
            if stopping.is_set():
                return
            await _check(context, check)

    await repeat_when_due(context.database, queries.CHECKS, step, stopping, pause=PAUSE_SECONDS, most=NEW_SECONDS)


async def _check(context: AppContext, due: DueCheck) -> None:
    """An error at one account does not block the others. The next try is at the next check."""
    try:
        connected = await _claim(context, due)
        if connected is not None:
            await actions.refresh(context, connected)
    except DatabaseAway:
        raise
    except (NotSent, Unclear, BadAccount) as error:
        log.warning(
            "channel status not read",
            company_id=due.company_id,
            connection_id=due.connection_id,
            reason=str(error),
        )
    except Exception:
        log.exception("channel status not stored", company_id=due.company_id, connection_id=due.connection_id)


async def _claim(context: AppContext, due: DueCheck) -> ConnectedChannel | None:
    """The account, for one worker; None if another has it, or if it is not connected any more."""
    async with context.database.transaction() as tx:
        company = await get_company(tx, due.company_id)
        connected = await get_environment(company).accounts.find_by_id(context, tx, company, due.connection_id)
        if connected is None:
            await queries.end_checks(tx, company.id, due.connection_id)
            return None
        return connected if await queries.claim_check(tx, company.id, connected, CHECK_SECONDS) else None
