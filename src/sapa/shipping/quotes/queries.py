"""SQL of the quote cache."""

from msgspec import Raw

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.shipping.connections.types import IS_STILL_CONNECTED

_EXPIRED = "the worker deletes expired quotes of every company"

FIND = sql("SELECT quote FROM quote_cache WHERE company_id = $1 AND journey = $2 AND expires_at > now()")

FIND_OF_ACCOUNT = sql(f"{FIND.text} AND {IS_STILL_CONNECTED.format('$3', '$4')}")

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


async def find_quote_of_account(
    db: Connection, company_id: int, key: bytes, provider: str, connection_id: str
) -> Raw | None:
    """None also when the provider has another account by now."""
    found: Raw | None = await FIND_OF_ACCOUNT.value(db, company_id, key, provider, connection_id)
    return found


async def save_quote(db: Connection, company_id: int, key: bytes, quote: bytes, minutes: int) -> None:
    await SAVE.run(db, company_id, key, quote, minutes)


async def purge_expired(tx: Tx, most: int) -> int:
    """Deletes at most `most` quotes and returns how many."""
    return await PURGE.run(tx, most)
