"""The routes that providers call. Nothing is read from a caller without a valid token."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.context import AppContext
from sapa.http.errors import NotFound
from sapa.http.hooks import FindTarget, Hook, answer_hook
from sapa.http.incoming import IncomingBody
from sapa.values.hook_calls import HookCall

HOOK_SECONDS = 30.0


def hook_route(context: AppContext, hook: Hook[AppContext], find_target: FindTarget[AppContext]) -> Route:
    async def receive(request: Request) -> Response:
        target = await find_target(context, request.url.path)
        if target is None:
            raise NotFound
        incoming = IncomingBody(request.receive, context.large_bodies)
        try:
            length = request.headers.get("content-length")
            body = await incoming.read(target.most_bytes, HOOK_SECONDS, request.url.path, length)
            response = await answer_hook(context, [hook], _build_call(request, body, target.account))
        finally:
            incoming.release()
        return Response(response.body, response.status, response.headers)

    return Route(hook.prefix + "{rest:path}", receive, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])


def _build_call(request: Request, body: bytes, account: Any) -> HookCall:
    return HookCall(
        method=request.method,
        path=request.url.path,
        query=dict(request.query_params),
        headers=dict(request.headers),
        body=body,
        address=request.client.host if request.client else "",
        request_id=request.state.request_id,
        account=account,
    )
