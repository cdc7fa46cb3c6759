"""What comes in: messages of customers, and those that our side sent by other means."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from sapa.db.codecs import decode_instant, encode_instant
from sapa.db.pool import Tx
from sapa.events import emit
from sapa.messaging.channels.identities import canonical
from sapa.messaging.channels.interface import Amendment, Identity, Inbound, Source, StatusReport
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.contacts.actions import Contact
from sapa.messaging.messages import actions as statuses
from sapa.messaging.messages import queries as messages
from sapa.messaging.messages.actions import list_values, to_milliseconds
from sapa.messaging.messages.queries import Held, NewEvent, NewMessage
from sapa.messaging.messages.types import (
    MESSAGE_ID,
    Choice,
    Message,
    MessageReceived,
    ReceivedMessage,
    Sender,
    Window,
)
from sapa.support import actions as support
from sapa.support.actions import Arrival, Joined
from sapa.values.company import Company
from sapa.values.json import encode

REPLY_WINDOW = timedelta(hours=72)
ECHO_WINDOW = timedelta(minutes=2)
EVENT_KINDS = {"edit": "edited", "revoke": "revoked", "reaction": "reacted"}
LONGEST_NUMBER = 320


async def receive(
    tx: Tx,
    company: Company,
    connection_id: str,
    source: Source,
    inbound: Inbound,
    contact: Contact,
    *,
    connected_number: str = "",
    id: str | None = None,
    media_url: str | None = None,
) -> Message | None:
    """The stored message; None when it was known, or is one of ours that comes back as an echo.

    `connected_number` is our side (`Opened.own_name`). Whoever serves the message's files chooses its id beforehand
    and gives their address.
    """
    now = (await messages.read_clock(tx, company.id)).now
    if inbound.is_echo and await _is_own(tx, company, source, inbound, contact, now):
        return None
    new = _build_message(connection_id, source, inbound, contact, connected_number, now, id, media_url)
    message = await messages.insert_message(tx, company.id, new)
    if message is None or inbound.is_imported:
        return message
    if inbound.is_echo:
        return await _join(tx, company, message, await support.echo(tx, company, _build_arrival(new, source, contact)))
    written_at = None
    if not inbound.is_automatic:
        written_at = await contacts.note_inbound(
            tx, company, connection_id, contact.id, new.created_at, message.message_id2
        )
        await _note_reply(tx, company, source, inbound, contact, new.created_at, now)
        message = await _join(
            tx, company, message, await support.hear(tx, company, _build_arrival(new, source, contact))
        )
    await emit(tx, company, MessageReceived(_build_received(message, source, inbound, contact, written_at)))
    return message


async def amend(tx: Tx, company: Company, source: Source, amendment: Amendment) -> Message | None:
    """A message that was edited, taken back or reacted to: an event of the original; an edit changes its text, too."""
    id = await messages.find_id(tx, company.id, source, amendment.message_id)
    if id is None:
        return None
    now = (await messages.read_clock(tx, company.id)).now
    at = to_milliseconds(amendment.at)
    event = NewEvent(id, EVENT_KINDS[amendment.kind], at, min(at, now), detail=amendment.body)
    is_new = await messages.insert_events(tx, company.id, [event]) > 0
    if is_new and amendment.kind == "edit":
        return await messages.set_body(tx, company.id, id, amendment.body)
    return await messages.get_message(tx, company.id, id)


async def _join(tx: Tx, company: Company, message: Message, joined: Joined | None) -> Message:
    """The message in the ticket that it belongs to."""
    if joined is None:
        return message
    agent_id = joined.agent.id if joined.agent else None
    await messages.set_ticket(tx, company.id, message.message_id2, joined.ticket_id, agent_id)
    return replace(message, ticket_id=joined.ticket_id, agent_id=agent_id)


async def _is_own(tx: Tx, company: Company, source: Source, inbound: Inbound, contact: Contact, now: datetime) -> bool:
    """Whether an echo is of a message that we sent ourselves. One that the channel has no reference for may come
    before its own call is answered."""
    reference = inbound.reference if inbound.reference and MESSAGE_ID.matches(inbound.reference) else None
    held = await messages.find_locked(tx, company.id, source, reference, inbound.message_id)
    if held is None:
        whom = _list_names(inbound, contact)
        held = await messages.find_locked_pending(tx, company.id, source, whom, now - ECHO_WINDOW, inbound.body)
    if held is None:
        return False
    report = StatusReport("sent", inbound.at, message_id=inbound.message_id, reference=held.id)
    await statuses.apply(tx, company, source, report, now)
    return True


async def _note_reply(
    tx: Tx, company: Company, source: Source, inbound: Inbound, contact: Contact, at: datetime, now: datetime
) -> None:
    """The message that it quotes was answered; without a quotation the latest one of the last days."""
    held = await _find_answered(tx, company, source, inbound, contact, at)
    if held is None or held.replied_at is not None:
        return
    await statuses.imply_delivery(tx, company, held, at, now)
    await messages.set_replied(tx, company.id, held.id, max(at, held.state.created_at))
    await messages.insert_events(tx, company.id, [NewEvent(held.id, "replied", at, at)])


async def _find_answered(
    tx: Tx, company: Company, source: Source, inbound: Inbound, contact: Contact, at: datetime
) -> Held | None:
    for quoted in [inbound.quoted, *reversed(inbound.thread)]:
        if quoted and (held := await messages.find_locked(tx, company.id, source, None, quoted)):
            return held
    reference = inbound.quoted_reference
    if reference and MESSAGE_ID.matches(reference):
        return await messages.find_locked(tx, company.id, source, reference, None)
    if inbound.quoted:
        return None
    whom = _list_names(inbound, contact)
    return await messages.find_locked_latest(tx, company.id, source, whom, at - REPLY_WINDOW, at)


def _list_names(inbound: Inbound, contact: Contact) -> list[str]:
    """Whatever they were written to as: a channel may know them by another name than our side does."""
    known = [*inbound.sender, *contact.identities]
    return list(dict.fromkeys(value for identity in known for value in list_values(identity)))


def _build_received(
    message: Message, source: Source, inbound: Inbound, contact: Contact, written_at: datetime | None
) -> ReceivedMessage:
    """The window is open from the last of all that they wrote, whatever came in last. A machine opens none."""
    lasts = CHANNELS[source].capabilities.window
    closes_at = None if lasts is None or written_at is None else written_at + lasts
    window = None if closes_at is None else Window(decode_instant(encode_instant(closes_at)))
    fields = {name: getattr(message, name) for name in message.__struct_fields__}
    return ReceivedMessage(**fields, contact=Sender(contact.id, _clean(inbound.sender_name)), window=window)


def _build_message(
    connection_id: str, source: Source, inbound: Inbound, contact: Contact, connected_number: str, now: datetime,
    id: str | None, media_url: str | None,
) -> NewMessage:  # fmt: skip
    at = min(to_milliseconds(inbound.at), now)
    identity = canonical(inbound.sender[0])
    direction, feature, status = _kind_of(inbound)
    return NewMessage(
        id=id or MESSAGE_ID.new(),
        direction=direction,
        source=source,
        connection_id=connection_id,
        contact_id=contact.id,
        customer_id=contact.customer_id,
        identity_kind=identity.kind,
        identity=identity.value,
        client_number=_shown(inbound.sender),
        connected_number=connected_number,
        provider_id=inbound.message_id,
        quoted=inbound.quoted,
        thread=list(inbound.thread) or None,
        type=inbound.type,
        body=_clean(inbound.body),
        subject=_clean(inbound.subject),
        media_url=media_url,
        interaction=_build_choice(inbound),
        feature_source=feature,
        status=status,
        created_at=at,
        sent_at=at,
        delivered_at=at if inbound.is_echo else now,
    )


def _build_arrival(new: NewMessage, source: Source, contact: Contact) -> Arrival:
    return Arrival(
        message_id=new.id,
        source=source,
        connection_id=new.connection_id,
        contact_id=contact.id,
        customer_id=contact.customer_id,
        identity=new.identity,
        client_number=new.client_number,
        connected_number=new.connected_number,
        body=new.body or new.type,
        at=new.created_at,
    )


def _kind_of(inbound: Inbound) -> tuple[str, str, str]:
    """Direction, feature and status. What our side wrote on its phone has arrived as far as anybody will tell."""
    feature = "IMPORT" if inbound.is_imported else "BUSINESS_APP" if inbound.is_echo else "CUSTOMER"
    return ("out", feature, "delivered") if inbound.is_echo else ("in", feature, "received")


def _shown(identities: Sequence[Identity]) -> str:
    return canonical(identities[0]).value[:LONGEST_NUMBER]


def _build_choice(inbound: Inbound) -> bytes | None:
    chosen = inbound.interaction
    return None if chosen is None else encode(Choice(chosen.kind, chosen.id, chosen.title))


def _clean(text: str | None) -> str | None:
    """Without what the database cannot hold."""
    return None if text is None else text.replace("\0", "")
