"""`/widget/v1`: the script for sites, and its API. Pages of any site may call, so CORS is open. The chat's public key
and the session's token identify the caller; cookies are not used."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from typing import Any, TypeVar

import asyncpg
import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.context import AppContext
from sapa.http.allow_list import AllowList, read_client_address
from sapa.http.bodies import decode_body
from sapa.http.errors import (
    ApiError,
    Invalid,
    MethodNotAllowed,
    PayloadTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
    explain,
)
from sapa.http.event_stream import EventStreamResponse
from sapa.http.exchange import UPLOAD_SECONDS
from sapa.http.incoming import IncomingBody
from sapa.http.uploads import FileStream, build_too_large
from sapa.messaging.channels.widget.types import PREFIX, UnknownSession, WidgetMessage
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.tickets import TICKETS
from sapa.messaging.widget import inbound, limits, uploads, visits
from sapa.messaging.widget import queries as widget
from sapa.messaging.widget.presentation import present
from sapa.messaging.widget.streams import MAX_BATCH, Streams
from sapa.messaging.widget.visits import VerifiedVisitor, WidgetVisit

MAX_BYTES = 64 * 1024
BODY_SECONDS = 15.0
MAX_TOKEN_LENGTH = 200
MAX_NAME_LENGTH = 255

CORS = {
    "access-control-allow-origin": "*",
    "access-control-expose-headers": "retry-after, x-request-id",
    "cache-control": "no-store",
}
PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": "authorization, content-type, last-event-id, x-widget-key",
    "access-control-max-age": "86400",
}
SCRIPT_HEADERS = {
    "access-control-allow-origin": "*",
    "cache-control": "public, max-age=300",
    "cross-origin-resource-policy": "cross-origin",
    "x-content-type-options": "nosniff",
}

Handler = Callable[[Request], Awaitable[Response]]
Body = TypeVar("Body")


class WidgetSessionIn(Struct, frozen=True, forbid_unknown_fields=True):
    visitor: VerifiedVisitor | None = None


class WidgetSession(Struct, frozen=True, rename="camel"):
    """`token` is set for a new session only; the page stores it."""

    visitor_id: str
    is_identified: bool
    has_stated: bool
    """Whether they have answered the form before the chat."""
    token: str | None
    title: str | None
    last_number: int
    messages: list[WidgetMessage]


class WidgetLook(Struct, frozen=True, kw_only=True, rename="camel"):
    """How the company wants its chat to look, what it asks first, and when it answers."""

    title: str | None
    color: str | None
    greeting: str | None
    hours: str | None
    agent: str | None
    form: str | None
    opens_at: datetime | None
    """When somebody is there again; null while somebody is."""


_LOOK = ("title", "color", "greeting", "hours", "agent", "form")


class Chat:
    """The handlers of the web chat, for one process."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._database = context.database
        self._proxies = AllowList(context.settings.server.trusted_proxies)
        self._streams = Streams(context)

    async def get_look(self, request: Request) -> Response:
        """For every page with the chat, before anybody opens it."""
        connection = (await self._get_chat(request)).connection
        async with self._database.connection() as db:
            opens_at = await TICKETS.installed.find_opening(db, connection.company, datetime.now(UTC))
        account = {name: connection.account.get(name) or None for name in _LOOK}
        return _json(WidgetLook(**account, opens_at=opens_at))

    async def open_session(self, request: Request) -> Response:
        """Creates or resumes a session; with a visitor, signs them in."""
        connection = (await self._get_chat(request)).connection
        await limits.check_address(self._database, connection.company.id, self._address(request), "session")
        body, token = await read_body(request, WidgetSessionIn), _token(request)
        # Two pages of a new visitor may sign in at once; the second finds the visitor that the first created.
        session = await self._database.transact(
            lambda tx: visits.open_session(tx, connection, token, body.visitor), (asyncpg.UniqueViolationError,)
        )
        visitor = session.visitor
        async with self._database.connection() as db:
            latest = await widget.list_before(db, connection.company.id, visitor.id, visitor.last_number + 1, MAX_BATCH)
        title = connection.account.get("title")
        identified = visitor.external_id is not None
        shown = [present(self._context, connection.company.id, message) for message in latest]
        stated = visitor.stated_name is not None
        return _json(WidgetSession(visitor.id, identified, stated, session.token, title, visitor.last_number, shown))

    async def end_session(self, request: Request) -> Response:
        visit = await self._authenticate(request)
        async with self._database.connection() as db:
            await visits.end_session(db, visit)
        return Response(status_code=204, headers=CORS)

    async def post_statement(self, request: Request) -> Response:
        """The answers to the form before the chat."""
        visit = await self._authenticate(request)
        await limits.check_visitor(self._database, visit.company.id, visit.visitor.id, "statement")
        statement = await read_body(request, visits.VisitorStatement)
        await self._database.transact(lambda tx: visits.record_statement(tx, visit, statement))
        return Response(status_code=204, headers=CORS)

    async def post_message(self, request: Request) -> Response:
        visit = await self._authenticate(request)
        await limits.check_visitor(self._database, visit.company.id, visit.visitor.id, "message")
        await limits.check_address(self._database, visit.company.id, self._address(request), "message")
        message = await read_body(request, inbound.VisitorMessage)
        stored = await self._database.transact(lambda tx: inbound.receive(tx, self._context, visit, message))
        return _json(present(self._context, visit.company.id, stored))

    async def upload_file(self, request: Request) -> Response:
        """The file is the body; its id goes with a message."""
        visit = await self._authenticate(request)
        length = _number(request.headers.get("content-length"), "Content-Length") or None
        if length is not None and length > uploads.MAX_BYTES:
            raise build_too_large(uploads.MAX_BYTES)
        chunks = IncomingBody(request.receive, self._context.large_bodies).stream(UPLOAD_SECONDS, BODY_SECONDS)
        incoming = FileStream(chunks, uploads.MAX_BYTES, length)
        filename = request.query_params.get("filename", "")[:MAX_NAME_LENGTH] or None
        return _json(await uploads.upload_file(self._context, visit, self._address(request), incoming, filename))

    async def list_earlier(self, request: Request) -> Response:
        visit = await self._authenticate(request)
        await limits.check_visitor(self._database, visit.company.id, visit.visitor.id, "read")
        before = _number(request.query_params.get("before"), "before")
        async with self._database.connection() as db:
            found = await widget.list_before(db, visit.company.id, visit.visitor.id, before, MAX_BATCH)
        return _json([present(self._context, visit.company.id, message) for message in found])

    async def acknowledge(self, request: Request) -> Response:
        visit = await self._authenticate(request)
        await limits.check_visitor(self._database, visit.company.id, visit.visitor.id, "ack")
        body = await read_body(request, inbound.VisitorReceipt)
        await self._database.transact(lambda tx: inbound.acknowledge(tx, visit, body))
        return Response(status_code=204, headers=CORS)

    async def show_typing(self, request: Request) -> Response:
        """The visitor is writing. Agents see it for some seconds, or until the message comes."""
        visit = await self._authenticate(request)
        await limits.check_visitor(self._database, visit.company.id, visit.visitor.id, "typing")
        await self._database.transact(lambda tx: visits.mark_typing(tx, visit))
        return Response(status_code=204, headers=CORS)

    async def listen(self, request: Request) -> Response:
        """Streams the messages after Last-Event-ID."""
        visit = await self._authenticate(request)
        await limits.check_visitor(self._database, visit.company.id, visit.visitor.id, "stream")
        number = _number(request.headers.get("last-event-id"), "Last-Event-ID")
        page = self._streams.open(visit, number, lambda: self._authenticate(request))
        return EventStreamResponse(self._streams.run(page), partial(self._streams.close, page), CORS)

    async def _get_chat(self, request: Request) -> ConnectedChannel:
        key, origin = request.headers.get("x-widget-key", ""), request.headers.get("origin")
        async with self._database.connection() as db:
            return await visits.get_chat(self._context, db, key, origin)

    async def _authenticate(self, request: Request) -> WidgetVisit:
        chat, token = await self._get_chat(request), _token(request)
        if token is None:
            raise UnknownSession
        async with self._database.connection() as db:
            return await visits.authenticate(db, chat, token)

    def _address(self, request: Request) -> str:
        return read_client_address(request, self._proxies)


