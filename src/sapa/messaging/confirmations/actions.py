"""Confirms what a person chose by a word: queued with the choice, sent by the worker, once."""

import structlog

from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http.errors import ApiError
from sapa.messaging.confirmations import queries
from sapa.messaging.confirmations.types import DueConfirmation
from sapa.messaging.consents import actions as consents
from sapa.messaging.consents.types import ConsentStatus
from sapa.messaging.consents.words import build_reply
from sapa.messaging.messages.types import NewMessage
from sapa.messaging.sending import actions as sending
from sapa.messaging.sending.types import MessageIn
from sapa.values.company import Company

LEASE_SECONDS = 300.0
"""Longer than a send takes; then its worker is gone."""
MAX_TRIES = 4
RETRY_SECONDS = 30.0

log = structlog.get_logger()


async def queue(tx: Tx, company: Company, word: NewMessage, status: ConsentStatus) -> None:
    """`word` is the message that the person wrote."""
    await queries.insert(tx, company.id, word.id, word.connection_id, word.source, word.identity, status)


async def list_due(context: AppContext, most: int) -> list[DueConfirmation]:
    async with context.database.connection() as db:
        return await queries.list_due(db, most)


async def process(context: AppContext, company: Company, due: DueConfirmation) -> None:
    """What a dead worker was sending may have been sent, so it is not sent again."""
    if due.is_abandoned:
        await _finish(context, due, "The worker ended while it sent the message.")
        return
    async with context.database.transaction() as tx:
        claimed = await queries.claim(tx, due, LEASE_SECONDS)
        settings = await consents.get_settings(tx, company)
    if claimed is None:
        return
    text = build_reply(claimed.status, settings, company.language)
    body = MessageIn(to=claimed.identity, sources=claimed.source, message=text)
    try:
        await sending.send_automatically(context, company, body, connection_id=claimed.connection_id)
    except ApiError as error:
        await _retry_or_finish(context, due, error)
    else:
        await _finish(context, due, None)


async def _retry_or_finish(context: AppContext, due: DueConfirmation, error: ApiError) -> None:
    """A busy channel is tried again."""
    if error.status in {429, 503}:
        async with context.database.transaction() as tx:
            if await queries.postpone(tx, due, RETRY_SECONDS, MAX_TRIES):
                return
    await _finish(context, due, error.message)


async def _finish(context: AppContext, due: DueConfirmation, problem: str | None) -> None:
    if problem is not None:
        log.warning("confirmation not sent", company_id=due.company_id, message_id=due.message_id, reason=problem)
    async with context.database.transaction() as tx:
        await queries.delete(tx, due)
