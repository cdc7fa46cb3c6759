"""Records what channels report on accounts, announces changes, and asks them."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.db.pool import Connection, Tx
from sapa.events import emit
from sapa.messaging.channel_status import queries
from sapa.messaging.channel_status.merging import list_changes, merge_report, merge_warning
from sapa.messaging.channel_status.queries import ShownStatus, ShownWarning
from sapa.messaging.channel_status.types import (
    ChannelStatus,
    ChannelStatusUpdate,
    ChannelStatusUpdated,
    ChannelWarning,
)
from sapa.messaging.channels.abilities import AccountRatings
from sapa.messaging.channels.account_reports import NO_LIMIT, AccountReport, AccountWarning
from sapa.messaging.channels.interface import BadAccount, Source
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.connections.environment import get_environment
from sapa.outbound.client import NotSent, Unclear
from sapa.values.company import Company
from sapa.values.instants import truncate_to_milliseconds


async def receive(tx: Tx, company: Company, connected: ConnectedChannel, report: AccountReport, now: datetime) -> None:
    """A callback. It rarely has everything, so the channel is asked as well."""
    await _apply(tx, company, connected, report, now)
    if isinstance(connected.channel, AccountRatings):
        await queries.request_check(tx, company.id, connected.connection.id)


async def refresh(context: AppContext, connected: ConnectedChannel) -> None:
    """Asks the channel; does nothing on channels without ratings. Makes an outbound call: raises NotSent, Unclear or
    BadAccount."""
    connection, channel = connected.connection, connected.channel
    if not isinstance(channel, AccountRatings):
        return
    try:
        report = await channel.read_rating(connection)
    except (NotSent, Unclear, BadAccount) as error:
        raise type(error)(connection.mask(str(error) or type(error).__name__)) from None

    async def store(tx: Tx) -> None:
        now = (await read_clock(tx, connection.company.id)).now
        await _apply(tx, connection.company, connected, replace(report, at=now), now)
        await queries.record_check(tx, connection.company.id, connection.id, now)

    await context.database.transact(store)


async def refresh_source(context: AppContext, company: Company, source: Source) -> None:
    """The same for the company's account with a channel, if it has one."""
    async with context.database.connection() as db:
        connected = await get_environment(company).accounts.find_by_source(context, db, company, source)
    if connected is not None:
        await refresh(context, connected)


async def _apply(tx: Tx, company: Company, connected: ConnectedChannel, report: AccountReport, now: datetime) -> None:
    id, at = connected.connection.id, truncate_to_milliseconds(min(report.at, now))
    stored = await queries.lock_status(tx, company.id, connected)
    merged = merge_report(stored, replace(report, at=at))
    if merged != stored:
        await queries.update_status(tx, company.id, merged)
    changes = list_changes(stored, merged)
    if await _record_warnings(tx, company, id, report.warnings, at):
        changes.append("warnings")
    if changes:
        await queries.record_change(tx, company.id, id, now)
        status = next(one for one in await list_statuses(tx, company) if one.id == id)
        fields = {name: getattr(status, name) for name in status.__struct_fields__}
        await emit(tx, company, ChannelStatusUpdated(ChannelStatusUpdate(**fields, changes=changes)))


async def _record_warnings(
    tx: Tx, company: Company, connection_id: str, warnings: Sequence[AccountWarning], at: datetime
) -> bool:
    """Whether one is new or over."""
    stored = await queries.list_warnings(tx, company.id, connection_id) if warnings else {}
    merged = [merge_warning(stored.get(warning.code), warning, at) for warning in warnings]
    for warning in filter(None, merged):
        await queries.put_warning(tx, company.id, connection_id, warning)
    return any(merged)


async def list_statuses(db: Connection, company: Company) -> list[ChannelStatus]:
    """Of the connected accounts that a channel has reported on."""
    now = (await read_clock(db, company.id)).now
    warnings = await queries.list_in_force(db, company.id, now)
    return [_build_status(status, warnings) for status in await queries.list_statuses(db, company.id)]


def _build_status(status: ShownStatus, warnings: Sequence[ShownWarning]) -> ChannelStatus:
    limit = status.messaging_limit
    return ChannelStatus(
        id=status.connection_id,
        source=status.source,
        connected_number=status.connected_number,
        quality=status.quality,
        messaging_limit=None if limit == NO_LIMIT else limit,
        is_unlimited=limit == NO_LIMIT,
        throughput=status.throughput,
        warnings=[
            ChannelWarning(one.code, one.severity, one.message, one.reported_at, one.expires_at)
            for one in warnings
            if one.connection_id == status.connection_id
        ],
        updated_at=status.updated_at,
        checked_at=status.checked_at,
    )
