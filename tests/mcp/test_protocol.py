"""Messages and headers of MCP, as pure functions."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.http.exchange import Exchange
from sapa.http.incoming import BufferedBody
from sapa.mcp.protocol import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    VERSIONS,
    ProtocolError,
    check_version,
    decode_message,
    encode_header,
)
from tests.mcp.client import MODERN, build_headers, build_message


def build_exchange(headers: dict[str, str]) -> Exchange:
    exchange = Exchange({"method": "POST", "path": "/mcp"}, BufferedBody(b""))
    exchange.headers = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    return exchange


def refuse(body: bytes) -> ProtocolError:
    with pytest.raises(ProtocolError) as raised:
        decode_message(body)
    return raised.value


def check(message: dict[str, Any], headers: dict[str, str]) -> bool:
    return check_version(decode_message(msgspec.json.encode(message)), build_exchange(headers))


def find_code(message: dict[str, Any], headers: dict[str, str]) -> int:
    with pytest.raises(ProtocolError) as raised:
        check(message, headers)
    assert raised.value.status == 400
    return raised.value.error.code


@pytest.mark.parametrize(
    ("body", "code", "id"),
    [
        (b"", PARSE_ERROR, None),
        (b"{", PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', PARSE_ERROR, None),
        (b"[" * 5_000, PARSE_ERROR, None),
        (b"[]", INVALID_REQUEST, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', INVALID_REQUEST, 1),
        (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', INVALID_REQUEST, "a"),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}', INVALID_PARAMS, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":7}}', INVALID_PARAMS, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":[]}}', INVALID_PARAMS, 7),
    ],
)
def test_what_is_no_single_request_is_refused_with_its_id(body: bytes, code: int, id: object) -> None:
    refusal = refuse(body)
    assert (refusal.status, refusal.error.code, refusal.id) == (400, code, id)


def test_a_stateless_request_and_its_headers_agree() -> None:
    message = build_message("tools/call", name="get_order", arguments={})
    headers = build_headers(message)
    assert check(message, headers)
    assert check(message, {**headers, "mcp-name": " get_order\t"})
    for name in ("mcp-protocol-version", "mcp-method", "mcp-name"):
        assert find_code(message, {**headers, name: "tools/list"}) == HEADER_MISMATCH
        assert find_code(message, {**headers, name: headers[name].upper() + "X"}) == HEADER_MISMATCH
        assert find_code(message, {key: value for key, value in headers.items() if key != name}) == HEADER_MISMATCH


def test_a_stateless_request_says_its_version_and_its_capabilities() -> None:
    message = build_message("tools/list")
    headers = build_headers(message)
    for key in ("protocolVersion", "clientCapabilities"):
        meta = {name: value for name, value in message["params"]["_meta"].items() if not name.endswith(key)}
        assert find_code({**message, "params": {"_meta": meta}}, headers) == INVALID_PARAMS
    assert find_code({**message, "params": {}}, headers) == INVALID_PARAMS


@pytest.mark.parametrize("version", ["1900-01-01", "2024-11-05", "2099-01-01", ""])
def test_a_version_that_is_not_served_is_answered_with_those_that_are(version: str) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    headers = {**build_headers(message), "mcp-protocol-version": version}
    for request in (message, {**message, "params": {}}):
        with pytest.raises(ProtocolError) as raised:
            check(request, headers)
        assert raised.value.error.code == UNSUPPORTED_VERSION
        assert raised.value.error.data == {"supported": VERSIONS, "requested": version}


def test_a_header_unlike_the_body_is_a_mismatch_whatever_the_version() -> None:
    message = build_message("tools/list")
    message["params"]["_meta"] = {**message["params"]["_meta"], "io.modelcontextprotocol/protocolVersion": "v999"}
    assert find_code(message, build_headers(message)) == HEADER_MISMATCH


@pytest.mark.parametrize("version", [None, "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_request_of_an_earlier_version_needs_no_headers(version: str | None) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert not check(message, {} if version is None else {"mcp-protocol-version": version})


def test_the_versions_are_the_newest_and_the_three_before_it() -> None:
    assert VERSIONS == (MODERN, "2025-11-25", "2025-06-18", "2025-03-26")


@given(st.text(min_size=1))
def test_every_name_survives_its_header(name: str) -> None:
    message = build_message("tools/call", name=name, arguments={})
    encoded = encode_header(name)
    assert encoded.isascii()
    assert encoded.isprintable()
    assert check(message, {**build_headers(message), "mcp-name": encoded})


@pytest.mark.parametrize("value", ["=?base64?x?=", "=?base64?/w==?=", "=?base64?get_order?="])
def test_a_header_that_is_no_base64_is_a_mismatch(value: str) -> None:
    message = build_message("tools/call", name="get_order", arguments={})
    assert find_code(message, {**build_headers(message), "mcp-name": value}) == HEADER_MISMATCH
