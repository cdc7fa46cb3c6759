"""How a company's accounts with channels are managed over HTTP."""

from typing import Annotated

from msgspec import Meta
from msgspec.structs import asdict

from sapa.access import actions as access
from sapa.access.types import Scope
from sapa.context import AppContext
from sapa.db.pool import Connection, Tx
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.outbound_call import OutboundCall
from sapa.messaging.channels.interface import Channel, Source
from sapa.messaging.connections import actions
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.connections.types import (
    AccountRefused,
    ChannelConnection,
    ChannelConnectionIn,
    ChannelEntry,
    ChannelNotConnected,
    ConnectedChannelAccount,
    NewChannelConnection,
    OtherAccount,
    SandboxChannel,
)
from sapa.values.company import Company
from sapa.values.provider_accounts import build_field_entries

routes = Routes(
    "/channels",
    base=Base.CUSTOMER,
    tag="Connections",
    about="The company's accounts with channels and carriers. Their secrets can be written and never read.",
    resource="channels",
)

_EXAMPLE = next(
    channel.source for channel in actions.list_channels() if not any(field.is_required for field in channel.fields)
)
ChannelSource = Annotated[Source, Meta(description="The channel.", examples=[str(_EXAMPLE)])]


@routes.get("", scope=Scope.CONNECTIONS_READ)
async def list_channels(call: Call) -> list[ChannelEntry]:
    """List the channels, the fields of an account with each, and the company's accounts.

    In the test environment every channel is connected to its simulator.
    """
    return await _list_entries(call.context, call.db, call.company)


@routes.get("/{source}", scope=Scope.CONNECTIONS_READ)
async def get_channel(call: Call, source: ChannelSource) -> ChannelEntry:
    """Get one channel and the company's account with it."""
    entries = await _list_entries(call.context, call.db, call.company)
    return next(entry for entry in entries if entry.source == source)


@routes.put(
    "/{source}",
    scope=Scope.CONNECTIONS_WRITE,
    raises=[OtherAccount, AccountRefused, SandboxChannel],
    tool=ToolTraits(hidden="Its arguments are secrets, which a model must not read."),
)
async def connect_channel(
    call: OutboundCall, source: ChannelSource, body: ChannelConnectionIn
) -> ConnectedChannelAccount:
    """Connect an account, or change the connected one.

    The channel is asked to verify the account; nothing changes if it refuses. The callback address, generated values
    and the web chat's snippet are shown only in this response. To connect another account, disconnect the present one
    first.
    """
    context, company = call.context, call.company
    async with context.database.connection() as db:
        draft = await actions.prepare(context, db, company, source, body.fields)
    if body.verify:
        await actions.check(context, company, draft)

    async def store(tx: Tx) -> ConnectedChannelAccount:
        new = await actions.connect(context, tx, company, draft, body.new_hook)
        if body.verify:
            await actions.record_verified(tx, company, new.connection.id, None)
        await access.record_change(tx, call.key, call.address, "channel.connected", _get_label(source))
        return _build_connected(new, await actions.get_info(context, tx, company, new.connection.id))

    return await call.commit(store)


@routes.post(
    "/{source}/test",
    scope=Scope.CONNECTIONS_WRITE,
    status=200,
    raises=[ChannelNotConnected],
    tool=ToolTraits(is_destructive=False),
)
async def test_channel(call: OutboundCall, source: ChannelSource) -> ChannelConnection:
    """Ask the channel to verify the account again. No message is sent; `health` has the result."""
    return await actions.test(call.context, call.company, source)


@routes.delete("/{source}", scope=Scope.CONNECTIONS_DELETE, raises=[ChannelNotConnected, SandboxChannel])
async def disconnect_channel(call: Call, source: ChannelSource) -> None:
    """Delete the account's secrets and its callback address. Messages stay."""
    await actions.disconnect(call.db, call.company, source)
    await access.record_change(call.db, call.key, call.address, "channel.disconnected", _get_label(source))


def _get_label(source: Source) -> str:
    return next(channel.label for channel in actions.list_channels() if channel.source == source)


async def _list_entries(context: AppContext, db: Connection, company: Company) -> list[ChannelEntry]:
    infos = await get_environment(company).accounts.list_infos(context, db, company)
    present = {info.source: info for info in sorted(infos, key=lambda info: info.status == "connected")}
    return [_build_entry(channel, present.get(channel.source)) for channel in actions.list_channels()]


def _build_entry(channel: Channel, connection: ChannelConnection | None) -> ChannelEntry:
    is_connected = connection is not None and connection.status == "connected"
    return ChannelEntry(channel.source, channel.label, is_connected, build_field_entries(channel.fields), connection)


def _build_connected(new: NewChannelConnection, info: ChannelConnection) -> ConnectedChannelAccount:
    return ConnectedChannelAccount(**asdict(info), hook_url=new.hook_url, generated=new.generated, snippet=new.snippet)
