from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from sapa.db.codecs import decode_instant, encode_instant
from sapa.db.pool import Database
from sapa.db.sql import Statement

INSTANTS = {
    "2000-01-01T00:00:00+00:00": "2000-01-01T00:00:00.000Z",
    "2026-01-31T09:30:00.123+00:00": "2026-01-31T09:30:00.123Z",
    "2026-01-31T09:30:59.999999+00:00": "2026-01-31T09:30:59.999Z",
    "2026-01-31T09:30:00.000999+00:00": "2026-01-31T09:30:00.000Z",
    "2026-01-31T16:30:00+07:00": "2026-01-31T09:30:00.000Z",
    "1999-12-31T23:59:59.999999+00:00": "1999-12-31T23:59:59.999Z",
    "1999-12-31T23:59:59.000001+00:00": "1999-12-31T23:59:59.000Z",
    "1970-01-01T00:00:00.001+00:00": "1970-01-01T00:00:00.001Z",
    "1000-01-01T00:00:00+00:00": "1000-01-01T00:00:00.000Z",
    "0999-12-31T23:59:59+00:00": "0999-12-31T23:59:59.000Z",
    "0001-01-01T00:00:00+00:00": "0001-01-01T00:00:00.000Z",
    "9999-12-31T23:59:59.999999+00:00": "9999-12-31T23:59:59.999Z",
    "2024-02-29T12:00:00+00:00": "2024-02-29T12:00:00.000Z",
}


@pytest.mark.parametrize(("instant", "printed"), INSTANTS.items())
async def test_an_instant_comes_back_as_the_api_prints_it(database: Database, instant: str, printed: str) -> None:
    async with database.connection() as db:
        assert await db.fetchval("SELECT $1::timestamptz", datetime.fromisoformat(instant)) == printed
        # The server's own reading of the text, so that encoder and decoder cannot be wrong together.
        assert await db.fetchval("SELECT $1::text::timestamptz", instant) == printed


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=7)), timezone(timedelta(hours=-9.5))]),
                    min_value=datetime(1000, 1, 2), max_value=datetime(9999, 12, 30)))  # fmt: skip
def test_any_instant_is_printed_to_the_millisecond(instant: datetime) -> None:
    printed = decode_instant(encode_instant(instant))
    assert len(printed) == len("2000-01-01T00:00:00.000Z")
    assert timedelta(0) <= instant - datetime.fromisoformat(printed) < timedelta(milliseconds=1)


class Visit(Struct, frozen=True):
    name: str
    began: datetime
    ended: datetime | None
    shown: str


class LongVisit(Visit, frozen=True):
    counted: datetime | None


@pytest.mark.parametrize("instant", INSTANTS)
async def test_a_field_annotated_as_datetime_is_the_printed_instant(database: Database, instant: str) -> None:
    statement = Statement(
        "SELECT 'a', $1::timestamptz, NULL::timestamptz, $1::timestamptz, $1::timestamptz", LongVisit, ""
    )
    async with database.connection() as db:
        visit = await statement.find(db, datetime.fromisoformat(instant))
    printed = INSTANTS[instant]
    assert visit == LongVisit("a", datetime.fromisoformat(printed), None, printed, datetime.fromisoformat(printed))


async def test_one_instant_can_be_a_row(database: Database) -> None:
    async with database.connection() as db:
        found = await Statement("SELECT '2026-01-31 09:30:00.1239+00'::timestamptz", datetime, "").all(db)
    assert found == [datetime(2026, 1, 31, 9, 30, 0, 123_000, UTC)]


async def test_nothing_stays_nothing_and_lists_of_instants_are_read_too(database: Database) -> None:
    async with database.connection() as db:
        assert await db.fetchval("SELECT NULL::timestamptz") is None
        instants = await db.fetchval("SELECT ARRAY['2000-01-01 00:00:00.5+00', NULL]::timestamptz[]")
        assert instants == ["2000-01-01T00:00:00.500Z", None]


@pytest.mark.parametrize("text", [b"{}", b'{ "b":1,"a" : 2,"b":3}', b'["\\u00e9", 1.0, 1e5]', '"é😀"'.encode()])
async def test_json_keeps_its_bytes(database: Database, text: bytes) -> None:
    async with database.connection() as db:
        assert bytes(await db.fetchval("SELECT $1::json", text)) == text


@pytest.mark.parametrize("text", ["0", "0.3", "150000", "300000", "999999999990000", "1999999999999.99", "1.2345"])
async def test_an_amount_keeps_its_digits(database: Database, text: str) -> None:
    async with database.connection() as db:
        assert str(await db.fetchval("SELECT $1::text::numeric", text)) == text
        assert str(await db.fetchval("SELECT $1::numeric", Decimal(text))) == text
