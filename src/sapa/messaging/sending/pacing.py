"""The pace of each connection, over all processes: no faster than its channel takes messages.

One small statement books the next free place and says how long it is until then. Nothing is held while waiting: no
connection, no lock, no place that another channel could need.
"""

import asyncio
from math import ceil

from sapa.context import Kit
from sapa.db.pool import Connection
from sapa.db.sql import sql
from sapa.http.errors import RateLimitExceeded
from sapa.messaging.channels.interface import Capabilities, Content, Media
from sapa.messaging.connections.accounts import Opened

MOST_SECONDS = 15.0
"""Who would have to wait longer is told so, instead of being kept on the line."""

# A place that lies too far ahead is not booked: the row stays as it is.
BOOK = sql(
    """
    INSERT INTO channel_paces AS p (company_id, connection_id, free_at)
    VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
    ON CONFLICT (company_id, connection_id) DO UPDATE
       SET free_at = GREATEST(p.free_at, clock_timestamp()) + make_interval(secs => $3)
     WHERE p.free_at <= clock_timestamp() + make_interval(secs => $4)
    RETURNING GREATEST(0, date_part('epoch', free_at - clock_timestamp()) - $3)"""
)

FIND_WAIT = sql(
    """
    SELECT GREATEST(0, date_part('epoch', free_at - clock_timestamp()))
      FROM channel_paces
     WHERE company_id = $1 AND connection_id = $2"""
)


class ChannelBusy(RateLimitExceeded):
    """More messages wait for this channel than it takes; retry after the seconds in Retry-After."""


async def wait_for_turn(kit: Kit, opened: Opened, content: Content) -> bool:
    """Returns when the connection may send, at once when it is idle; raises ChannelBusy when that is too far off. Says
    whether it took a while, in which other things may have happened.

    Call it before anything is written down and without a connection in hand. Simulators take what they are given.
    """
    connection = opened.connection
    if connection.company.environment == "test":
        return False
    gap = find_gap(opened.channel.capabilities, content)
    async with kit.database.connection() as db:
        seconds = await book(db, connection.company.id, connection.id, gap)
    if seconds > 0:
        await asyncio.sleep(seconds)
    return seconds > 0


def find_gap(capabilities: Capabilities, content: Content) -> float:
    """Seconds from one message to the next."""
    slower = capabilities.media_per_second if isinstance(content, Media) else None
    return 1 / (slower or capabilities.per_second)


async def book(db: Connection, company_id: int, connection_id: str, gap: float, most: float = MOST_SECONDS) -> float:
    """The seconds until the next free place of a connection, which is ours from now on."""
    seconds: float | None = await BOOK.value(db, company_id, connection_id, gap, most)
    if seconds is not None:
        return seconds
    left = await FIND_WAIT.value(db, company_id, connection_id) or most
    raise ChannelBusy(headers={"retry-after": str(ceil(left))})
