"""What a tool returns: the response of its operation as text and as structured content, or an error to learn from."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from sapa.http.errors import ApiError, FieldError, NotFound
from sapa.http.responses import HttpResponse
from sapa.mcp.tools import Tool

MAX_SHORTENED = 8192
"""Bytes. A page of 16 KiB would cost a third of the call."""

# A quote inside a text is escaped, and none that ends a text is followed by a letter: so this is a name. A list's
# `data` stays.
_EMPTY_MEMBER = rb'"(?!data":)\w++":(?:null|\[\]|\{\})'
_LATER_EMPTY = re.compile(rb"," + _EMPTY_MEMBER)
_FIRST_EMPTY = re.compile(rb"\{" + _EMPTY_MEMBER + rb",?")


class ToolResult(Struct, frozen=True):
    text: str
    structured_content: bytes | None = None
    """As JSON."""
    is_error: bool = False

    def encode_members(self) -> list[bytes]:
        """In pieces, which are joined with the message: the encoder would copy a page of resources three times."""
        members = [b'"content":[{"type":"text","text":', msgspec.json.encode(self.text), b"}]"]
        if self.structured_content is not None:
            members += [b',"structuredContent":', self.structured_content]
        if self.is_error:
            members.append(b',"isError":true')
        return members


def build_result(response: HttpResponse) -> ToolResult:
    """The text leaves out empty fields, a third of what a model would read, unless that takes long."""
    body = response.body
    if not body:
        return ToolResult("Done.")
    text = drop_empty(body) if len(body) <= MAX_SHORTENED else body
    return ToolResult(text.decode(), body)


def build_error_result(refusal: ApiError, finder: Tool | None = None, request_id: str = "") -> ToolResult:
    """`finder` is a tool that lists valid ids."""
    lines = [f"{refusal.code}: {refusal.message}", *_list_details(refusal)]
    if pause := refusal.headers.get("retry-after"):
        lines.append(f"Try again in {pause} seconds.")
    if isinstance(refusal, NotFound) and finder is not None:
        lines.append(f"Find valid ids with {finder.name}.")
    if refusal.status >= 500 and request_id:
        lines.append(f"Request id: {request_id}")
    return ToolResult("\n".join(lines), refusal.encode(), is_error=True)


def _list_details(refusal: ApiError) -> list[str]:
    """The details that the message does not repeat."""
    details: list[Any] = refusal.build_body().details or []
    texts = [_describe(detail) for detail in details]
    return [f"- {text}" for text in texts if text != refusal.message]


def _describe(detail: Any) -> str:
    if isinstance(detail, FieldError):
        text = f"{detail.field}: {detail.message}" if detail.field else detail.message
        return f"{text} (id {detail.id})" if detail.id else text
    return msgspec.json.encode(detail).decode()


def drop_empty(body: bytes) -> bytes:
    """JSON as our encoder writes it, without members that are null or empty. Members with an unusual name stay.

    It works on the bytes, because decoding a page of resources would cost as much as reading it from the database.
    """
    return _FIRST_EMPTY.sub(b"{", _LATER_EMPTY.sub(b"", body))
