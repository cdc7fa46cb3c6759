"""What is not the API itself: health, metrics, the API's documents and their reference pages."""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client import REGISTRY as PROCESS_REGISTRY
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sapa.console.pages import build_console
from sapa.context import Kit
from sapa.db.migrations import is_current, is_writable
from sapa.db.pool import AWAY
from sapa.http.endpoints import Base, Routes
from sapa.http.errors import (
    ApiError,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    RequestTimeout,
    ServiceUnavailable,
)
from sapa.http.exchange import new_request_id
from sapa.http.hooks import Hook, HookCall, answer_hook
from sapa.http.openapi import build_document
from sapa.http.reference import render_reference
from sapa.settings import Settings
from sapa.webhooks.listen import Listeners, Stream
from sapa.work.ages import collect_queue_ages

MOST_HOOK_BYTES = 32 * 1_048_576
MOST_UNASKED_BYTES = 1_048_576
HOOK_SECONDS = 30

# The page itself says what it may load: nothing.
PAGE_HEADERS = {"content-security-policy": "frame-ancestors 'none'", "x-content-type-options": "nosniff"}


Pages = Callable[[Kit], list[Route]]
"""A domain's own pages."""


def build_pages(
    kit: Kit, domains: Sequence[Routes], listeners: Listeners, hooks: Sequence[Hook[Kit]], pages: Sequence[Pages]
) -> ASGIApp:
    """What lies around the API; every error leaves in the API's envelope."""
    database = kit.database

    async def healthz(_: Request) -> Response:
        """This process runs."""
        return _json(b'{"status":"ok"}')

    async def readyz(_: Request) -> Response:
        """The database answers and its schema is this version's."""
        try:
            async with database.connection() as db:
                current = await is_current(db)
                writable = await is_writable(db)
        except AWAY:
            raise ServiceUnavailable from None
        if not writable:
            raise ServiceUnavailable("The database is read-only; connect to its primary.")
        if not current:
            raise ServiceUnavailable("The database's schema is not this version's; run `sapa migrate`.")
        return _json(b'{"status":"ready"}')

    async def metrics(_: Request) -> Response:
        ages = await collect_queue_ages(database)
        return Response(_process_metrics() + ages, media_type=CONTENT_TYPE_LATEST)

    async def listen(request: Request) -> Response:
        """A company's events as they happen, for `sapa listen`."""
        if request.method != "GET":
            raise MethodNotAllowed(headers={"allow": "GET"})
        try:
            last_id = request.headers.get("last-event-id")
            stream = await listeners.open(_token_of(request), _kinds_of(request), last_id)
        except AWAY:
            raise ServiceUnavailable from None
        return EventStream(listeners, stream)

    documents = [route for base in Base for route in _document_routes(base, kit.settings, domains)]
    app = Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            Route("/listen", listen),
            *documents,
            *(_hook_route(kit, hook) for hook in hooks),
            *(route for build in pages for route in build(kit)),
            *build_console(kit, domains),
        ],
        exception_handlers={ApiError: _refuse, HTTPException: _refuse_routing, Exception: _fail},
    )
    app.router.redirect_slashes = False
    return Identified(app)


class EventStream(StreamingResponse):
    """An answer that goes on; its place among the listeners is free again however it ends."""

    def __init__(self, listeners: Listeners, stream: Stream) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(listeners.run(stream), headers=headers, media_type="text/event-stream")
        self._listeners = listeners
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._listeners.close(self._stream)


class Identified:
    """Every answer names its request, these ones too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_identified(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-request-id", new_request_id().encode())]
            await send(message)

        await self._app(scope, receive, send_identified)


def _hook_route(kit: Kit, hook: Hook[Kit]) -> Route:
    async def receive(request: Request) -> Response:
        body = await _read_hook_body(kit, hook, request)
        answer = await answer_hook(kit, [hook], _describe(request, body))
        return Response(answer.body, answer.status, answer.headers)

    return Route(hook.prefix + "{rest:path}", receive, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])


async def _read_hook_body(kit: Kit, hook: Hook[Kit], request: Request) -> bytes:
    """A large one is taken only from those who know an address of ours."""
    body, is_admitted = bytearray(), hook.admits is None
    try:
        async with asyncio.timeout(HOOK_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_HOOK_BYTES:
                    raise PayloadTooLarge(f"The request's body is larger than {MOST_HOOK_BYTES // 1_048_576} MiB.")
                if len(body) > MOST_UNASKED_BYTES and not is_admitted and hook.admits is not None:
                    is_admitted = await hook.admits(kit, request.url.path)
                    if not is_admitted:
                        raise NotFound
    except TimeoutError:
        raise RequestTimeout(f"The request's body did not arrive within {HOOK_SECONDS} seconds.") from None
    return bytes(body)


def _describe(request: Request, body: bytes) -> HookCall:
    return HookCall(
        method=request.method,
        path=request.url.path,
        query=dict(request.query_params),
        headers=dict(request.headers),
        body=body,
        address=request.client.host if request.client else "",
    )


def _document_routes(base: Base, settings: Settings, domains: Sequence[Routes]) -> list[Route]:
    document = build_document(base, settings.server.address, domains)
    text, page = document.encode(), render_reference(document)

    async def openapi(_: Request) -> Response:
        return _json(text)

    async def reference(_: Request) -> Response:
        return Response(page, headers=PAGE_HEADERS, media_type="text/html")

    return [Route(f"{base}/openapi.json", openapi), Route(f"{base}/docs", reference)]


def _token_of(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else ""


def _kinds_of(request: Request) -> list[str]:
    if unknown := set(request.query_params) - {"kinds"}:
        raise Invalid.field(min(unknown), "is not a parameter of this call; kinds is")
    return [kind for part in request.query_params.getlist("kinds") for kind in part.split(",") if kind]


def _process_metrics() -> bytes:
    """Summed over all processes that share a folder, or this process's own."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(PROCESS_REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


async def _refuse(_: Request, error: Any) -> Response:
    return _json(error.encode(), error.status, error.headers)


async def _refuse_routing(request: Request, error: Any) -> Response:
    known = {404: NotFound(), 405: MethodNotAllowed(headers=dict(error.headers or {}))}
    return await _refuse(request, known.get(error.status_code) or InternalError())


async def _fail(request: Request, _: Exception) -> Response:
    return await _refuse(request, InternalError())


def _json(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, "application/json")
