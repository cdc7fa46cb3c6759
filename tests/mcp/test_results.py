"""What a model reads: results without empty fields, and errors that say what to change."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.http.errors import ApiError, Conflict, FieldError, Invalid, NotFound, RateLimitExceeded
from sapa.http.responses import HttpResponse
from sapa.mcp.protocol import encode_result
from sapa.mcp.results import ToolResult, build_error_result, build_result, drop_empty

NAMES = st.sampled_from(["id", "data", "name", "a\\", 'q"q', '","', "null", "é"]) | st.text(max_size=4)
TEXTS = st.sampled_from(["", 'x":null', '","a":null,', "\\", '\\"', ':null,"b":[]', "{}"]) | st.text(max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)


def is_same_without_empties(full: Any, short: Any) -> bool:
    """Whether a value is another one without some members that were empty, or became so."""
    if isinstance(full, list):
        return (
            isinstance(short, list)
            and len(full) == len(short)
            and all(is_same_without_empties(one, other) for one, other in zip(full, short, strict=True))
        )
    if not isinstance(full, dict):
        return bool(full == short and type(full) is type(short))
    if not isinstance(short, dict) or not set(short) <= set(full):
        return False
    if [name for name in full if name in short] != list(short):
        return False
    missing = [full[name] for name in full if name not in short]
    return all(is_empty(value) for value in missing) and all(
        is_same_without_empties(full[name], short[name]) for name in short
    )


def is_empty(value: Any) -> bool:
    return value in (None, [], {}) or (isinstance(value, dict) and all(is_empty(item) for item in value.values()))


@given(VALUES)
def test_a_shortened_text_is_the_same_json_without_empty_members(value: Any) -> None:
    body = msgspec.json.encode(value)
    assert is_same_without_empties(json.loads(body), json.loads(drop_empty(body)))


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ('{"a":null,"b":null,"c":1}', '{"c":1}'),
        ('{"a":1,"b":null,"c":[],"d":{}}', '{"a":1}'),
        ('{"a":null}', "{}"),
        ('{"data":[],"meta":{"page":1}}', '{"data":[],"meta":{"page":1}}'),
        ('{"data":null}', '{"data":null}'),
        ('{"a":[null,{"b":null}],"c":""}', '{"a":[null,{}],"c":""}'),
        ('{"a":{"b":null},"c":2}', '{"a":{},"c":2}'),
        ('{"x,":":null","y{":":null,"}', '{"x,":":null","y{":":null,"}'),
        (r'{"a":"\"b\":null,","c":"x:null"}', r'{"a":"\"b\":null,","c":"x:null"}'),
    ],
)
def test_empty_members_are_left_out_of_the_text(full: str, short: str) -> None:
    assert drop_empty(full.encode()).decode() == short


def decode_result(result: ToolResult) -> Any:
    return json.loads(encode_result(1, result.encode_members(), is_modern=False).body)["result"]


def test_a_result_has_the_text_and_the_whole_response() -> None:
    body = b'{"data":{"id":"order_1","notes":null,"tags":[]}}'
    result = decode_result(build_result(HttpResponse(200, body)))
    assert result == {
        "content": [{"type": "text", "text": '{"data":{"id":"order_1"}}'}],
        "structuredContent": {"data": {"id": "order_1", "notes": None, "tags": []}},
    }


def test_a_large_result_stays_as_it_is() -> None:
    body = msgspec.json.encode({"data": {"notes": None, "filler": "x" * 9_000}})
    assert decode_result(build_result(HttpResponse(200, body)))["content"][0]["text"] == body.decode()


def test_a_result_without_a_body_says_that_it_is_done() -> None:
    assert decode_result(build_result(HttpResponse(204))) == {"content": [{"type": "text", "text": "Done."}]}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Invalid.field("page", "must be a whole number"), "VALIDATION_ERROR: page: must be a whole number"),
        (
            Invalid("Two fields are wrong.", details=[FieldError("a", "is required"), FieldError("b", "is too long")]),
            "VALIDATION_ERROR: Two fields are wrong.\n- a: is required\n- b: is too long",
        ),
        (
            Conflict("It exists.", details=[FieldError("email", "is taken", "cust_1")]),
            "CONFLICT: It exists.\n- email: is taken (id cust_1)",
        ),
        (
            RateLimitExceeded("Too many requests.", headers={"retry-after": "7"}),
            "RATE_LIMIT_EXCEEDED: Too many requests.\nTry again in 7 seconds.",
        ),
        (NotFound(), "NOT_FOUND: resource not found"),
    ],
)
def test_an_error_says_what_to_change_once(error: ApiError, text: str) -> None:
    assert decode_result(build_error_result(error)) == {
        "content": [{"type": "text", "text": text}],
        "structuredContent": json.loads(error.encode()),
        "isError": True,
    }
