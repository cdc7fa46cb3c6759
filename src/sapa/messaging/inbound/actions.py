"""Receives messages from customers, and echoes of what the company sent by other means."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.db.codecs import decode_instant, encode_instant
from sapa.db.pool import Tx
from sapa.events import emit
from sapa.messaging.channel_events import actions as channel_events
from sapa.messaging.channels.identities import canonical
from sapa.messaging.channels.interface import Identity, MessageAmendment, ReceivedItem, Source
from sapa.messaging.channels.received_parts import (
    NO_PARTS,
    MessageContext,
    MessageParts,
    encode_parts,
    parse_parts,
)
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.confirmations import actions as confirmations
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.consents import actions as consents
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.contacts.types import Contact, Window
from sapa.messaging.inbound import carts
from sapa.messaging.media import actions as media
from sapa.messaging.messages import actions as messages
from sapa.messaging.messages.types import (
    MESSAGE_ID,
    Choice,
    Message,
    MessageReceived,
    NewMessage,
    ReceivedMessage,
    Sender,
)
from sapa.messaging.tickets import TICKETS, InboundMessage
from sapa.values.company import Company
from sapa.values.instants import truncate_to_milliseconds
from sapa.values.json import encode

MAX_NUMBER_LENGTH = 320


class CallbackContext(Struct, frozen=True):
    """The connection and time of a received item."""

    context: AppContext
    company: Company
    connected: ConnectedChannel
    now: datetime
    """The company's time."""


async def receive_item(tx: Tx, callback_context: CallbackContext, inbound: ReceivedItem, id: str | None = None) -> bool:
    """Whether it came too early: it may quote a message whose id is not known yet.

    A person who writes becomes a customer; the recipient of an echo or the sender of an automatic reply does not.
    """
    company, connection = callback_context.company, callback_context.connected.connection
    source, now, is_written = connection.source, callback_context.now, _is_written(inbound)
    find = contacts.find_or_create if is_written else contacts.find_or_create_contact
    contact = await find(tx, company, inbound.sender, inbound.sender_name)
    id = id or MESSAGE_ID.new()
    files = media.build_received(connection, id, inbound.media)
    message = await receive(
        tx, company, connection.id, source, inbound, contact,
        connected_number=callback_context.connected.own_name,
        id=id,
        media_url=media.build_address(callback_context.context, id) if files else None,
        attachments=media.encode_attachments(files),
    )  # fmt: skip
    if message is not None:
        await media.record_received(tx, connection, files, inbound.media)
        for amendment in await channel_events.list_amendments(tx, company, source, inbound.message_id):
            await messages.amend(tx, company, source, amendment)
    elif is_written and inbound.quoted:
        await messages.record_reply(tx, company, source, inbound, contact, _get_time(inbound, now), now)
    return is_written and await messages.is_reply_early(tx, company, source, inbound, contact, now)


async def receive_amendment(
    tx: Tx, callback_context: CallbackContext, amendment: MessageAmendment, *, is_last_try: bool
) -> bool:
    """Whether it came before its message. After the last try it is stored, and applied when the message arrives."""
    company, connection = callback_context.company, callback_context.connected.connection
    if await messages.amend(tx, company, connection.source, amendment):
        return False
    if is_last_try:
        await channel_events.record_amendment(tx, company, connection.source, connection.id, amendment)
    return True


async def receive(
    tx: Tx,
    company: Company,
    connection_id: str,
    source: Source,
    inbound: ReceivedItem,
    contact: Contact,
    *,
    connected_number: str = "",
    id: str | None = None,
    media_url: str | None = None,
    attachments: bytes = b"[]",
) -> Message | None:
    """The stored message; None if it is stored already, or is an echo of one of ours.

    `connected_number` is the company's side (`ConnectedChannel.own_name`). To serve the message's files, choose its id
    beforehand and pass their address.
    """
    now = (await read_clock(tx, company.id)).now
    parts = await _complete_parts(tx, company, source, inbound)
    new = _build_message(connection_id, source, inbound, contact, connected_number, now, id, media_url, parts)
    new = replace(new, attachments=attachments)
    message = await messages.record_inbound(tx, company, inbound, contact, new, now)
    if message is None or inbound.is_imported:
        return message
    tickets, linked = TICKETS.installed, _build_linked(new, source, contact, inbound)
    if inbound.is_echo:
        link = await tickets.link_echo(tx, company, linked)
        return message if link is None else await messages.link_ticket(tx, company, message, link)
    written_at = None
    if not inbound.is_automatic:
        written_at = await contacts.record_inbound(
            tx, company, connection_id, contact.id, new.created_at, message.message_id2
        )
        await messages.record_reply(tx, company, source, inbound, contact, new.created_at, now)
        if await _apply_word(tx, company, source, inbound, contact, new):
            link = await tickets.find_link(tx, company, connection_id, contact.id)
        else:
            link = await tickets.link_inbound(tx, company, linked)
        message = message if link is None else await messages.link_ticket(tx, company, message, link)
        if parts.order is not None and company.cart_orders:
            order = await carts.place_order(tx, company, contact, inbound, parts.order)
            completed = encode_parts(replace(parts, order=order))
            message = await messages.set_parts(tx, company, message.message_id2, completed)
    await emit(tx, company, MessageReceived(_build_received(message, source, inbound, contact, written_at)))
    return message


