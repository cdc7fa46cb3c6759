"""One request on its way through the edge, and how its body is read."""

import random
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, unquote

from python_multipart.multipart import parse_options_header

from sapa.http.bodies import MAX_BYTES, MAX_UPLOADED, UPLOADED_TYPES
from sapa.http.endpoints import Endpoint, Route
from sapa.http.errors import UnsupportedMediaType
from sapa.http.incoming import BufferedBody, IncomingBody
from sapa.http.keys import Key
from sapa.http.outbound_call import OutboundCall, RequestInfo
from sapa.http.uploads import FORM, MAX_FORM_BYTES, FileStream, FormFile, build_too_large

JSON = "application/json"
BODY_SECONDS = 30.0
UPLOAD_SECONDS = 300.0

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


def new_request_id() -> str:
    """It must be unique, not unpredictable: the system's random numbers would take twice as long."""
    return f"req_{random.getrandbits(96):024x}"


class Exchange:
    """One request on its way through the edge."""

    __slots__ = (
        "address", "body", "endpoint", "headers", "incoming", "key", "method", "outbound_call", "path", "quota",
        "request_id", "route", "scope",
    )  # fmt: skip

    def __init__(self, scope: Scope, incoming: IncomingBody | BufferedBody, request_id: str | None = None) -> None:
        self.scope = scope
        self.incoming = incoming
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.request_id = request_id or new_request_id()
        self.headers: dict[bytes, bytes] = {}
        self.address = ""
        self.body = b""
        self.outbound_call: OutboundCall | None = None
        self.route: Route | None = None
        self.endpoint: Endpoint | None = None
        """Set once the key may use it."""
        self.key: Key | None = None
        self.quota: list[tuple[bytes, bytes]] = []

    def read_headers(self) -> None:
        """One value per name; repeated headers are joined with commas, as HTTP allows."""
        headers = self.headers
        for name, value in self.scope["headers"]:
            headers[name] = headers[name] + b"," + value if name in headers else value

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def build_request_info(self, base: str) -> RequestInfo:
        """The request as it came in, for handlers and recorders."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self.headers.items()}
        forwarded = [hop.strip() for hop in headers.get("x-forwarded-for", "").split(",") if hop.strip()]
        host = headers.get("host", "")
        return RequestInfo(
            request_id=self.request_id,
            method=self.method,
            path=self.path,
            base_url=base,
            hostname=host if host.endswith("]") else host.rpartition(":")[0] or host,
            address=self.address,
            forwarded=forwarded,
            headers=headers,
            query=build_query(self.scope["query_string"]),
            body=self.body,
        )


def _refuse_compressed(exchange: Exchange) -> None:
    encoding = exchange.header(b"content-encoding")
    if encoding and encoding.strip().lower() != "identity":
        raise UnsupportedMediaType("Compressed bodies are not supported. Send the body without Content-Encoding.")


def build_query(raw: bytes) -> dict[str, Any]:
    """Each parameter's value, or the list of them where one is repeated."""
    if not raw:
        return {}
    values = parse_qs(raw.decode("latin-1"), keep_blank_values=True)
    return {name: found[0] if len(found) == 1 else found for name, found in values.items()}


async def read_body(exchange: Exchange, uploads: bool, is_needed: bool) -> tuple[str, bytes]:
    """Its media type and the whole body: at most 1 MiB of JSON within 30 seconds, or a file.

    A body that may be left out has no media type when it is.
    """
    accepted, most, seconds = (
        (UPLOADED_TYPES, MAX_UPLOADED, UPLOAD_SECONDS) if uploads else ((JSON,), MAX_BYTES, BODY_SECONDS)
    )
    owner = str(exchange.key.company.id) if exchange.key else exchange.address
    body = exchange.body = await exchange.incoming.read(most, seconds, owner, exchange.header(b"content-length"))
    if not body and not is_needed:
        return "", body
    _refuse_compressed(exchange)
    content_type = exchange.header(b"content-type") or ""
    if content_type == JSON and JSON in accepted:
        return JSON, body
    media_type, _, parameters = content_type.lower().replace(" ", "").partition(";")
    if media_type not in accepted or parameters not in {"", "charset=utf-8", 'charset="utf-8"'}:
        raise UnsupportedMediaType(f"Send the body as {' or '.join(accepted)} in UTF-8.")
    return media_type, body


def open_upload(exchange: Exchange, max_bytes: int) -> FileStream:
    """The file of a request, unread. Headers that announce too large a file are refused here."""
    _refuse_compressed(exchange)
    content_type, options = parse_options_header(exchange.header(b"content-type") or "")
    length_text = exchange.header(b"content-length") or ""
    length = int(length_text) if length_text.isascii() and length_text.isdecimal() else None
    is_form = content_type == FORM
    if length is not None and length > max_bytes + (MAX_FORM_BYTES if is_form else 0):
        raise build_too_large(max_bytes)
    chunks = exchange.incoming.stream(UPLOAD_SECONDS, BODY_SECONDS)
    if is_form:
        return FormFile(chunks, options.get(b"boundary", b""), max_bytes, length)
    return FileStream(chunks, max_bytes, length)


def split_path(scope: Scope) -> list[str]:
    """The path's segments. A slash that was percent-encoded belongs to its segment."""
    raw = scope.get("raw_path") or b""
    if raw.lower().find(b"%2f") < 0:
        return str(scope["path"])[1:].split("/")
    return [unquote(segment) for segment in raw.decode("ascii", "replace").partition("?")[0][1:].split("/")]
