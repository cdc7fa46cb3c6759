"""Reactions, read marks and typing: signals that customers see without a message."""

from collections.abc import Awaitable

from msgspec import Struct
from msgspec.structs import replace

from sapa.access.actions import read_clock
from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid, NotFound
from sapa.http.outbound_call import OutboundCall
from sapa.messaging.channels.abilities import Reactions, ReadMarks, TypingIndicators
from sapa.messaging.channels.interface import ChannelAccount, Identity, MessageAmendment, SendRefusal, Source
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.connections.types import ChannelNotConnected
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.history.actions import build_failure
from sapa.messaging.messages import actions as messages
from sapa.messaging.messages.types import ChannelUnsupported, MessageWithEvents, SendFailed
from sapa.messaging.sending import queries
from sapa.messaging.sending.preflight import check_window
from sapa.messaging.sending.types import MessageNotOnChannel
from sapa.outbound.client import NotSent, Unclear


class SignalTarget(Struct, frozen=True):
    """A message, as its channel knows it."""

    connected: ConnectedChannel
    to: Identity
    message_id: str
    is_received: bool


async def react(call: OutboundCall, id: str, emoji: str | None) -> MessageWithEvents:
    """Without an emoji the reaction is removed. Repeating it changes nothing, so an unclear outcome is an error."""
    if emoji is not None and not emoji.strip():
        raise Invalid.field("emoji", "must not be blank")
    async with call.context.database.connection() as db:
        target = await _get_target(call, db, id)
        clock = await read_clock(db, call.company.id)
        thread = await contacts.find_thread(db, call.company, target.connected.connection.id, target.to)
        await check_window(db, call.company, target.connected, target.to, clock, thread)
    channel, connection = target.connected.channel, target.connected.connection
    if not isinstance(channel, Reactions):
        raise ChannelUnsupported(f"{connection.source} does not support reactions.")
    await _signal(connection, channel.react(connection, target.to, target.message_id, emoji))

    async def record(tx: Tx) -> MessageWithEvents:
        now = (await read_clock(tx, call.company.id)).now
        amendment = MessageAmendment("reaction", target.message_id, now, emoji, is_echo=True)
        await messages.amend(tx, call.company, connection.source, amendment)
        return await messages.get_with_events(tx, call.company, id)

    return await call.transact(record)


async def mark_read(call: OutboundCall, id: str, is_typing: bool) -> None:
    async with call.context.database.connection() as db:
        target = await _get_target(call, db, id)
    channel, connection = target.connected.channel, target.connected.connection
    if not target.is_received:
        raise MessageNotOnChannel("Only a message from a customer can be marked as read.")
    if is_typing and isinstance(channel, TypingIndicators):
        await channel.show_typing(connection, target.to)
    elif isinstance(channel, ReadMarks):
        await _signal(connection, channel.mark_read(connection, target.to, target.message_id, is_typing))
    else:
        raise ChannelUnsupported(f"{connection.source} does not show customers what was read.")


async def _get_target(call: OutboundCall, db: Connection, id: str) -> SignalTarget:
    found = await queries.find_target(db, call.company.id, id)
    if found is None:
        raise NotFound
    accounts = get_environment(call.company).accounts
    connected = await accounts.find_by_id(call.context, db, call.company, found.connection_id)
    if connected is None:
        raise ChannelNotConnected(f"The channel {Source(found.source)} is not connected.")
    if found.provider_id is None:
        raise MessageNotOnChannel
    to = Identity(found.identity_kind, found.identity)
    return SignalTarget(connected, to, found.provider_id, found.direction == "in")


async def _signal(connection: ChannelAccount, request: Awaitable[SendRefusal | None]) -> None:
    try:
        refusal = await request
    except (NotSent, Unclear) as error:
        raise SendFailed(connection.mask(f"The channel did not answer: {error}")) from None
    if refusal is not None:
        refusal = replace(refusal, reason=connection.mask(refusal.reason))
        raise build_failure(messages.build_error(refusal), refusal.retry_after)
