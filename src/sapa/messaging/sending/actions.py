"""Sending a message: written down, then put before the channel, then what became of it.

What the channel took or refused is known at once. When nobody can tell, the message stays pending until the channel
reports on it, and is never sent again by itself.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import asyncpg
import structlog
from msgspec import Struct
from msgspec.structs import replace

from sapa.context import Kit
from sapa.customers import actions as customers
from sapa.db.pool import AWAY, BUSY, Tx
from sapa.http.outbound_call import Errand
from sapa.http.responses import Accepted
from sapa.messaging.channels.identities import list_spellings
from sapa.messaging.channels.interface import Identity, Outgoing, Refused, Sent
from sapa.messaging.connections import accounts
from sapa.messaging.connections.types import ChannelNotConnected
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.history import actions as history
from sapa.messaging.history.actions import Place
from sapa.messaging.messages import actions as statuses
from sapa.messaging.messages import queries as messages
from sapa.messaging.messages.queries import NewEvent, NewMessage
from sapa.messaging.messages.types import (
    MESSAGE_ID,
    ActiveTicket,
    ChannelUnsupported,
    FeatureSource,
    Message,
    SendError,
    SendFailed,
    WindowClosed,
)
from sapa.messaging.sending import preflight
from sapa.messaging.sending.pacing import wait_for_turn
from sapa.messaging.sending.preflight import Plan
from sapa.messaging.sending.types import AnySendIn, MessageIn
from sapa.outbound.client import NotSent, Unclear
from sapa.support import actions as support
from sapa.support.types import AgentInactive, TakenOver
from sapa.values.company import Company
from sapa.values.json import encode

MOST_TRIES = 4
RETRY_SECONDS = 20.0
"""How long after the first try another one may begin."""
LONGEST_WAIT = 5.0
AGAIN_AFTER = 0.3
OUTCOME_SECONDS = 30.0
"""How long the outcome may wait for the database."""
UNCLEAR = "UNCLEAR"
CONCERNS_ACCOUNT = frozenset({"auth", "billing", "config", "policy"})

REFUSALS = (WindowClosed, ChannelUnsupported, ChannelNotConnected, AgentInactive, TakenOver, SendFailed)
"""What may come of a plain message, besides its being sent."""

log = structlog.get_logger()

Result = TypeVar("Result")


class Unknown(Struct, frozen=True):
    """Nobody can tell whether the channel took the message."""

    reason: str


class Occasion(Struct, frozen=True, kw_only=True):
    """What a message is sent for: a call of the API, or a reply in a ticket, of which no record is kept."""

    agent_id: int | None
    gives_way: bool = False
    """Not to be sent while an agent is handling the chat."""
    feature_source: FeatureSource = "API"
    ticket_id: str | None = None
    connection_id: str | None = None
    """The one that it has to go out over."""
    is_handover: bool = False


async def send(errand: Errand, given: AnySendIn) -> Message | Accepted[Message]:
    return await _send(errand, given, Occasion(agent_id=given.agent_id, gives_way=given.ignore_active_ticket))


async def reply(errand: Errand, to: str, source: str, text: str, occasion: Occasion) -> Message | Accepted[Message]:
    given = MessageIn(to=to, sources=source, message=text, agent_id=occasion.agent_id)
    return await _send(errand, given, occasion)


async def _send(errand: Errand, given: AnySendIn, occasion: Occasion) -> Message | Accepted[Message]:
    kit, company = errand.kit, errand.company
    async with kit.database.connection() as db:
        await support.check_agent(db, company, occasion.agent_id)
        plan = await preflight.prepare(kit, db, company, given)
    if occasion.connection_id not in {None, plan.opened.connection.id}:
        raise ChannelNotConnected("The account that the customer wrote to is not connected any more.")
    if await wait_for_turn(kit, plan.opened, plan.draft.content):
        plan = await _reopen(kit, company, plan)
    place = history.new_place(plan.moment) if occasion.ticket_id is None else None
    message = await errand.intend(partial(_intend, errand, plan, place, occasion))
    errand.is_recorded = True
    # A caller who hangs up does not stop what is on its way.
    return await asyncio.shield(_carry_out(errand, plan, place, message))


async def _reopen(kit: Kit, company: Company, plan: Plan) -> Plan:
    """While it waited, the account may have been disconnected, or given another token."""
    async with kit.database.connection() as db:
        opened = await accounts.open_by_id(kit, db, company, plan.opened.connection.id)
    if opened is None:
        raise ChannelNotConnected("The channel was disconnected while the message waited for its turn.")
    return replace(plan, opened=opened)


async def _intend(errand: Errand, plan: Plan, place: Place | None, occasion: Occasion, tx: Tx) -> Message:
    company, connection = errand.company, plan.opened.connection
    id = MESSAGE_ID.new()
    contact_id, customer_id = await _meet(tx, company, plan, id)
    joined = await _join(tx, company, plan, occasion, id, contact_id)
    draft = plan.draft
    new = NewMessage(
        id=id,
        direction="out",
        source=connection.source,
        connection_id=connection.id,
        contact_id=contact_id,
        customer_id=customer_id,
        identity_kind=plan.to.kind,
        identity=plan.to.value,
        client_number=plan.to.value,
        connected_number=plan.opened.own_name,
        quoted=plan.answered.message_id if plan.answered else None,
        type=draft.type,
        body=draft.body,
        subject=draft.subject,
        template_id=draft.template.name if draft.template else None,
        media_url=draft.media_url,
        interactive=draft.interactive,
        metadata=draft.metadata,
        feature_source=occasion.feature_source,
        agent_id=occasion.agent_id,
        ticket_id=joined.ticket_id if joined else None,
        status="pending",
        created_at=(joined.at if joined else None) or plan.moment.now,
        request_id=place.id if place else None,
        request_stored_at=place.moment.stored_at if place else None,
    )
    message = await messages.store_message(tx, company.id, new)
    if place is not None:
        await history.record(tx, errand.kit.vault, company, place, errand.asked, message)
    return message


async def _join(
    tx: Tx, company: Company, plan: Plan, occasion: Occasion, id: str, contact_id: str
) -> support.Joined | None:
    """The ticket that the message belongs to."""
    connection_id = plan.opened.connection.id
    if occasion.gives_way and await support.is_handled(tx, company, connection_id, contact_id):
        raise ActiveTicket
    departure = support.Departure(
        message_id=id,
        connection_id=connection_id,
        contact_id=contact_id,
        body=plan.draft.body or plan.draft.type,
        agent_id=occasion.agent_id,
        ticket_id=occasion.ticket_id,
        is_handover=occasion.is_handover,
    )
    return await support.send_off(tx, company, departure)


async def _meet(tx: Tx, company: Company, plan: Plan, id: str) -> tuple[str, str | None]:
    """The contact and the customer they are. Somebody who was written to before is only looked up, where nobody counts:
    a lock would make all messages to one person wait for one another, each with a connection in hand."""
    connection = plan.opened.connection
    most = plan.opened.channel.capabilities.most_in_window
    thread = None if most is not None else await contacts.find_thread(tx, company, connection.id, plan.to)
    if thread is None:
        contact = await contacts.note_outbound(tx, company, connection.id, connection.source, plan.to, id, most)
        return contact.id, contact.customer_id
    known = await messages.find_customer_id(tx, company.id, thread.contact_id)
    return thread.contact_id, known or await _find_customer_id(tx, company, plan.to)


async def _find_customer_id(tx: Tx, company: Company, to: Identity) -> str | None:
    """Somebody may have become a customer otherwise than by writing."""
    if to.kind not in {"phone", "email"}:
        return None
    phones, email = (list_spellings(to.value), None) if to.kind == "phone" else ([], to.value)
    customer = await customers.find_by_spelling(tx, company, phones, email)
    return None if customer is None else customer.id


async def _carry_out(errand: Errand, plan: Plan, place: Place | None, message: Message) -> Message | Accepted[Message]:
    outcome = await _dispatch(errand.kit, plan, message.message_id2)
    if isinstance(outcome, Refused):
        refuse = partial(_refuse, errand, plan, place, message.message_id2, outcome)
        raise await _insist(partial(errand.transact, refuse))
    if isinstance(outcome, Sent):
        accept = partial(_accept, errand, plan, place, message.message_id2, outcome)
        return await _insist(partial(errand.conclude, accept))
    leave_open = partial(_leave_open, errand, place, message.message_id2, outcome)
    return await _insist(partial(errand.conclude, leave_open))


async def _insist(write: Callable[[], Awaitable[Result]]) -> Result:
    """What became of a message is written down again and again while the database is away or busy, or an echo of it
    comes in at the same moment: nobody else knows it, and writing it twice changes nothing."""
    ends = time.monotonic() + OUTCOME_SECONDS
    while True:
        try:
            return await write()
        except (*AWAY, *BUSY, asyncpg.UniqueViolationError):
            if time.monotonic() > ends:
                raise
            await asyncio.sleep(AGAIN_AFTER)


async def _dispatch(kit: Kit, plan: Plan, reference: str) -> Sent | Refused | Unknown:
    """Tries again only what the channel certainly does not have, and only for a while."""
    ends = time.monotonic() + RETRY_SECONDS
    for tries_left in range(MOST_TRIES - 1, -1, -1):
        outcome = await _try(plan, reference)
        if not isinstance(outcome, Refused) or outcome.retry_after is None or outcome.retry_after > LONGEST_WAIT:
            return outcome
        if not tries_left or time.monotonic() + outcome.retry_after > ends:
            return outcome
        await asyncio.sleep(outcome.retry_after)
    raise AssertionError("unreachable")


async def _try(plan: Plan, reference: str) -> Sent | Refused | Unknown:
    try:
        return await plan.opened.channel.send(plan.opened.connection, _build_outgoing(plan, reference))
    except NotSent as error:
        return Refused("NOT_SENT", f"the channel could not be reached: {error}", "transient", AGAIN_AFTER)
    except Unclear as error:
        return Unknown(f"The channel did not answer: {error}")
    except Exception:
        log.exception("a channel's adapter failed", source=plan.opened.connection.source, message_id2=reference)
        return Unknown("The channel's answer was not understood.")


def _build_outgoing(plan: Plan, reference: str) -> Outgoing:
    answered, draft = plan.answered, plan.draft
    if answered is None:
        return Outgoing(reference, plan.to, draft.content)
    return Outgoing(reference, plan.to, draft.content, answered.message_id, answered.thread, draft.subject)


async def _accept(errand: Errand, plan: Plan, place: Place | None, id: str, sent: Sent, tx: Tx) -> Message:
    company, source = errand.company, plan.opened.connection.source
    now = (await messages.read_clock(tx, company.id)).now
    if sent.alias is not None:  # contacts are locked before messages, and messages before tickets
        await contacts.note_alias(tx, company, plan.to, sent.alias)
    message = await statuses.accept(tx, company, source, id, sent.message_id, now)
    if sent.missing is not None:
        await messages.insert_events(tx, company.id, [NewEvent(id, "incomplete", now, now, detail=sent.missing)])
    if plan.opened.has_error:
        await accounts.note_health(tx, company.id, plan.opened.connection.id, None)
    await _answer(errand, place, message, tx)
    return message


async def _leave_open(
    errand: Errand, place: Place | None, id: str, unknown: Unknown, tx: Tx
) -> Message | Accepted[Message]:
    """Unless the channel reported on it meanwhile."""
    company = errand.company
    held = await messages.lock_message(tx, company.id, id)
    if held.status != "pending":
        result: Message | Accepted[Message] = await messages.get_message(tx, company.id, id)
    else:
        now = (await messages.read_clock(tx, company.id)).now
        message = await messages.set_error(tx, company.id, id, encode(SendError(UNCLEAR, unknown.reason)))
        await messages.insert_events(tx, company.id, [NewEvent(id, "unclear", now, now, detail=unknown.reason)])
        result = Accepted(message)
    await _answer(errand, place, result, tx)
    return result


async def _refuse(errand: Errand, plan: Plan, place: Place | None, id: str, refused: Refused, tx: Tx) -> SendFailed:
    company = errand.company
    now = (await messages.read_clock(tx, company.id)).now
    is_first = await statuses.refuse(tx, company, id, refused.code, refused.reason, now) is not None
    if is_first and plan.opened.channel.capabilities.most_in_window is not None:
        await contacts.take_back(tx, company, plan.opened.connection.id, plan.to)
    failure = history.build_failure(SendError(refused.code, refused.reason))
    await _answer(errand, place, failure, tx)
    if refused.category in CONCERNS_ACCOUNT:
        await accounts.note_health(tx, company.id, plan.opened.connection.id, failure.message)
    return failure


async def _answer(
    errand: Errand, place: Place | None, result: Message | Accepted[Message] | SendFailed, tx: Tx
) -> None:
    """In the record of the call, if there is one."""
    if place is not None:
        await history.answer(tx, errand.kit.vault, errand.company, place, errand.asked, result)
