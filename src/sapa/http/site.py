"""All routes outside the API, as one ASGI app: every error leaves in the API's envelope."""

from collections.abc import Sequence
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sapa.http.errors import DATABASE_UNAVAILABLE, ApiError, InternalError, MethodNotAllowed, NotFound, explain
from sapa.http.exchange import new_request_id
from sapa.values.sealing import SecretKeyMissing

log = structlog.get_logger()


def build_site(routes: Sequence[BaseRoute]) -> ASGIApp:
    app = Starlette(
        routes=routes,
        exception_handlers={
            ApiError: _refuse,
            HTTPException: _refuse_routing,
            **dict.fromkeys((SecretKeyMissing, *DATABASE_UNAVAILABLE), _explain),
            Exception: _fail,
        },
    )
    app.router.redirect_slashes = False
    return RequestIdMiddleware(app)


class RequestIdMiddleware:
    """Every response carries its request id; so does the log line of one that failed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = new_request_id()
        scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        is_complete = False

        async def send_with_id(message: Message) -> None:
            nonlocal is_complete
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)
            is_complete = message["type"] == "http.response.body" and not message.get("more_body", False)

        try:
            await self._app(scope, receive, send_with_id)
        except Exception as error:
            log.error("internal error", request_id=request_id, method=scope["method"], exc_info=error)
            if not is_complete:  # the server has to abort the response that was begun
                raise


async def _refuse(_: Request, error: Any) -> Response:
    return Response(error.encode(), error.status, error.headers, "application/json")


async def _explain(request: Request, error: Any) -> Response:
    return await _refuse(request, explain(error, request.state.request_id, method=request.method))


async def _refuse_routing(request: Request, error: Any) -> Response:
    errors = {404: NotFound(), 405: MethodNotAllowed(headers=dict(error.headers or {}))}
    return await _refuse(request, errors.get(error.status_code) or InternalError())


async def _fail(request: Request, _: Exception) -> Response:
    return await _refuse(request, InternalError())
