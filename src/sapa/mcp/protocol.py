"""MCP on the wire: JSON-RPC messages, the versions that are served, and how headers repeat a message."""

import binascii
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from sapa import __version__
from sapa.http.bodies import LONGEST_ECHO
from sapa.http.exchange import Exchange
from sapa.http.responses import HttpResponse

MODERN = "2026-07-28"
"""Stateless: every request says in `_meta` which version it speaks."""
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26")
"""A client opens with `initialize`. Nothing is remembered of it."""
VERSIONS = (MODERN, *LEGACY)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

SERVER_INFO = {"name": "sapa", "title": "Sapa", "version": __version__}

_LEGACY_START = b',"result":{'
_MODERN_START = b'%b"resultType":"complete","_meta":%b,' % (
    _LEGACY_START,
    msgspec.json.encode({"io.modelcontextprotocol/serverInfo": SERVER_INFO}),
)
_BASE64_START, _BASE64_END = "=?base64?", "?="

MessageId = int | str


class RequestMeta(Struct, frozen=True):
    """What a modern client says about itself with every request."""

    version: str | UnsetType = msgspec.field(default=UNSET, name="io.modelcontextprotocol/protocolVersion")
    capabilities: dict[str, Any] | UnsetType = msgspec.field(
        default=UNSET, name="io.modelcontextprotocol/clientCapabilities"
    )


class RequestParams(Struct, frozen=True, rename="camel"):
    """The parameters of the methods that are served."""

    name: str = ""
    arguments: dict[str, Raw] | None = None
    cursor: str | None = None
    protocol_version: str = ""
    meta: RequestMeta = msgspec.field(default_factory=RequestMeta, name="_meta")


class RpcMessage(Struct, frozen=True):
    """A request, or a notification if it has no id."""

    jsonrpc: Literal["2.0"]
    method: str
    id: MessageId | UnsetType = UNSET
    params: RequestParams = msgspec.field(default_factory=RequestParams)


class RpcError(Struct, frozen=True, omit_defaults=True):
    code: int
    message: str
    data: Any = None


class ProtocolError(Exception):
    """A message that is not valid MCP: a broken request, not one that a model could correct."""

    def __init__(self, code: int, message: str, status: int = 400, data: Any = None) -> None:
        super().__init__(message)
        self.error = RpcError(code, message, data)
        self.status = status
        self.id: MessageId | None = None
        """That of the request, once it is known."""


NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_decode = msgspec.json.Decoder(RpcMessage).decode


def decode_message(body: bytes) -> RpcMessage:
    """The one message of a request's body."""
    try:
        return _decode(body)
    except msgspec.ValidationError as error:
        reason = str(error)
    except NOT_JSON as error:
        raise ProtocolError(PARSE_ERROR, f"The body is not valid JSON: {error}.") from None
    raise _explain_message(body, reason)


def _explain_message(body: bytes, reason: str) -> ProtocolError:
    """Why JSON that is not a message is refused, with its id if it has one."""
    try:
        content = msgspec.json.decode(body)
    except NOT_JSON as error:
        return ProtocolError(PARSE_ERROR, f"The body is not valid JSON: {error}.")
    if not isinstance(content, dict):
        return ProtocolError(INVALID_REQUEST, "Send one JSON-RPC request per call; batches are not supported.")
    id = content.get("id", "")
    has_id = isinstance(id, MessageId) and not isinstance(id, bool)
    is_request = has_id and content.get("jsonrpc") == "2.0" and isinstance(content.get("method"), str)
    code = INVALID_PARAMS if is_request else INVALID_REQUEST
    refusal = ProtocolError(code, f"The message is not a valid JSON-RPC 2.0 request: {reason}.")
    refusal.id = content.get("id") if has_id else None
    return refusal


def check_version(message: RpcMessage, exchange: Exchange) -> bool:
    """Whether the message is of the stateless version. Raises for a version that is not served, and if the headers of a
    stateless request differ from its body."""
    header = _read_header(exchange, b"mcp-protocol-version")
    meta = message.params.meta
    version = header if meta.version is UNSET else meta.version
    if version is None or version in LEGACY:
        _check_header("MCP-Protocol-Version", header or version, version)
        return False
    if meta.version is not UNSET and message.id is not UNSET:
        _check_header("MCP-Protocol-Version", header, version)
    if version != MODERN:
        data = {"supported": VERSIONS, "requested": shorten(version)}
        raise ProtocolError(UNSUPPORTED_VERSION, f"Use one of the protocol versions {', '.join(VERSIONS)}.", data=data)
    if message.id is UNSET:
        return True
    if meta.version is UNSET or meta.capabilities is UNSET:
        raise ProtocolError(INVALID_PARAMS, "params._meta needs the protocol version and the client's capabilities.")
    _check_header("Mcp-Method", _read_header(exchange, b"mcp-method"), message.method)
    if message.method == "tools/call":
        _check_header("Mcp-Name", _decode_header(_read_header(exchange, b"mcp-name")), message.params.name)
    return True


def _read_header(exchange: Exchange, name: bytes) -> str | None:
    """Without the blanks that HTTP allows around it."""
    value = exchange.header(name)
    return None if value is None else value.strip(" \t")


def _check_header(name: str, value: str | None, expected: str | None) -> None:
    if value == expected:
        return
    if value is None:
        raise ProtocolError(HEADER_MISMATCH, f"Send the header {name}, with the value that the body has.")
    raise ProtocolError(HEADER_MISMATCH, f"The header {name} is {shorten(value)!r}, unlike the body.")


def _decode_header(value: str | None) -> str | None:
    """The text of a header that may be encoded as base64, as names outside ASCII are."""
    if value is None or not (value.startswith(_BASE64_START) and value.endswith(_BASE64_END)):
        return value
    try:
        encoded = value[len(_BASE64_START) : -len(_BASE64_END)]
        return binascii.a2b_base64(encoded, strict_mode=True).decode()
    except (binascii.Error, ValueError):
        raise ProtocolError(HEADER_MISMATCH, "The header Mcp-Name is not valid base64.") from None


def encode_header(value: str) -> str:
    """A name as the header Mcp-Name carries it."""
    is_plain = value.isascii() and value.isprintable() and value == value.strip()
    if is_plain and not (value.startswith(_BASE64_START) and value.endswith(_BASE64_END)):
        return value
    return _BASE64_START + binascii.b2a_base64(value.encode(), newline=False).decode() + _BASE64_END


def encode_result(id: MessageId | UnsetType, members: Sequence[bytes], is_modern: bool) -> HttpResponse:
    """`members` are those of the result as JSON, in any number of pieces."""
    start = _MODERN_START if is_modern else _LEGACY_START
    return HttpResponse(200, b"".join((b'{"jsonrpc":"2.0","id":', msgspec.json.encode(id), start, *members, b"}}")))


def shorten(text: str) -> str:
    """What a caller sent, as an error repeats it."""
    return text if len(text) <= LONGEST_ECHO else text[:LONGEST_ECHO] + "…"


def encode_error(id: MessageId | UnsetType | None, error: RpcError, status: int) -> HttpResponse:
    return HttpResponse(status, msgspec.json.encode({"jsonrpc": "2.0", "id": id, "error": error}))
