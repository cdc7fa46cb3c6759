"""Queries for the mail that a message answers, and for the rate of each connection."""

from msgspec import Struct

from sapa.db.pool import Connection
from sapa.db.sql import sql


class ReceivedMail(Struct, frozen=True):
    """A received mail."""

    provider_id: str | None
    """The Message-ID."""
    subject: str | None
    thread: list[str] | None


FIND = sql(
    """
    SELECT provider_id, subject, thread
      FROM messages
     WHERE company_id = $1 AND id = $2 AND direction = 'in'""",
    row=ReceivedMail,
)


# A slot too far ahead is not reserved: the row stays as it is.
RESERVE_SLOT = sql(
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


async def find_mail(db: Connection, company_id: int, id: str) -> ReceivedMail | None:
    return await FIND.find(db, company_id, id)


async def reserve_slot(
    db: Connection, company_id: int, connection_id: str, gap: float, max_seconds: float
) -> float | None:
    """Reserves the next free slot. Returns the seconds until then; None if that is more than `max_seconds`."""
    seconds: float | None = await RESERVE_SLOT.value(db, company_id, connection_id, gap, max_seconds)
    return seconds


async def find_wait(db: Connection, company_id: int, connection_id: str) -> float | None:
    seconds: float | None = await FIND_WAIT.value(db, company_id, connection_id)
    return seconds
