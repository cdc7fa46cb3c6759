"""A tool's arguments as the request of its endpoint."""

from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec import Raw, Struct

from sapa.http.errors import Invalid
from sapa.http.idempotency import check_key
from sapa.mcp.input_schemas import IDEMPOTENCY_KEY
from sapa.mcp.tools import Tool

Arguments = dict[str, Raw]


class ToolRequest(Struct, frozen=True):
    path: str
    path_values: list[str]
    query: bytes
    body: bytes
    idempotency_key: str | None


def build_request(tool: Tool, arguments: Arguments) -> ToolRequest:
    """Path and query are taken out of the arguments; the rest is the body, whose values stay as they were sent."""
    rest = dict(arguments)
    path_values = [_take_path_value(rest, name) for name in tool.path_names]
    idempotency_key = _take_idempotency_key(rest, tool)
    # In a fixed order: the query is part of what an idempotency key stands for.
    query_names = sorted(tool.query_names & rest.keys())
    query = [(name, text) for name in query_names if (text := _take_query_text(rest, name)) is not None]
    endpoint = tool.endpoint
    if endpoint.body is None and rest:
        names = ", ".join([*tool.path_names, *sorted(tool.query_names)]) or "none"
        raise Invalid.field(next(iter(rest)), f"is not an argument of this tool. Its arguments: {names}")
    path = tool.template.format(**dict(zip(tool.path_names, path_values, strict=True)))
    query_string = urlencode(query).encode() if query else b""
    has_body = endpoint.body is not None and (rest or endpoint.needs_body)
    return ToolRequest(path, path_values, query_string, join_members(rest) if has_body else b"", idempotency_key)


def join_members(members: Arguments) -> bytes:
    return b"{%b}" % b",".join(b"%b:%b" % (msgspec.json.encode(name), bytes(raw)) for name, raw in members.items())


def _take_path_value(arguments: Arguments, name: str) -> str:
    value = _decode(name, arguments.pop(name, None))
    if value is None:
        raise Invalid.field(name, "is required")
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise Invalid.field(name, "must be a string")


def _take_idempotency_key(arguments: Arguments, tool: Tool) -> str | None:
    """Some bodies have a field of that name: then the key is both."""
    if not tool.endpoint.writes or IDEMPOTENCY_KEY not in arguments:
        return None
    is_field = IDEMPOTENCY_KEY in tool.body_names
    raw = arguments[IDEMPOTENCY_KEY] if is_field else arguments.pop(IDEMPOTENCY_KEY)
    key = _decode(IDEMPOTENCY_KEY, raw)
    if key is None:
        return None
    if not isinstance(key, str):
        raise Invalid.field(IDEMPOTENCY_KEY, "must be a string")
    check_key(key, IDEMPOTENCY_KEY)
    return key


def _take_query_text(arguments: Arguments, name: str) -> str | None:
    """The value as a query string has it: lists with commas, flags as words. Null counts as absent."""
    value = _decode(name, arguments.pop(name, None))
    if value is None:
        return None
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        if any("," in item for item in value):
            raise Invalid.field(name, "has a value with a comma, which separates the values")
        return ",".join(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str | int | float):
        return str(value)
    raise Invalid.field(name, "must be a text, a number, true or false, or a list of texts")


def _decode(name: str, raw: Raw | None) -> Any:
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid.field(name, f"is not valid JSON: {error}") from None
