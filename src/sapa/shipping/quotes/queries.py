"""SQL of the quote cache."""

from msgspec import Raw

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql

_EXPIRED = "the worker deletes expired quotes of every company"

FIND = sql("SELECT quote FROM quote_cache WHERE company_id = $1 AND journey = $2 AND expires_at > now()")

SAVE = sql(
    """
    INSERT INTO quote_cache (company_id, journey, quote, expires_at)
    VALUES ($1, $2, $3, now() + make_interval(mins => $4))
    ON CONFLICT (company_id, journey) DO UPDATE SET quote = excluded.quote, expires_at = excluded.expires_at"""
)

PURGE = sql(
    """
    DELETE FROM quote_cache
     WHERE (company_id, journey) IN (
           SELECT company_id, journey FROM quote_cache WHERE expires_at < now() ORDER BY expires_at LIMIT $1)""",
    crosses=_EXPIRED,
)


async def find_quote(db: Connection, company_id: int, key: bytes) -> Raw | None:
    found: Raw | None = await FIND.value(db, company_id, key)
    return found


async def save_quote(db: Connection, company_id: int, key: bytes, quote: bytes, minutes: int) -> None:
    await SAVE.run(db, company_id, key, quote, minutes)


async def purge_expired(tx: Tx, most: int) -> int:
    """Deletes at most `most` quotes and returns how many."""
    return await PURGE.run(tx, most)
