"""How PostgreSQL's types arrive in Python: timestamps as the text that the API writes, amounts with their stored
digits, JSON as untouched bytes."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

import asyncpg
import msgspec

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
MICROSECONDS_PER_MINUTE = 60_000_000
ARRAYS = ("bool", "bytea", "date", "int2", "int4", "int8", "numeric", "timestamptz")
"""Types whose arrays statements use. The driver knows those of text by itself."""
_ALL_ARRAYS = f"SELECT {', '.join(f'NULL::{name}[]' for name in ARRAYS)}"


@lru_cache(maxsize=4096)
def _minute_text(minute: int) -> str:
    return (EPOCH + timedelta(minutes=minute)).isoformat()[:17]


def decode_instant(value: tuple[int]) -> str:
    """RFC 3339 in UTC with exactly three fractional digits."""
    minute, rest = divmod(value[0], MICROSECONDS_PER_MINUTE)
    millis = rest // 1000
    return f"{_minute_text(minute)}{millis // 1000:02d}.{millis % 1000:03d}Z"


def encode_instant(value: datetime) -> tuple[int]:
    return ((value - EPOCH) // timedelta(microseconds=1),)


async def register(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Runs once for every new connection of the pool."""
    await connection.set_type_codec(
        "timestamptz", schema="pg_catalog", format="tuple", encoder=encode_instant, decoder=decode_instant
    )
    # As text, because asyncpg reads the binary form of 150000 as 1.5E+5, and the API would write that.
    await connection.set_type_codec("numeric", schema="pg_catalog", format="text", encoder=str, decoder=Decimal)
    await connection.set_type_codec("json", schema="pg_catalog", format="binary", encoder=bytes, decoder=msgspec.Raw)
    # Otherwise the driver looks each one up in the catalogue when a statement first needs it, inside its transaction.
    await connection.fetch(_ALL_ARRAYS)
