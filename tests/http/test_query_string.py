"""Query strings: read strictly, refused by name."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Annotated, Literal
from urllib.parse import quote

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from sapa.http.errors import Invalid
from sapa.http.query_string import (
    BadValue,
    PageQuery,
    QueryReader,
    list_filters,
    parse_date,
    parse_date_time,
    parse_integer,
    parse_pairs,
)
from tests.conftest import Installation
from tests.factories import make_customer
from tests.http.wire import send, send_bytes

ADVICE = "must be an ISO 8601 date-time with an offset, such as 2026-01-31T09:30:00Z"


async def refused_field(api: httpx.AsyncClient, query: str) -> tuple[str, str]:
    response = await api.get(f"/customers?{query}")
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "VALIDATION_ERROR")
    (detail,) = error["details"]
    assert error["message"] == f"{detail['field']}: {detail['message']}"
    return detail["field"], detail["message"]


@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        (
            "pages=1",
            "pages",
            "is not a parameter of this endpoint. Its parameters: page, limit, search, tags, sort,",
        ),
        ("Page=1", "Page", "is not a parameter of this endpoint"),
        ("created_from=2026-01-01T00:00:00Z", "created_from", "is not a parameter of this endpoint"),
        ("=1", "", "is not a parameter of this endpoint"),
        ("page%5B%5D=1", "page[]", "is not a parameter of this endpoint"),
        ("page=1&page=1", "page", "is repeated. Send it once"),
        ("tags=a&tags=b", "tags", "is repeated. Send it once"),
        ("page=1&p%61ge=2", "page", "is repeated. Send it once"),
        ("page=0", "page", "must be from 1 to 1000000"),
        ("page=-1", "page", "must be from 1 to 1000000"),
        ("page=1000001", "page", "must be from 1 to 1000000"),
        ("limit=0", "limit", "must be from 1 to 100"),
        ("limit=101", "limit", "must be from 1 to 100"),
        ("page=1.0", "page", "must be a whole number"),
        ("page=1e1", "page", "must be a whole number"),
        ("page=", "page", "must be a whole number"),
        ("page", "page", "must be a whole number"),
        ("page=null", "page", "must be a whole number"),
        ("page=%201", "page", "must be a whole number"),
        ("page=1%0A", "page", "must be a whole number"),
        ("page=%2B1", "page", "must be a whole number"),
        ("page=0x1", "page", "must be a whole number"),
        ("page=1_000", "page", "must be a whole number"),
        ("page=%D9%A1", "page", "must be a whole number"),
        ("page=999999999999999999999999999999", "page", "must be a whole number"),
        ("page=" + "9" * 5000, "page", "must be a whole number"),
        ("sort=name:asc", "sort", "must be one of updatedAt:desc, updatedAt:asc"),
        ("sort=updatedAt", "sort", "must be one of"),
        ("limit=", "limit", "must be a whole number"),
        ("search=%20", "search", "must not be blank"),
        ("search=" + "x" * 201, "search", "must have at most 200 characters"),
        ("tags=,,", "tags", "must have at least one value"),
        ("createdFrom=yesterday", "createdFrom", ADVICE),
        ("createdTo=2026-01-31", "createdTo", ADVICE),
        ("updatedFrom=2026-01-31T09:30:00", "updatedFrom", ADVICE),
        ("updatedTo=1767225600", "updatedTo", ADVICE),
    ],
)
async def test_a_parameter_that_cannot_be_used_is_refused_by_name(
    api: httpx.AsyncClient, query: str, field: str, message: str
) -> None:
    found = await refused_field(api, query)
    assert found[0] == field
    assert found[1].startswith(message)


@pytest.mark.parametrize("query", ["%FF", "page=%C3%28", "search=%ED%A0%80", "search=%C0%AF", "search=%80", "%FF=1"])
async def test_bad_utf_8_is_a_400(api: httpx.AsyncClient, query: str) -> None:
    response = await api.get(f"/customers?{query}")
    assert response.status_code == 400
    assert response.json()["error"] == {
        "code": "VALIDATION_ERROR",
        "message": "The query string is not valid UTF-8. Encode it as UTF-8.",
    }


def test_raw_bytes_that_are_no_utf_8_are_a_400(installation: Installation, api: httpx.AsyncClient) -> None:
    head = f"HTTP/1.1\r\nhost: sapa\r\nx-api-key: {api.headers['x-api-key']}\r\nconnection: close\r\n\r\n".encode()
    assert send_bytes(installation, b"GET /customer/v1/customers?search=\xff " + head).status == 400


@pytest.mark.parametrize("query", ["search=%00", "search=a%00b", "page=1%00", "%00=1", "tags=%00", "sort=%00"])
async def test_a_nul_is_a_400(api: httpx.AsyncClient, query: str) -> None:
    response = await api.get(f"/customers?{query}")
    assert response.status_code == 400
    assert response.json()["error"]["message"] == "The query string contains a NUL character. Remove it."


@pytest.mark.parametrize("path", ["/customers/%FF", "/customers/%C3%28", "/%FF", "/customers/by-external-id/%80"])
async def test_bad_utf_8_in_the_path_is_a_400(api: httpx.AsyncClient, installation: Installation, path: str) -> None:
    key = ("x-api-key", api.headers["x-api-key"])
    for method in ("GET", "PUT", "DELETE"):
        reply = send(installation, method, path, [key, ("content-type", "application/json")], b"{}")
        assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")
        assert reply.json()["error"]["message"] == "The path is not valid UTF-8. Encode it as UTF-8."


async def test_the_replacement_character_itself_is_valid_in_a_path(api: httpx.AsyncClient) -> None:
    response = await api.put("/customers/by-external-id/a%EF%BF%BDb", json={"email": "a@example.com"})
    assert response.status_code == 201
    assert response.json()["data"]["externalId"] == "a\ufffdb"


async def test_percent_signs_that_encode_nothing_are_literal(api: httpx.AsyncClient) -> None:
    await make_customer(api, firstName="100% Ayu")
    for query in ("search=100%25%20ayu", "search=100%+ayu", "search=100%25+AYU"):
        assert (await api.get(f"/customers?{query}")).json()["meta"]["total"] == 1, query


async def test_empty_parts_are_nothing(api: httpx.AsyncClient) -> None:
    assert (await api.get("/customers?&page=1&&")).status_code == 200
    assert (await api.get("/customers?")).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/customers/{id}"), ("PUT", "/customers/{id}"), ("DELETE", "/customers/{id}"), ("POST", "/customers")],
)
async def test_an_endpoint_without_parameters_refuses_any(api: httpx.AsyncClient, method: str, path: str) -> None:
    place = path.format(id=(await make_customer(api))["id"])
    body = None if method in {"GET", "DELETE"} else {"firstName": "Ayu"}
    response = await api.request(method, f"{place}?expand=1", json=body)
    assert response.status_code == 400
    message = "is not a parameter of this endpoint. Its parameters: none"
    assert response.json()["error"]["details"] == [{"field": "expand", "message": message}]


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-01-31T09:30:00Z", datetime(2026, 1, 31, 9, 30, tzinfo=UTC)),
        ("2026-01-31t09:30:00z", datetime(2026, 1, 31, 9, 30, tzinfo=UTC)),
        ("2026-01-31T09:30:00.5Z", datetime(2026, 1, 31, 9, 30, 0, 500_000, tzinfo=UTC)),
        ("2026-01-31T09:30:00.123456789Z", datetime(2026, 1, 31, 9, 30, 0, 123_456, tzinfo=UTC)),
        ("2026-01-31T16:30:00+07:00", datetime(2026, 1, 31, 9, 30, tzinfo=UTC)),
        ("2026-01-31T16:30:00 07:00", datetime(2026, 1, 31, 9, 30, tzinfo=UTC)),
        ("2026-01-30T23:30:00-10:00", datetime(2026, 1, 31, 9, 30, tzinfo=UTC)),
        ("2024-02-29T00:00:00-00:00", datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_date_times_with_any_offset_are_read(text: str, instant: datetime) -> None:
    assert parse_date_time(text) == instant


@pytest.mark.parametrize(
    "text",
    ["", "2026", "2026-01-31", "20260131T093000Z", "2026-01-31T09:30Z", "2026-01-31 09:30:00Z", "2026-01-31T09:30:00",
     "2026-01-31T09:30:00+0700", "2026-01-31T09:30:00+07", "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z",
     "2026-01-31T24:00:00Z", "2026-01-31T09:60:00Z", "2026-01-31T09:30:61Z", "2026-01-31T09:30:00.Z",
     "2026-01-31T09:30:00,5Z", "2026-01-31T09:30:00+24:00", "2026-01-31T09:30:00+07:60", "0000-01-01T00:00:00Z",
     "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2026-01-31T09:30:00ZZ", "2026-W05-6T09:30:00Z",
     "٢٠٢٦-01-31T09:30:00Z", "2026-01-31T09:30:00Z\n", "-2026-01-31T09:30:00Z", "now", "null"],
)  # fmt: skip
def test_other_date_times_are_refused(text: str) -> None:
    with pytest.raises(BadValue, match="ISO 8601"):
        parse_date_time(text)


@pytest.mark.parametrize(
    "text", ["", "2026", "20260131", "2026-1-31", "2026-02-29", "2026-13-01", "2026-W05-6", "2026-01-31T09:30:00Z",
             "0000-01-01", "٢٠٢٦-01-31", "2026-01-31\n", "today"]
)  # fmt: skip
def test_other_dates_are_refused(text: str) -> None:
    assert parse_date("2026-01-31") == date(2026, 1, 31)
    with pytest.raises(BadValue, match="must be a date, such as"):
        parse_date(text)


offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
instants = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30), timezones=offsets)


@given(instants)
def test_every_instant_that_python_prints_is_read_back(instant: datetime) -> None:
    text = instant.isoformat()
    assert parse_date_time(text) == instant
    assert parse_date_time(text).tzinfo == UTC
    assert parse_date_time(text.replace("+", " ")) == instant


@given(st.text(max_size=40))
def test_any_text_is_a_date_time_or_refused(text: str) -> None:
    try:
        parse_date_time(text)
    except BadValue:
        return
    assert text[4] == text[7] == "-"


@given(st.integers(-(10**15) + 1, 10**15 - 1))
def test_integers_are_read_back(number: int) -> None:
    assert parse_integer(str(number)) == number


@given(st.dictionaries(st.text(min_size=1).filter(lambda t: "\0" not in t), st.text().filter(lambda t: "\0" not in t)))
def test_pairs_come_back_as_they_were_encoded(pairs: dict[str, str]) -> None:
    query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs.items())
    assert parse_pairs(query.encode()) == list(pairs.items())


@given(st.binary(max_size=60))
def test_any_bytes_are_pairs_or_a_refusal(query: bytes) -> None:
    try:
        pairs = parse_pairs(query)
    except Invalid:
        return
    assert all("\0" not in name + value for name, value in pairs)


class Search(PageQuery, frozen=True, kw_only=True):
    words: list[str] | None = None
    kind: Literal["a", "b"] = "a"
    since: datetime | None = None
    code: Annotated[str, Meta(pattern="^[A-Z]{3}$")] | None = None


def test_a_struct_says_which_parameters_there_are() -> None:
    reader = QueryReader(Search)
    read = reader.read(b"words=+a,b+,,a&kind=b&since=2026-01-31T09:30:00Z&code=IDR&limit=7&page=3")
    assert read == Search(
        words=["a", "b", "a"], kind="b", since=datetime(2026, 1, 31, 9, 30, tzinfo=UTC), code="IDR", limit=7, page=3
    )
    assert read.offset == 14
    assert reader.read(b"") == Search()
    assert list_filters(Search) == {"words", "kind", "since", "code"}
    assert reader.read(b"words=&kind=&since=&code=&limit=7") == Search(limit=7)


@pytest.mark.parametrize("query", [b"code=idr", b"code=IDRX", b"code=%20", b"kind=c", b"limit=1&limit=2", b"pages=1"])
def test_values_outside_a_struct_s_bounds_are_refused(query: bytes) -> None:
    with pytest.raises(Invalid):
        QueryReader(Search).read(query)


def test_a_type_that_no_parameter_can_have_fails_when_it_is_declared() -> None:
    with pytest.raises(KeyError):
        QueryReader(msgspec.defstruct("Odd", [("x", complex, 0)]))
