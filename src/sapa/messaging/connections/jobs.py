"""Renews tokens before they expire, each by one worker."""

import asyncio

import msgspec
import structlog

from sapa.access.actions import get_company
from sapa.context import AppContext
from sapa.messaging.channels.abilities import Renewable
from sapa.messaging.channels.interface import BadAccount
from sapa.messaging.connections import accounts, queries
from sapa.messaging.connections.accounts import STORED, ConnectedChannel
from sapa.messaging.connections.queries import DueRenewal
from sapa.outbound.client import NotSent, Unclear
from sapa.work.loops import repeat_when_due

PAUSE_SECONDS = 30.0
RETRY_SECONDS = 600.0
RENEW_AFTER_SHARE = 0.5
"""Renewed after this share of its lifetime, so that a day of failures does no harm."""
BATCH = 100

log = structlog.get_logger()


async def renew_due(context: AppContext, stopping: asyncio.Event) -> None:
    """The service."""

    async def step() -> None:
        async with context.database.connection() as db:
            due = await queries.list_due(db, BATCH)
        for each in due:
            await renew(context, each)

    await repeat_when_due(context.database, queries.RENEWALS, step, stopping, pause=PAUSE_SECONDS)


async def renew(context: AppContext, due: DueRenewal) -> None:
    """Claim, request and result are separate steps: no transaction is open during the call."""
    async with context.database.connection() as db:
        if not await queries.claim_renewal(db, due.company_id, due.id, RETRY_SECONDS):
            return
        connected = await STORED.find_by_id(context, db, await get_company(db, due.company_id), due.id)
    if connected is None or not isinstance(connected.channel, Renewable):
        return
    error = await _exchange(context, connected)
    if error is not None:
        log.warning("token not renewed", company_id=due.company_id, connection_id=due.id, reason=error)
        async with context.database.connection() as db:
            await accounts.record_health(db, due.company_id, due.id, f"The token was not renewed: {error}")


async def _exchange(context: AppContext, connected: ConnectedChannel) -> str | None:
    connection, channel = connected.connection, connected.channel
    if not isinstance(channel, Renewable):
        return None
    try:
        renewal = await channel.renew(connection)
    except (BadAccount, NotSent, Unclear) as error:
        return connection.mask(str(error) or type(error).__name__)
    sealed = context.vault.seal(msgspec.json.encode(dict(renewal.credentials)), connection.company.id, connection.id)
    async with context.database.connection() as db:
        seconds = renewal.seconds * RENEW_AFTER_SHARE
        await queries.store_renewal(db, connection.company.id, connection.id, sealed, seconds)
    return None
