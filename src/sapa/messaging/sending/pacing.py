"""The send rate of each connection, shared by all processes.

One statement reserves the next free slot and returns the wait. While a message waits it holds no connection, no lock
and no slot that another channel needs.
"""

import asyncio
from math import ceil

from msgspec.structs import replace

from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.messaging.channels.interface import Capabilities, Content, Media
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.connections.types import ChannelNotConnected
from sapa.messaging.sending import queries
from sapa.messaging.sending.types import ChannelBusy, SendPlan
from sapa.values.company import Company

MAX_WAIT_SECONDS = 15.0
"""A call that would wait longer is refused."""


async def wait_for_turn(context: AppContext, company: Company, plan: SendPlan) -> SendPlan:
    """Call it before anything is stored and while you hold no database connection. While the message waits, its account
    may be disconnected or get another token, and its recipient may become a customer."""
    if not await wait_until_free(context, plan.connected, plan.draft.content):
        return plan
    async with context.database.connection() as db:
        accounts = get_environment(company).accounts
        connected = await accounts.find_by_id(context, db, company, plan.connected.connection.id)
    if connected is None:
        raise ChannelNotConnected("The channel was disconnected while the message waited for its turn.")
    return replace(plan, connected=connected, thread=None)


async def wait_until_free(context: AppContext, connected: ConnectedChannel, content: Content) -> bool:
    """Returns once the connection may send; raises ChannelBusy if the wait is too long. True if it waited."""
    connection = connected.connection
    if not get_environment(connection.company).is_paced:
        return False
    gap = get_gap(connected.channel.capabilities, content)
    async with context.database.connection() as db:
        seconds = await reserve_slot(db, connection.company.id, connection.id, gap)
    if seconds > 0:
        await asyncio.sleep(seconds)
    return seconds > 0


def get_gap(capabilities: Capabilities, content: Content) -> float:
    """Seconds between two messages."""
    slower = capabilities.media_per_second if isinstance(content, Media) else None
    return 1 / (slower or capabilities.per_second)


async def reserve_slot(
    db: Connection, company_id: int, connection_id: str, gap: float, max_seconds: float = MAX_WAIT_SECONDS
) -> float:
    """Reserves the next free slot of a connection and returns the seconds until then."""
    seconds = await queries.reserve_slot(db, company_id, connection_id, gap, max_seconds)
    if seconds is not None:
        return seconds
    left = await queries.find_wait(db, company_id, connection_id) or max_seconds
    raise ChannelBusy(headers={"retry-after": str(ceil(left))})
