"""The simulators at the installation's own address. A call passes these steps: token, rate limit, size, simulator."""

from functools import partial

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.context import AppContext
from sapa.http.errors import PayloadTooLarge
from sapa.http.hooks import Hook, answer_hook
from sapa.http.incoming import IncomingBody
from sapa.http.rate_limit import Quota
from sapa.sandbox.address.quotas import CompanyQuotas
from sapa.sandbox.carriers import simulators as carriers
from sapa.sandbox.channels import simulators as channels
from sapa.sandbox.external_access import MALFORMED, MAX_SIGN_IN_BYTES, ExternalAccess, RefusedCall
from sapa.values.hook_calls import HookAnswer, HookCall

BODY_SECONDS = 30.0
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]

log = structlog.get_logger()


def build_pages(context: AppContext) -> list[Route]:
    quotas = CompanyQuotas(context.database)
    return [_build_route(context, access, quotas) for access in [*channels.ACCESS, *carriers.ACCESS]]


def _build_route(context: AppContext, access: ExternalAccess, quotas: CompanyQuotas) -> Route:
    async def receive(request: Request) -> Response:
        incoming = IncomingBody(request.receive, context.large_bodies)
        try:
            return await _answer(context, access, quotas, request, incoming)
        finally:
            incoming.release()

    return Route(access.prefix + "{rest:path}", receive, methods=METHODS)


async def _answer(
    context: AppContext, access: ExternalAccess, quotas: CompanyQuotas, request: Request, incoming: IncomingBody
) -> Response:
    """Of a caller without a valid token nothing is read, except where the credentials are in the body."""
    is_sign_in = request.url.path.removeprefix(access.prefix) in access.sign_in_paths
    call = _build_call(request, b"")
    length = request.headers.get("content-length")
    try:
        if is_sign_in:
            call = _build_call(request, await incoming.read(MAX_SIGN_IN_BYTES, BODY_SECONDS, access.prefix, length))
        company_id = access.find_company_id(context, call)
        quota = None if company_id is None else await quotas.count(company_id)
        if quota is None:
            return _refuse(access, call, "unauthorized")
        if not quota.granted:
            return _refuse(access, call, "too_many", quota)
        if not is_sign_in:
            call = _build_call(request, await incoming.read(access.max_bytes, BODY_SECONDS, str(company_id), length))
    except PayloadTooLarge:
        return _refuse(access, call, "too_large")
    return _respond(await answer_hook(context, [Hook(access.prefix, partial(_serve, access))], call), quota)


async def _serve(access: ExternalAccess, context: AppContext, call: HookCall) -> HookAnswer:
    try:
        return await access.serve(context, call)
    except MALFORMED as error:
        log.info("simulator could not read a call", prefix=access.prefix, reason=f"{type(error).__name__}: {error}")
        return access.refuse(call, "malformed")


def _refuse(access: ExternalAccess, call: HookCall, reason: RefusedCall, quota: Quota | None = None) -> Response:
    response = _respond(access.refuse(call, reason), quota)
    if quota is not None:
        response.headers["retry-after"] = str(quota.reset)
    return response


def _respond(answer: HookAnswer, quota: Quota | None) -> Response:
    response = Response(answer.body, answer.status, answer.headers)
    for name, value in quota.headers() if quota else ():
        response.headers[name.decode()] = value.decode()
    return response


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
