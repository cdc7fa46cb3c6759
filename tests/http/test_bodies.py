"""Bodies: what is refused, with which words, and that nothing sent to us is ever a 500."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from http.client import HTTPException
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sapa.customers.types import CustomerIn
from sapa.db.pool import Database
from sapa.http import exchange
from sapa.http.bodies import MAX_BYTES, decode_body, translate_validation_error
from sapa.http.errors import FieldError, Invalid
from sapa.orders.types import OrderIn
from tests import depth
from tests.conftest import Installation
from tests.factories import Environments, MadeKey, make_company, make_customer, make_key
from tests.http.probe import Stage, build_probe, open_app
from tests.http.wire import Reply, send, send_bytes

JSON = "application/json"
decoder = msgspec.json.Decoder(CustomerIn)


@pytest.fixture
async def key(database: Database, company: Environments) -> MadeKey:
    return await make_key(database, company.live)


def post(
    installation: Installation, key: MadeKey, body: bytes | Iterator[bytes] | None, content_type: str | None = JSON
) -> Reply:
    headers = [("x-api-key", key.raw)] + [("content-type", kind) for kind in [content_type] if kind is not None]
    return send(installation, "POST", "/customers", headers, body)


def refusal(reply: Reply) -> tuple[int, str | None, list[str]]:
    error = reply.json()["error"]
    return reply.status, error["code"], [detail["field"] for detail in error.get("details", [])]


DEEP = 100_000
MALFORMED = {
    "empty": b"",
    "blank": b"  \n",
    "cut short": b'{"email":',
    "single quotes": b"{'email':'a@example.com'}",
    "trailing comma": b'{"email":"a@example.com",}',
    "trailing text": b'{"email":"a@example.com"} x',
    "two values": b'{"email":"a@example.com"}{}',
    "comment": b'{/* */"email":"a@example.com"}',
    "NaN": b'{"email":"a@example.com","additionalData":{"n":NaN}}',
    "Infinity": b'{"email":"a@example.com","additionalData":{"n":Infinity}}',
    "negative infinity": b'{"email":"a@example.com","additionalData":{"n":-Infinity}}',
    "leading zero": b'{"email":"a@example.com","additionalData":{"n":01}}',
    "plus sign": b'{"email":"a@example.com","additionalData":{"n":+1}}',
    "hexadecimal": b'{"email":"a@example.com","additionalData":{"n":0x1}}',
    "number without end": b'{"email":"a@example.com","additionalData":{"n":1.}}',
    "byte order mark": b'\xef\xbb\xbf{"email":"a@example.com"}',
    "UTF-16": '{"email":"a@example.com"}'.encode("utf-16"),
    "bad UTF-8": b'{"email":"a@example.com","firstName":"\xff"}',
    "bad UTF-8 in a name": b'{"email":"a@example.com","\xc3\x28":"x"}',
    "overlong UTF-8": b'{"email":"a@example.com","firstName":"\xc0\xaf"}',
    "surrogate in UTF-8": b'{"email":"a@example.com","firstName":"\xed\xa0\x80"}',
    "raw NUL": b'{"email":"a@example.com","firstName":"a\0b"}',
    "NUL after the end": b'{"email":"a@example.com"}\0',
    "escaped NUL": b'{"email":"a@example.com","firstName":"a\\u0000b"}',
    "escaped NUL after a backslash": b'{"email":"a@example.com","firstName":"\\\\\\u0000"}',
    "escaped NUL in a key": b'{"email":"a@example.com","additionalData":{"\\u0000":1}}',
    "high surrogate alone": b'{"email":"a@example.com","firstName":"\\ud800"}',
    "low surrogate alone": b'{"email":"a@example.com","firstName":"\\udc00"}',
    "surrogates in the wrong order": b'{"email":"a@example.com","firstName":"\\udc00\\ud800"}',
    "surrogate alone in a key": b'{"email":"a@example.com","additionalData":{"\\ud800":1}}',
    "raw control character": b'{"email":"a@example.com","firstName":"a\nb"}',
    "unknown escape": b'{"email":"a@example.com","firstName":"\\x41"}',
    "deep lists": b"[" * DEEP,
    "deep lists, closed": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "deep in a known field": b'{"tags":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep in free data": b'{"additionalData":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
async def test_what_is_no_proper_json_is_a_400(installation: Installation, key: MadeKey, body: bytes) -> None:
    reply = post(installation, key, body)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR"), reply.body


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"emial": "a@example.com"}, "emial", "is not a known field. Check its spelling or remove it"),
        ({"email": "a@example.com", "id": "x"}, "id", "is not a known field. Check its spelling or remove it"),
        ({"email": 1}, "email", "must be a string or null, not a whole number"),
        ({"email": True}, "email", "must be a string or null, not true or false"),
        ({"email": ["a@example.com"]}, "email", "must be a string or null, not a list"),
        ({"email": "a@example.com", "tags": "vip"}, "tags", "must be a list or null, not a string"),
        ({"email": "a@example.com", "tags": ["vip", 1]}, "tags[1]", "must be a string, not a whole number"),
        ({"email": "a@example.com", "addresses": [{}]}, "addresses[0].address1", "is required"),
        (
            {"email": "a@example.com", "addresses": [{"address1": "x", "town": "y"}]},
            "addresses[0].town",
            "is not a known field. Check its spelling or remove it",
        ),
        ({"email": "a@example.com", "firstName": "x" * 256}, "firstName", "must have at most 255 characters"),
        ({"email": "a@example.com", "externalId": ""}, "externalId", "must have at least 1 characters"),
        (
            {"email": "a@example.com", "additionalData": {"city": "Bandung", "a `b`": [1], "size": [2]}},
            "additionalData.a `b`",
            "must be a whole number or a number or a string, not a list",
        ),
        ({"additionalData": {"a": 1, "b": "x" * 5001}}, "additionalData.b", "must have at most 5000 characters"),
    ],
)
async def test_an_error_names_the_field_and_says_how_to_fix_it(
    installation: Installation, key: MadeKey, body: Any, field: str, message: str
) -> None:
    reply = post(installation, key, msgspec.json.encode(body))
    assert reply.status == 400
    assert reply.json()["error"] == {
        "code": "VALIDATION_ERROR",
        "message": f"{field}: {message}",
        "details": [{"field": field, "message": message}],
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"email":"a@example.com","additionalData":{"n":1e400}}', "additionalData"),
        (b'{"email":"a@example.com","additionalData":{"n":%s}}' % (b"9" * 400), "additionalData"),
        (b'{"email":"a@example.com","additionalData":{"n":9007199254740993}}', "additionalData.n"),
        (b'{"email":"a@example.com","additionalData":{"n":-9007199254740993}}', "additionalData.n"),
        (b'{"email":"a@example.com","additionalData":{"n":1e300}}', "additionalData.n"),
        (b'{"email":"a@example.com","additionalData":{"n":true}}', "additionalData"),
        (b'{"email":"a@example.com","additionalData":{"n":null}}', "additionalData"),
        (b'{"email":"a@example.com","additionalData":{"n":{}}}', "additionalData"),
        (b'{"email":"a@example.com","additionalData":[]}', "additionalData"),
    ],
)
async def test_numbers_that_cannot_be_stored_exactly_are_refused(
    installation: Installation, key: MadeKey, body: bytes, field: str
) -> None:
    status, code, fields = refusal(post(installation, key, body))
    assert (status, code) == (400, "VALIDATION_ERROR")
    assert [name[: len(field)] for name in fields] == [field]


@pytest.mark.parametrize("number", [b"1e-999999999", b"-0.1E-400", b"2e-0324"])
async def test_numbers_that_would_become_zero_are_refused(
    installation: Installation, key: MadeKey, number: bytes
) -> None:
    reply = post(installation, key, b'{"email":"a@example.com","additionalData":{"n":%b}}' % number)
    assert refusal(reply) == (400, "VALIDATION_ERROR", ["additionalData.n"])


@pytest.mark.parametrize("number", [b"0e-999", b"0.00E-400", b"1e-300", b'"1e-999"'])
async def test_other_small_numbers_are_stored(installation: Installation, key: MadeKey, number: bytes) -> None:
    reply = post(installation, key, b'{"email":"a@example.com","additionalData":{"n":%b}}' % number)
    assert reply.status == 201


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"1", b"null", b"true"])
async def test_a_body_that_is_no_object_is_refused(installation: Installation, key: MadeKey, body: bytes) -> None:
    reply = post(installation, key, body)
    assert reply.status == 400
    assert "must be an object" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    "first_name", ["\\u0001", "\\\\u0000", "ayu \\ud83d\\ude00", "é", "\U0001f600", "\\u2028", "a\\/b", "\\\\\\\\u0000"]
)
async def test_unusual_but_valid_text_is_stored(installation: Installation, key: MadeKey, first_name: str) -> None:
    body = f'{{"email":"a@example.com","firstName":"{first_name}"}}'.encode()
    reply = post(installation, key, body)
    assert reply.status == 201, reply.body
    assert reply.json()["data"]["firstName"] == msgspec.json.decode(f'"{first_name}"')


@pytest.mark.parametrize(
    "content_type",
    [JSON, "application/json; charset=utf-8", "application/json;charset=UTF-8", 'application/json; charset="utf-8"',
     "APPLICATION/JSON", "application/json ; charset=utf-8"],
)  # fmt: skip
async def test_json_in_utf_8_may_be_announced_in_any_usual_way(
    installation: Installation, key: MadeKey, content_type: str
) -> None:
    assert post(installation, key, b'{"email":"a@example.com"}', content_type).status == 201


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
     "application/xml", "application/json; charset=latin-1", "application/json; charset=utf-16", "application/jsonp",
     "application/json, text/plain", "application/vnd.api+json", "é"],
)  # fmt: skip
async def test_another_content_type_is_a_415(
    installation: Installation, key: MadeKey, content_type: str | None
) -> None:
    reply = post(installation, key, b'{"email":"a@example.com"}', content_type)
    assert (reply.status, reply.code) == (415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "br", "deflate", "gzip, identity"])
async def test_a_compressed_body_is_a_415_that_says_so(installation: Installation, key: MadeKey, encoding: str) -> None:
    headers = [("x-api-key", key.raw), ("content-type", JSON), ("content-encoding", encoding)]
    reply = send(installation, "POST", "/customers", headers, gzip.compress(b'{"email":"a@example.com"}'))
    assert (reply.status, reply.code) == (415, "UNSUPPORTED_MEDIA_TYPE")
    message = "Compressed bodies are not supported. Send the body without Content-Encoding."
    assert reply.json()["error"]["message"] == message


@pytest.mark.parametrize("encoding", ["identity", "Identity", ""])
async def test_a_plain_body_may_say_that_it_is_plain(installation: Installation, key: MadeKey, encoding: str) -> None:
    headers = [("x-api-key", key.raw), ("content-type", JSON), ("content-encoding", encoding)]
    assert send(installation, "POST", "/customers", headers, b'{"email":"a@example.com"}').status == 201


def padded(size: int) -> bytes:
    body = b'{"email":"a@example.com"}'
    return body + b" " * (size - len(body))


def in_pieces(body: bytes) -> Iterator[bytes]:
    return (body[place : place + 65536] for place in range(0, len(body), 65536))


async def test_a_body_may_have_exactly_1_mib(installation: Installation, key: MadeKey) -> None:
    assert MAX_BYTES == 1024 * 1024
    assert post(installation, key, padded(MAX_BYTES)).status == 201


async def test_a_chunked_body_may_have_exactly_1_mib(installation: Installation, key: MadeKey) -> None:
    assert post(installation, key, in_pieces(padded(MAX_BYTES))).status == 201


@pytest.mark.parametrize("size", [MAX_BYTES + 1, 3 * MAX_BYTES])
async def test_a_larger_body_is_a_413(installation: Installation, key: MadeKey, size: int) -> None:
    for body in (padded(size), in_pieces(padded(size))):
        reply = post(installation, key, body)
        assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE")
        assert reply.json()["error"]["message"] == "The request's body is larger than 1 MiB."


async def test_after_a_413_the_server_serves_on(installation: Installation, key: MadeKey) -> None:
    assert post(installation, key, padded(MAX_BYTES + 1)).status == 413
    assert post(installation, key, padded(100)).status == 201


def head_of(key: MadeKey, *more: str) -> bytes:
    lines = [
        "POST /customer/v1/customers HTTP/1.1",
        "host: sapa",
        f"x-api-key: {key.raw}",
        f"content-type: {JSON}",
        *more,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


@pytest.mark.parametrize(
    "rest",
    [b"zz\r\n{}", b"5\r\n{}", b"2\r\n{}XX", b"-1\r\n{}\r\n0\r\n\r\n", b"fffffffffffffffff\r\n{}"],
    ids=["no number", "ends early", "no line end", "negative", "overflow"],
)
async def test_a_broken_chunk_is_a_400_and_nothing_is_created(
    installation: Installation, key: MadeKey, rest: bytes
) -> None:
    reply = send_bytes(installation, head_of(key, "transfer-encoding: chunked") + rest, half_close=True)
    assert reply.status == 400
    assert send(installation, "GET", "/customers", [("x-api-key", key.raw)]).json()["meta"]["total"] == 0


async def test_a_caller_who_leaves_in_the_middle_creates_nothing(installation: Installation, key: MadeKey) -> None:
    whole = b'{"email":"gone@example.com"}'
    request = head_of(key, f"content-length: {len(whole) + 1}") + whole
    with suppress(ConnectionError, HTTPException):
        assert send_bytes(installation, request, half_close=True).status == 400
    assert send(installation, "GET", "/customers", [("x-api-key", key.raw)]).json()["meta"]["total"] == 0


async def test_a_body_that_does_not_arrive_in_time_is_a_408(
    installation: Installation, key: MadeKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "BODY_SECONDS", 0.1)

    async def slowly() -> AsyncIterator[bytes]:
        yield b'{"name":'
        await asyncio.sleep(30)
        yield b'"never"}'

    async with open_app(installation, [build_probe(Stage())]) as client:
        headers = {"x-api-key": key.raw, "content-type": JSON}
        response = await client.post("/probe/things", content=slowly(), headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (408, "REQUEST_TIMEOUT")


def test_a_body_has_thirty_seconds() -> None:
    assert exchange.BODY_SECONDS == 30


async def test_a_body_where_none_is_expected_is_ignored(installation: Installation, key: MadeKey) -> None:
    assert send(installation, "GET", "/customers", [("x-api-key", key.raw)], b"{").status == 200


@pytest.mark.parametrize(
    "instant", ["0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "9999-12-31T23:59:59.9996Z"]
)
async def test_an_instant_whose_year_is_none_in_utc_is_refused(api: httpx.AsyncClient, instant: str) -> None:
    """Also one that is rounded to the year 10000."""
    customer = (await make_customer(api))["id"]
    body = {"app": "CRM", "status": "subscribe", "proof": {"text": instant, "obtainedAt": instant}}
    refused = await api.post(f"/customers/{customer}/consents", json=body)
    expected = {"field": "proof.obtainedAt", "message": "must be within the years 1 to 9999 in UTC"}
    assert (refused.status_code, refused.json()["error"]["details"]) == (400, [expected])
    body["proof"] = {"text": instant}
    assert (await api.post(f"/customers/{customer}/consents", json=body)).status_code == 201


async def test_a_field_given_twice_counts_as_its_last_value(installation: Installation, key: MadeKey) -> None:
    reply = post(installation, key, b'{"email":"a@example.com","email":"b@example.com"}')
    assert reply.json()["data"]["email"] == "b@example.com"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=6,
)
customer_like = st.dictionaries(
    st.sampled_from(["email", "phoneNumber", "tags", "addresses", "additionalData", "subscriptionStatus", "x`y", ""]),
    json_values,
    max_size=4,
)


@settings(max_examples=depth.examples(50))
@given(
    st.binary(max_size=200)
    | customer_like.map(msgspec.json.encode)
    | st.text().map(lambda text: text.encode("utf-8", "surrogatepass"))
)
def test_any_bytes_are_a_customer_or_a_refusal_in_words(body: bytes) -> None:
    with suppress(Invalid):
        assert isinstance(decode_body(body, decoder), CustomerIn)


@given(st.text(min_size=1, max_size=30))
def test_an_unknown_field_is_named_whatever_its_name(name: str) -> None:
    body = msgspec.json.encode({name: 1})
    if "\0" in name or name in {field.encode_name for field in msgspec.structs.fields(CustomerIn)}:
        return
    with pytest.raises(Invalid) as refused:
        decode_body(body, decoder)
    assert [detail.field for detail in refused.value.details or []] == [name]


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("Object missing required field `name`", "name", "is required"),
        ("Object missing required field `name` - at `$.items[3]`", "items[3].name", "is required"),
        ("Expected `int`, got `str` - at `$.page`", "page", "must be a whole number, not a string"),
        ("Expected `int` >= 1 - at `$.quantity`", "quantity", "must be a whole number >= 1"),
        ("Expected `int | null`, got `str` - at `$.page`", "page", "must be a whole number or null, not a string"),
        ("Expected `array` of length <= 3 - at `$.tags`", "tags", "must have at most 3 items"),
        ("Expected `str` of length >= 2 - at `$.tags[0]`", "tags[0]", "must have at least 2 characters"),
        ("Expected `object` of length <= 9 - at `$.additionalData`", "additionalData", "must have at most 9 keys"),
        ("Expected `str` matching regex '^x$' - at `$.code`", "code", "must be a string matching regex '^x$'"),
        (
            "Invalid enum value 'x' - at `$.subscriptionStatus[0].status`",
            "subscriptionStatus[0].status",
            "must be one of subscribe, unsubscribe",
        ),
    ],
)
def test_the_decoder_s_words_become_ours(text: str, field: str, message: str) -> None:
    details = translate_validation_error(text, CustomerIn).details or []
    assert [(detail.field, detail.message) for detail in details] == [(field, message)]


def test_a_text_that_is_written_otherwise_is_explained_by_an_example() -> None:
    with pytest.raises(Invalid) as refused:
        decode_body(b'{"currency":"idr","lineItems":[]}', msgspec.json.Decoder(OrderIn))
    assert refused.value.details == [FieldError("currency", "must be written like IDR, and match ^[A-Z]{3}$")]


@pytest.mark.parametrize("body", [b"[" * DEEP, b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP])
def test_deep_nesting_is_refused_even_where_anything_goes(body: bytes) -> None:
    with pytest.raises(Invalid, match="nested too deeply"):
        decode_body(body, msgspec.json.Decoder(Any))


@settings(max_examples=depth.examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=customer_like)
def test_any_json_over_http_gets_a_status_below_500(installation: Installation, hammer_key: str, body: Any) -> None:
    headers = [("x-api-key", hammer_key), ("content-type", JSON)]
    reply = send(installation, "POST", "/customers", headers, msgspec.json.encode(body))
    assert reply.status < 500


@pytest.fixture(scope="session")
async def hammer_key(database: Database) -> str:
    return (await make_key(database, (await make_company(database)).live)).raw