async def _apply_word(
    tx: Tx, company: Company, source: Source, inbound: ReceivedItem, contact: Contact, new: NewMessage
) -> bool:
    """Whether the message was a word that unsubscribes or subscribes again. It opens no ticket, and a change is
    confirmed."""
    found = await consents.find_word(tx, company, source, inbound)
    if found is None:
        return False
    status, word = found
    outcome = await consents.apply_word(tx, company, source, contact, status, word, new.id, new.created_at)
    if outcome == "changed":
        await confirmations.queue(tx, company, new, status)
    return outcome != "ignored"


async def _complete_parts(tx: Tx, company: Company, source: Source, inbound: ReceivedItem) -> MessageParts:
    """With the quoted message, by both of its ids."""
    parts = NO_PARTS if inbound.parts is None else parse_parts(inbound.parts)
    if inbound.quoted is None:
        return parts
    quoted_id = await messages.find_id(tx, company, source, inbound.quoted)
    context = replace(parts.context or MessageContext(), message_id=inbound.quoted, message_id2=quoted_id)
    return replace(parts, context=context)


def _is_written(inbound: ReceivedItem) -> bool:
    return not (inbound.is_echo or inbound.is_imported or inbound.is_automatic)


def _get_time(inbound: ReceivedItem, now: datetime) -> datetime:
    return min(truncate_to_milliseconds(inbound.at), now)


def _build_received(
    message: Message, source: Source, inbound: ReceivedItem, contact: Contact, written_at: datetime | None
) -> ReceivedMessage:
    """The window counts from the contact's latest message, in whatever order messages arrive. An automatic reply opens
    no window."""
    duration = CHANNELS[source].capabilities.window
    closes_at = None if duration is None or written_at is None else written_at + duration
    window = None if closes_at is None else Window(decode_instant(encode_instant(closes_at)))
    fields = {name: getattr(message, name) for name in message.__struct_fields__}
    return ReceivedMessage(**fields, contact=Sender(contact.id, _clean(inbound.sender_name)), window=window)


def _build_message(
    connection_id: str, source: Source, inbound: ReceivedItem, contact: Contact, connected_number: str, now: datetime,
    id: str | None, media_url: str | None, parts: MessageParts,
) -> NewMessage:  # fmt: skip
    at = _get_time(inbound, now)
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
        authentication=encode(inbound.authentication) if inbound.authentication else None,
        parts=encode_parts(parts),
        feature_source=feature,
        status=status,
        created_at=at,
        sent_at=at,
        delivered_at=at if inbound.is_echo else now,
    )


def _build_linked(new: NewMessage, source: Source, contact: Contact, inbound: ReceivedItem) -> InboundMessage:
    return InboundMessage(
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
        choice_id=inbound.interaction.id if inbound.interaction else None,
    )


def _kind_of(inbound: ReceivedItem) -> tuple[str, str, str]:
    """Direction, feature and status. What the company wrote on its own phone counts as delivered."""
    feature = "IMPORT" if inbound.is_imported else "BUSINESS_APP" if inbound.is_echo else "CUSTOMER"
    return ("out", feature, "delivered") if inbound.is_echo else ("in", feature, "received")


def _shown(identities: Sequence[Identity]) -> str:
    return canonical(identities[0]).value[:MAX_NUMBER_LENGTH]


def _build_choice(inbound: ReceivedItem) -> bytes | None:
    chosen = inbound.interaction
    return None if chosen is None else encode(Choice(chosen.kind, chosen.id, chosen.title))


def _clean(text: str | None) -> str | None:
    """Without NUL characters, which the database cannot store."""
    return None if text is None else text.replace("\0", "")