def pages(context: AppContext) -> list[Route]:
    chat = Chat(context)
    return [
        Route(f"{PREFIX}/widget.js", _send_script, methods=["GET"]),
        _route("/look", GET=chat.get_look),
        _route("/sessions", POST=chat.open_session, DELETE=chat.end_session),
        _route("/statement", POST=chat.post_statement),
        _route("/messages", POST=chat.post_message, GET=chat.list_earlier),
        _route("/files", POST=chat.upload_file),
        _route("/acks", POST=chat.acknowledge),
        _route("/typing", POST=chat.show_typing),
        _route("/events", GET=chat.listen),
    ]


def _route(path: str, **handlers: Handler) -> Route:
    """Every response, errors included, has CORS headers."""

    async def answer(request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=CORS | PREFLIGHT)
        try:
            if request.method not in handlers:
                raise MethodNotAllowed(headers={"allow": ", ".join(handlers)})
            return await handlers[request.method](request)
        except Exception as error:
            return _refuse(explain(error, request.state.request_id, method=request.method, path=request.url.path))

    return Route(PREFIX + path, answer, methods=["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])


async def read_body(request: Request, type: type[Body]) -> Body:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedMediaType
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await _read(request)
    except TimeoutError:
        raise RequestTimeout(f"The request's body did not arrive within {BODY_SECONDS:.0f} seconds.") from None
    decoded: Body = decode_body(body, msgspec.json.Decoder(type))
    return decoded


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
            raise PayloadTooLarge(f"The request's body is larger than {MAX_BYTES // 1024} KiB.")
    return bytes(body)


def _token(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" and 0 < len(token) <= MAX_TOKEN_LENGTH else None


def _number(text: str | None, field: str) -> int:
    """A missing number is 0."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise Invalid.field(field, "must be the number of a message")
    return int(text)


async def _send_script(request: Request) -> Response:
    script, tag = read_script()
    headers = SCRIPT_HEADERS | {"etag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(script, headers=headers, media_type="text/javascript")


@cache
def read_script() -> tuple[bytes, str]:
    """The script, without its indentation, empty lines and comments, and its ETag."""
    text = files("sapa.messaging.widget").joinpath("widget.js").read_bytes()
    lines = [line.strip() for line in text.splitlines()]
    script = b"\n".join(line for line in lines if line and not line.startswith(b"//"))
    return script, f'"{sha256(script).hexdigest()[:32]}"'


def _json(data: Any) -> Response:
    return Response(msgspec.json.encode({"data": data}), headers=CORS, media_type="application/json")


def _refuse(error: ApiError) -> Response:
    return Response(error.encode(), error.status, CORS | error.headers, "application/json")
