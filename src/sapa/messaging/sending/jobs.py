"""Sends deferred messages again."""

import asyncio
from functools import partial

import structlog
from msgspec.structs import replace

from sapa.access.actions import get_company, read_clock
from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.db.wakeups import Wakeup
from sapa.messaging.channels.interface import SendDeferral, SendReceipt, SendRefusal, TemplateCall
from sapa.messaging.connections import accounts
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.messages import actions as messages
from sapa.messaging.sending import deferrals, queries
from sapa.messaging.sending.delivery import (
    CONCERNS_ACCOUNT,
    SendOutcome,
    UnknownOutcome,
    retry_storing,
    try_send,
)
from sapa.messaging.sending.queries import DeferredMessage, DueMessage
from sapa.messaging.templates.filling import hide_secrets, list_secrets
from sapa.values.company import Company
from sapa.work.loops import repeat, wait_for_due

PAUSE_SECONDS = 1.0
MAX_CONCURRENT = 4
MAX_PER_COMPANY = 2

log = structlog.get_logger()


async def send_deferred(context: AppContext, stopping: asyncio.Event) -> None:
    """Worker service. A message whose worker dies while it is sent is not sent again: its outcome is unknown."""
    running: dict[DueMessage, asyncio.Task[None]] = {}

    async def step(wakeup: Wakeup) -> None:
        wakeup.begin()
        async with context.database.connection() as db:
            due = await queries.list_due(db, MAX_PER_COMPANY, MAX_CONCURRENT)
            abandoned = await queries.list_abandoned(db, queries.ABANDONED_SECONDS)
        for each in abandoned:
            await _settle_abandoned(context, each)
        for each in [each for each in due if each not in running][: MAX_CONCURRENT - len(running)]:
            running[each] = asyncio.create_task(_send(context, each))
        await wait_for_due(wakeup, running, stopping)

    with context.database.wakeups.open(queries.DEFERRED, PAUSE_SECONDS) as wakeup:
        try:
            await repeat(partial(step, wakeup), stopping)
        finally:
            await asyncio.gather(*running.values(), return_exceptions=True)


async def _send(context: AppContext, due: DueMessage) -> None:
    async with context.database.transaction() as tx:
        company = await get_company(tx, due.company_id)
        deferred = await queries.claim_deferred(tx, company.id, due.message_id)
        if deferred is None:
            return
        if not await messages.is_pending(tx, company, due.message_id):
            await queries.delete_deferred(tx, company.id, due.message_id)
            return
        connected = await get_environment(company).accounts.find_by_id(context, tx, company, deferred.connection_id)
    outcome: SendOutcome = SendRefusal("CHANNEL_NOT_CONNECTED", "The channel is no longer connected.", "config")
    if connected is not None:
        outgoing = deferrals.open_outgoing(context, company, due.message_id, deferred)
        outcome = await try_send(context, connected, outgoing)
        if isinstance(outgoing.content, TemplateCall) and deferred.is_sealed and not isinstance(outcome, SendReceipt):
            outcome = replace(outcome, reason=hide_secrets(outcome.reason, list_secrets(outgoing.content)))
    await retry_storing(
        lambda: context.database.transact(
            lambda tx: _conclude(tx, company, connected, due.message_id, deferred, outcome)
        )
    )


async def _conclude(
    tx: Tx,
    company: Company,
    connected: ConnectedChannel | None,
    id: str,
    deferred: DeferredMessage,
    outcome: SendOutcome,
) -> None:
    now = (await read_clock(tx, company.id)).now
    match outcome:
        case SendDeferral():
            await deferrals.defer_again(tx, company, id, deferred, outcome, now)
            return
        case SendRefusal(retry_after=float()):  # the server cannot be reached for the moment
            again = SendDeferral(outcome.code, outcome.reason)
            await deferrals.defer_again(tx, company, id, deferred, again, now)
            return
        case SendRefusal():
            await messages.refuse(tx, company, id, outcome, now)
            if outcome.category in CONCERNS_ACCOUNT:
                await accounts.record_health(tx, company.id, deferred.connection_id, outcome.reason)
        case SendReceipt() if connected is not None:
            await messages.accept(tx, company, connected.connection.source, id, outcome, now)
        case UnknownOutcome():
            await messages.mark_unclear(tx, company, id, outcome.reason)
    await queries.delete_deferred(tx, company.id, id)


async def _settle_abandoned(context: AppContext, abandoned: DueMessage) -> None:
    company_id, id = abandoned.company_id, abandoned.message_id
    log.warning("deferred message abandoned", company_id=company_id, message_id=id)
    async with context.database.transaction() as tx:
        company = await get_company(tx, company_id)
        await messages.mark_unclear(tx, company, id, "The worker ended while it sent the message.")
        await queries.delete_deferred(tx, company_id, id)
