"""SQL of the quote cache."""

from collections.abc import Sequence

from msgspec import Raw, Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import compose, sql
from sapa.shipping.areas.statement_parts import SUB_DISTRICTS
from sapa.shipping.connections.statement_parts import ACCOUNT
from sapa.shipping.connections.types import CachedCarrier

_EXPIRED = "the worker deletes expired quotes of every company"


class CachedQuote(Struct, frozen=True):
    quote: Raw
    seconds_left: float


class AccountLookup(Struct, frozen=True):
    """What a quote from a cached account reads. Without a cached quote, `quote` and `seconds_left` are None."""

    has_error: bool
    quote: Raw | None
    seconds_left: float | None
    sub_districts: Raw | None
    """The cached lists of the requested districts, by district."""


class NewQuote(Struct, frozen=True):
    key: bytes
    quote: bytes
    minutes: int


_SECONDS_LEFT = "extract(epoch FROM expires_at - now())::float8 AS seconds_left"

FIND = sql(
    f"SELECT quote, {_SECONDS_LEFT} FROM quote_cache WHERE company_id = $1 AND journey = $2 AND expires_at > now()",
    row=CachedQuote,
)

LOOK_UP = compose(
    [ACCOUNT, SUB_DISTRICTS],
    f"""
    SELECT has_error, quote, {_SECONDS_LEFT},
           (SELECT json_object_agg(parent, areas) FROM sub_districts) AS sub_districts
      FROM account
      LEFT JOIN quote_cache ON company_id = $1 AND journey = :key AND expires_at > now()""",
    row=AccountLookup,
)

SAVE = sql(
    """
    INSERT INTO quote_cache (company_id, journey, quote, expires_at)
    SELECT $1, journey, quote::json, now() + make_interval(mins => minutes)
      FROM unnest($2::bytea[], $3::text[], $4::int[]) AS new (journey, quote, minutes)
    ON CONFLICT (company_id, journey) DO UPDATE SET quote = excluded.quote, expires_at = excluded.expires_at"""
)

PURGE = sql(
    """
    DELETE FROM quote_cache
     WHERE (company_id, journey) IN (
           SELECT company_id, journey FROM quote_cache WHERE expires_at < now() ORDER BY expires_at LIMIT $1)""",
    crosses=_EXPIRED,
)


async def find_quote(db: Connection, company_id: int, key: bytes) -> CachedQuote | None:
    return await FIND.find(db, company_id, key)


async def look_up(
    db: Connection, company_id: int, key: bytes, provider: str, cached: CachedCarrier,
    districts: Sequence[str], max_age_days: int,
) -> AccountLookup | None:  # fmt: skip
    """None if the provider has another account by now, or one that does not work."""
    values = {
        "key": key, "provider": provider, "connection_id": cached.id, "districts": districts,
        "max_age_days": max_age_days,
    }  # fmt: skip
    return await LOOK_UP.find(db, company_id, *LOOK_UP.order(values))


async def save_quotes(tx: Tx, company_id: int, quotes: Sequence[NewQuote]) -> None:
    """No two of them with the same key."""
    keys, contents, minutes = zip(*((each.key, each.quote.decode(), each.minutes) for each in quotes), strict=True)
    await SAVE.run(tx, company_id, keys, contents, minutes)


async def purge_expired(tx: Tx, most: int) -> int:
    """Deletes at most `most` quotes and returns how many."""
    return await PURGE.run(tx, most)
