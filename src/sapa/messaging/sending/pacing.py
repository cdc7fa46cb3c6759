"""The send rate of each connection, shared by all processes.

One statement reserves the next free slot and returns the wait. While a message waits it holds no connection, no lock
and no slot that another channel needs.
"""

import asyncio
from math import ceil

from msgspec.structs import replace

from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.messaging.channels.account_reports import HIGH
from sapa.messaging.channels.interface import Capabilities, Content, Media
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.connections.types import ChannelNotConnected
from sapa.messaging.sending import queries
from sapa.messaging.sending.conversations import find_conversation
from sapa.messaging.sending.types import ChannelBusy, SendPlan
from sapa.values.company import Company

MAX_WAIT_SECONDS = 15.0
"""A call that would wait longer is refused."""


async def wait_for_turn(context: AppContext, company: Company, plan: SendPlan) -> SendPlan:
    """Call it before anything is stored and while you hold no database connection. While the message waits, its account
    may be disconnected or get another token, and its recipient may become a customer: both are read again."""
    connected, draft = plan.connected, plan.draft
    if not await wait_until_free(context, connected, draft.content, plan.throughput):
        return plan
    connection = connected.connection
    async with context.database.connection() as db:
        found = await find_conversation(context, db, company, connection.source, plan.to)
    if found is None or found.connected.connection.id != connection.id:
        raise ChannelNotConnected("The channel was disconnected while the message waited for its turn.")
    return replace(
        plan,
        connected=found.connected,
        clock=found.clock,
        clock_read=found.clock_read,
        thread=found.thread,
        customer_id=found.customer_id,
    )


async def wait_until_free(
    context: AppContext, connected: ConnectedChannel, content: Content, throughput: str | None = None
) -> bool:
    """Returns once the connection may send; raises ChannelBusy if the wait is too long. True if it waited."""
    connection = connected.connection
    if not get_environment(connection.company).is_paced:
        return False
    gap = get_gap(connected.channel.capabilities, content, throughput)
    async with context.database.connection() as db:
        seconds = await reserve_slot(db, connection.company.id, connection.id, gap)
    if seconds > 0:
        await asyncio.sleep(seconds)
    return seconds > 0


def get_gap(capabilities: Capabilities, content: Content, throughput: str | None = None) -> float:
    """Seconds between two messages."""
    slower = capabilities.media_per_second if isinstance(content, Media) else None
    return 1 / (slower or get_rate(capabilities, throughput))


def get_rate(capabilities: Capabilities, throughput: str | None) -> float:
    """Messages a second over an account of which the channel says this."""
    return (capabilities.high_per_second if throughput == HIGH else None) or capabilities.per_second


async def reserve_slot(
    db: Connection, company_id: int, connection_id: str, gap: float, max_seconds: float = MAX_WAIT_SECONDS
) -> float:
    """Reserves the next free slot of a connection and returns the seconds until then."""
    seconds = await queries.reserve_slot(db, company_id, connection_id, gap, max_seconds)
    if seconds is not None:
        return seconds
    left = await queries.find_wait(db, company_id, connection_id) or max_seconds
    raise ChannelBusy(headers={"retry-after": str(ceil(left))})
