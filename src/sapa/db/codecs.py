"""How PostgreSQL's types arrive in Python: timestamps as the text that the API writes, amounts with their stored
digits, JSON as untouched bytes."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import asyncpg
import msgspec

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
SECONDS_PER_DAY = 86_400
MINUTES_PER_DAY = 1440
_MINUTES = [f"{minute // 60:02d}:{minute % 60:02d}:" for minute in range(MINUTES_PER_DAY)]
_SECONDS = [f"{second:02d}." for second in range(60)]
_MILLISECONDS = [f"{millisecond:03d}Z" for millisecond in range(1000)]
ARRAYS = {
    "bool": (1000, 16),
    "bytea": (1001, 17),
    "date": (1182, 1082),
    "int2": (1005, 21),
    "int4": (1007, 23),
    "int8": (1016, 20),
    "numeric": (1231, 1700),
    "timestamptz": (1185, 1184),
}
"""Types whose arrays statements use, with the numbers that PostgreSQL gives the array and its elements in every
database. The driver knows the arrays of text by itself."""
_NO_PARTS = dict.fromkeys(
    ("basetype", "basetype_name", "range_subtype", "range_subtype_name", "attrtypoids", "attrnames")
)
_ARRAY_TYPES = [
    {"oid": array, "ns": "pg_catalog", "name": f"_{name}", "kind": b"b", "elemtype": element, "elemdelim": b","}
    | {"elemtype_name": name, **_NO_PARTS}
    for name, (array, element) in ARRAYS.items()
]


@lru_cache(maxsize=4096)
def _format_day(day: int) -> str:
    return (EPOCH + timedelta(days=day)).isoformat()[:11]


def decode_instant(value: tuple[int]) -> str:
    """RFC 3339 in UTC with exactly three fractional digits."""
    milliseconds = value[0] // 1000
    seconds = milliseconds // 1000
    minutes = seconds // 60
    day, minute = _format_day(minutes // MINUTES_PER_DAY), _MINUTES[minutes % MINUTES_PER_DAY]
    return f"{day}{minute}{_SECONDS[seconds % 60]}{_MILLISECONDS[milliseconds % 1000]}"


def encode_instant(value: datetime) -> tuple[int]:
    since = value - EPOCH
    return ((since.days * SECONDS_PER_DAY + since.seconds) * 1_000_000 + since.microseconds,)


def register(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """For every new connection of the pool. With the driver's public methods, PostgreSQL would have to look up each of
    these types in its catalogue each time, which takes longer than all the rest of connecting."""
    settings = connection._protocol.get_settings()  # type: ignore[attr-defined]

    def set_codec(oid: int, name: str, format: str, encoder: Callable[..., Any], decoder: Callable[..., Any]) -> None:
        settings.add_python_codec(oid, name, "pg_catalog", [], "scalar", encoder, decoder, format)

    set_codec(1184, "timestamptz", "tuple", encode_instant, decode_instant)
    # As text, because asyncpg reads the binary form of 150000 as 1.5E+5, and the API would write that.
    set_codec(1700, "numeric", "text", str, Decimal)
    set_codec(114, "json", "binary", bytes, msgspec.Raw)
    settings.register_data_types(_ARRAY_TYPES)
