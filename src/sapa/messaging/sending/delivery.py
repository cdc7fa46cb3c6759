"""Calls the channel and stores the outcome.

The channel's acceptance or refusal is final. A message that the channel deferred is sent again later. If the outcome is
unknown, the message stays pending until the channel reports on it, and is never sent again automatically.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import asyncpg
import structlog
from msgspec import Struct
from msgspec.structs import replace

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import BUSY, Tx
from sapa.db.retry import retry
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted
from sapa.messaging.channels.interface import OutgoingMessage, SendDeferral, SendReceipt, SendRefusal
from sapa.messaging.connections import accounts
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.consents import actions as consents
from sapa.messaging.consents.types import ConsentMissing
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.files.types import FileUnavailable
from sapa.messaging.history import actions as history
from sapa.messaging.history.actions import CallRecord
from sapa.messaging.messages import actions as messages
from sapa.messaging.messages.types import Message, SendFailed
from sapa.messaging.sending import acceptance, deferrals
from sapa.messaging.sending.attachments import attach_files, delete_uploaded
from sapa.messaging.sending.types import SendPlan
from sapa.outbound.client import NotSent, Unclear
from sapa.values.company import Company

MAX_TRIES = 4
RETRY_SECONDS = 20.0
"""How long after the first try another one may start."""
MAX_RETRY_AFTER = 5.0
RETRY_PAUSE = 0.3
OUTCOME_SECONDS = 30.0
"""How long storing the outcome may wait for the database."""
CONCERNS_ACCOUNT = frozenset({"auth", "billing", "config", "policy"})
CONCERNS_FILE = frozenset({"media", "validation"})

log = structlog.get_logger()

Result = TypeVar("Result")


class UnknownOutcome(Struct, frozen=True):
    """It is unknown whether the channel accepted the message."""

    reason: str


SendOutcome = SendReceipt | SendRefusal | SendDeferral | UnknownOutcome


async def deliver(
    call: OutboundCall, plan: SendPlan, call_record: CallRecord | None, message: Message
) -> Message | Accepted[Message]:
    company, id = call.company, message.message_id2
    outcome = await _dispatch(call.context, plan, id)
    if not isinstance(outcome, SendReceipt):
        outcome = replace(outcome, reason=plan.mask_secrets(outcome.reason))
    if isinstance(outcome, SendRefusal):
        failure = await retry_storing(
            lambda: call.transact(lambda tx: _refuse(tx, company, plan, call_record, id, outcome))
        )
        raise failure  # not concluded: a refusal frees the Idempotency-Key

    if isinstance(outcome, SendReceipt):
        accepted = await acceptance.accept(call, plan, call_record, message, outcome)
        if accepted is not None:
            return accepted

    async def store(tx: Tx) -> Message | Accepted[Message]:
        if isinstance(outcome, SendReceipt):
            return await _accept(tx, company, plan, call_record, id, outcome)
        if isinstance(outcome, SendDeferral):
            return await _defer(tx, call.context, company, plan, call_record, id, outcome)
        return await _mark_unclear(tx, company, plan, call_record, id, outcome)

    return await retry_storing(lambda: call.conclude(store, present=plan.conceal))


class _TemporaryRefusal(Exception):
    def __init__(self, outcome: SendRefusal, pause: float) -> None:
        self.outcome = outcome
        self.pause = pause


async def _dispatch(context: AppContext, plan: SendPlan, reference: str) -> SendOutcome:
    """Retries only what the channel certainly did not accept, and only for a limited time."""

    async def try_once() -> SendOutcome:
        outcome = await try_send(context, plan.connected, _build_outgoing(plan, reference))
        if (
            isinstance(outcome, SendRefusal)
            and outcome.retry_after is not None
            and outcome.retry_after <= MAX_RETRY_AFTER
        ):
            raise _TemporaryRefusal(outcome, outcome.retry_after)
        return outcome

    try:
        return await retry(
            try_once, _TemporaryRefusal, tries=MAX_TRIES, seconds=RETRY_SECONDS, pause=lambda failure: failure.pause
        )
    except _TemporaryRefusal as failure:
        return failure.outcome


async def try_send(context: AppContext, connected: ConnectedChannel, message: OutgoingMessage) -> SendOutcome:
    """One try. Consent is checked again right before the message goes, after its files are with the channel: it may
    have waited for its turn, for a retry or for an upload."""
    if message.is_marketing:
        find_objection = partial(_find_objection, context, connected, message)
        connected = replace(connected, connection=replace(connected.connection, find_objection=find_objection))
    prepared = await _prepare(context, connected, message)
    outcome = prepared if isinstance(prepared, SendRefusal) else await _call_channel(context, connected, prepared)
    return _mask(connected, outcome)


def _mask(connected: ConnectedChannel, outcome: SendOutcome) -> SendOutcome:
    mask = connected.connection.mask
    if not isinstance(outcome, SendReceipt):
        return replace(outcome, reason=mask(outcome.reason))
    return replace(outcome, missing=mask(outcome.missing)) if outcome.missing else outcome


async def _prepare(
    context: AppContext, connected: ConnectedChannel, message: OutgoingMessage
) -> OutgoingMessage | SendRefusal:
    """Whatever fails here, the message has not been sent."""
    find_objection = connected.connection.find_objection
    try:
        prepared = await attach_files(context, connected, message)
        objection = await find_objection() if find_objection is not None else None
    except (FileUnavailable, DatabaseAway, *BUSY) as error:
        return _build_temporary_refusal(str(error))
    except (NotSent, Unclear) as error:
        return _build_temporary_refusal(f"the channel could not be reached: {error}")
    except Exception:
        _log_failure(connected, message)
        return _build_temporary_refusal("the message's files could not be prepared")
    return objection or prepared


async def _call_channel(context: AppContext, connected: ConnectedChannel, message: OutgoingMessage) -> SendOutcome:
    try:
        outcome = await connected.channel.send(connected.connection, message)
        if isinstance(outcome, SendRefusal) and outcome.category in CONCERNS_FILE:
            await delete_uploaded(context, connected, message)
        return outcome
    except NotSent as error:
        return _build_temporary_refusal(f"the channel could not be reached: {error}")
    except Unclear as error:
        return UnknownOutcome(f"The channel did not answer: {error}")
    except Exception:
        _log_failure(connected, message)
        return UnknownOutcome("The channel's response could not be parsed.")


def _log_failure(connected: ConnectedChannel, message: OutgoingMessage) -> None:
    connection = connected.connection
    log.exception(
        "channel adapter failed",
        company_id=connection.company.id,
        connection_id=connection.id,
        source=connection.source,
        message_id=message.reference,
    )


async def _find_objection(
    context: AppContext, connected: ConnectedChannel, message: OutgoingMessage
) -> SendRefusal | None:
    """Why a marketing message must not be sent any more."""
    try:
        async with context.database.connection() as db:
            company, source = connected.connection.company, connected.connection.source
            reason = await consents.find_refusal(db, company, source, message.to)
    except (DatabaseAway, *BUSY) as error:
        return _build_temporary_refusal(f"consent could not be checked: {error}")
    return None if reason is None else SendRefusal(ConsentMissing.code, reason, "consent")


def _build_temporary_refusal(reason: str) -> SendRefusal:
    return SendRefusal("NOT_SENT", reason, "temporary", RETRY_PAUSE)


def _build_outgoing(plan: SendPlan, reference: str) -> OutgoingMessage:
    draft, answered, url = plan.draft, plan.answered, plan.unsubscribe_url
    return OutgoingMessage(
        reference,
        plan.to,
        draft.content,
        quoted=answered.message_id if answered else plan.quoted,
        thread=answered.thread if answered else (),
        subject=draft.subject,
        is_automatic=plan.is_automatic,
        is_marketing=draft.is_marketing,
        unsubscribe_url=url and f"{url}?message={reference}",
    )


async def retry_storing(write: Callable[[], Awaitable[Result]]) -> Result:
    """Retries storing the outcome while the database is away or busy, or while an echo of the message is processed.
    Nobody else knows the outcome, and storing it twice changes nothing."""
    temporary = (DatabaseAway, *BUSY, asyncpg.UniqueViolationError)
    return await retry(write, temporary, seconds=OUTCOME_SECONDS, pause=RETRY_PAUSE)


async def _accept(
    tx: Tx, company: Company, plan: SendPlan, call_record: CallRecord | None, id: str, receipt: SendReceipt
) -> Message | Accepted[Message]:
    connection = plan.connected.connection
    now = (await read_clock(tx, company.id)).now
    if receipt.alias is not None:  # lock order: contacts, messages, tickets
        await contacts.add_alias(tx, company, plan.to, receipt.alias)
    message = plan.reveal(await messages.accept(tx, company, connection.source, id, receipt, now))
    if plan.connected.has_error:
        await accounts.record_health(tx, company.id, connection.id, None)
    result = Accepted(message) if message.status == "pending" else message
    if call_record is not None:
        await history.record_response(tx, call_record, result)
    return result


async def _defer(
    tx: Tx,
    context: AppContext,
    company: Company,
    plan: SendPlan,
    call_record: CallRecord | None,
    id: str,
    deferral: SendDeferral,
) -> Message | Accepted[Message]:
    outgoing, vault = _build_outgoing(plan, id), context.vault if plan.draft.secrets else None
    message = plan.reveal(await deferrals.defer(tx, company, plan.connected.connection.id, outgoing, deferral, vault))
    result = Accepted(message) if message.status == "pending" else message
    if call_record is not None:
        await history.record_response(tx, call_record, result)
    return result


async def _mark_unclear(
    tx: Tx, company: Company, plan: SendPlan, call_record: CallRecord | None, id: str, unknown: UnknownOutcome
) -> Message | Accepted[Message]:
    message = plan.reveal(await messages.mark_unclear(tx, company, id, unknown.reason))
    result = Accepted(message) if message.status == "pending" else message
    if call_record is not None:
        await history.record_response(tx, call_record, result)
    return result


async def _refuse(
    tx: Tx, company: Company, plan: SendPlan, call_record: CallRecord | None, id: str, refusal: SendRefusal
) -> SendFailed | ConsentMissing:
    connection = plan.connected.connection
    now = (await read_clock(tx, company.id)).now
    is_first = await messages.refuse(tx, company, id, refusal, now) is not None
    if is_first and plan.connected.channel.capabilities.max_in_window is not None:
        await contacts.uncount_outbound(tx, company, connection.id, plan.to)
    failure: SendFailed | ConsentMissing = history.build_failure(messages.build_error(refusal), refusal.retry_after)
    if refusal.code == ConsentMissing.code:
        failure = ConsentMissing(refusal.reason)
    if call_record is not None:
        await history.record_response(tx, call_record, failure)
    if refusal.category in CONCERNS_ACCOUNT:
        await accounts.record_health(tx, company.id, connection.id, failure.message)
    return failure
