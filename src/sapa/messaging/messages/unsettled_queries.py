"""How messages are found that no channel has said anything of."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from sapa.db.pool import Connection
from sapa.db.sql import sql
from sapa.messaging.channels.interface import Source


class Unsettled(Struct, frozen=True):
    company_id: int
    id: str


LIST_UNSETTLED = sql(
    """
    SELECT m.company_id, m.id
      FROM messages m
      JOIN companies c ON c.company_id = m.company_id
     WHERE m.direction = 'out' AND m.sent_at IS NULL AND m.failed_at IS NULL
       AND m.created_at <= now() + c.clock_offset - $1::interval
     ORDER BY m.created_at
     LIMIT $2""",
    row=Unsettled,
    crosses="the worker looks for messages without an outcome over all companies, then settles them one by one",
)

IS_UNDER_WAY = sql(
    """
    SELECT EXISTS (
           SELECT FROM messages
            WHERE company_id = $1 AND source = $2 AND identity = ANY($3::text[]) AND created_at BETWEEN $4 AND $5
              AND direction = 'out' AND status = 'pending')"""
)


async def list_unsettled(db: Connection, silence: timedelta, most: int) -> list[Unsettled]:
    """Those of which nothing was heard for so long, by their company's time; the oldest first."""
    return await LIST_UNSETTLED.all(db, silence, most)


async def is_under_way(
    db: Connection, company_id: int, source: Source, identities: Sequence[str], since: datetime, until: datetime
) -> bool:
    """Whether something was to go to somebody in that time of which the channel has not said that it took it."""
    return bool(await IS_UNDER_WAY.value(db, company_id, source, list(identities), since, until))
