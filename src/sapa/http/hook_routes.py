"""The routes that providers call; bodies are read within limits."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.context import AppContext
from sapa.http.errors import NotFound, PayloadTooLarge, RequestTimeout
from sapa.http.hooks import Hook, answer_hook
from sapa.values.hook_calls import HookCall

MOST_HOOK_BYTES = 32 * 1_048_576
MOST_UNADMITTED_BYTES = 1_048_576
HOOK_SECONDS = 30


def hook_route(context: AppContext, hook: Hook[AppContext]) -> Route:
    async def receive(request: Request) -> Response:
        body = await _read_hook_body(context, hook, request)
        response = await answer_hook(context, [hook], _build_call(request, body))
        return Response(response.body, response.status, response.headers)

    return Route(hook.prefix + "{rest:path}", receive, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])


async def _read_hook_body(context: AppContext, hook: Hook[AppContext], request: Request) -> bytes:
    """A large body is read only at a path that the hook admits."""
    body, is_admitted = bytearray(), hook.admits is None
    try:
        async with asyncio.timeout(HOOK_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_HOOK_BYTES:
                    raise PayloadTooLarge(f"The request's body is larger than {MOST_HOOK_BYTES // 1_048_576} MiB.")
                if len(body) > MOST_UNADMITTED_BYTES and not is_admitted and hook.admits is not None:
                    is_admitted = await hook.admits(context, request.url.path)
                    if not is_admitted:
                        raise NotFound
    except TimeoutError:
        raise RequestTimeout(f"The request's body did not arrive within {HOOK_SECONDS} seconds.") from None
    return bytes(body)


def _build_call(request: Request, body: bytes) -> HookCall:
    return HookCall(
        method=request.method,
        path=request.url.path,
        query=dict(request.query_params),
        headers=dict(request.headers),
        body=body,
        address=request.client.host if request.client else "",
        request_id=request.state.request_id,
    )
