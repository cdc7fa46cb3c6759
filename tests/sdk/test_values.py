"""Paths, queries and files of the Python SDK, held against the server's own parsers."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from io import BytesIO, StringIO
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given, strategies

from sapa.http.query_string import parse_date_time, parse_integer, parse_pairs, parse_words
from sapa_client import NOT_GIVEN
from sapa_client._values import Query, Upload, build_path, encode_json, encode_query, read_upload
from sapa_client.types import CustomerPatch, LineItemIn

TEXT = strategies.text(strategies.characters(exclude_categories=["Cs"], exclude_characters="\0"))
WORD = TEXT.map(lambda text: text.replace(",", "").strip()).filter(bool)
ACCEPTED = ["text/csv", "application/x-ndjson"]


@given(WORD.filter(lambda text: text not in {".", ".."}))
def test_an_id_is_one_segment_of_the_path(id: str) -> None:
    path = build_path("/customers/{}/timeline", id)
    assert path.isascii()
    assert [unquote(segment) for segment in path.split("/")] == ["", "customers", id, "timeline"]


@pytest.mark.parametrize("id", ["", ".", ".."])
def test_what_would_lead_to_another_path_is_no_id(id: str) -> None:
    with pytest.raises(ValueError, match="is not an id"):
        build_path("/customers/{}", id)


def test_an_id_is_a_string() -> None:
    with pytest.raises(TypeError):
        build_path("/customers/{}", None)  # type: ignore[arg-type]


@given(TEXT, strategies.integers(-(10**9), 10**9), strategies.lists(WORD, min_size=1), strategies.datetimes())
def test_a_query_is_read_as_it_was_written(text: str, number: int, words: list[str], time: datetime) -> None:
    zoned = time.replace(tzinfo=timezone(timedelta(hours=7)))
    query: Query = {"search": text, "page": number, "tags": words, "startAt": zoned, "absent": None}
    read = dict(parse_pairs(encode_query(query).encode()))
    assert read.keys() == {"search", "page", "tags", "startAt"}
    assert read["search"] == text
    assert parse_integer(read["page"]) == number
    assert parse_words(read["tags"]) == words
    if 1 < time.year < 9999:
        assert parse_date_time(read["startAt"]) == zoned


def test_flags_are_words() -> None:
    assert encode_query({"active": True, "dryRun": False}) == "active=true&dryRun=false"


def test_a_comma_within_a_value_is_refused() -> None:
    with pytest.raises(ValueError, match="tags contains a comma"):
        encode_query({"tags": ["vip,reseller"]})


def test_absent_differs_from_null() -> None:
    assert encode_json(CustomerPatch(first_name=None, last_name=NOT_GIVEN)) == b'{"firstName":null}'


@given(strategies.decimals(allow_nan=False, allow_infinity=False, places=2))
def test_amounts_are_exact_numbers(price: Decimal) -> None:
    encoded = encode_json(LineItemIn(title="Kopi", price=price, quantity=1))
    assert Decimal(encoded.split(b'"price":')[1].split(b",")[0].rstrip(b"}").decode()) == price


def test_a_file_in_text_mode_is_refused() -> None:
    with pytest.raises(TypeError, match="binary mode"):
        read_upload(StringIO("email\n"), "text/csv", ACCEPTED)  # type: ignore[arg-type]


def test_a_file_is_read_from_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "customers.CSV"
    path.write_bytes(b"email\n")
    expected = Upload(b"email\n", "text/csv")
    assert read_upload(path, None, ACCEPTED) == expected
    with path.open("rb") as file:
        assert read_upload(file, None, ACCEPTED) == expected
    assert read_upload(b"email\n", "text/csv", ACCEPTED) == expected
    assert read_upload(BytesIO(b"email\n"), "text/csv", ACCEPTED) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("a.ndjson", ACCEPTED[1]), ("a.jsonl", ACCEPTED[1]), ("a.csv", ACCEPTED[0])]
)
def test_the_name_tells_the_type(tmp_path: Path, name: str, expected: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert read_upload(tmp_path / name, None, ACCEPTED).content_type == expected
    assert read_upload(tmp_path / name, None, ["application/octet-stream"]).content_type == "application/octet-stream"


@pytest.mark.parametrize("source", [b"email\n", Path("customers.pdf")])
def test_a_type_that_cannot_be_told_is_asked_for(source: bytes | Path) -> None:
    with pytest.raises(ValueError, match="text/csv, application/x-ndjson"):
        read_upload(source, None, ACCEPTED)


def test_times_keep_their_zone() -> None:
    assert encode_query({"at": datetime(2026, 1, 31, 9, 30, tzinfo=UTC)}) == "at=2026-01-31T09%3A30%3A00%2B00%3A00"
