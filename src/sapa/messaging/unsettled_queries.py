"""How messages are found that no channel has said anything of."""

from datetime import timedelta

from msgspec import Struct

from sapa.db.pool import Connection
from sapa.db.sql import sql


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


async def list_unsettled(db: Connection, silence: timedelta, most: int) -> list[Unsettled]:
    """Those of which nothing was heard for so long, by their company's time; the oldest first."""
    return await LIST_UNSETTLED.all(db, silence, most)
