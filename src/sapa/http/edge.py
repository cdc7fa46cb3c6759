"""The edge: every API call passes these steps in this order, line by line."""

import time
from collections.abc import Sequence
from hashlib import blake2b
from urllib.parse import unquote_to_bytes

import structlog

from sapa.context import AppContext
from sapa.http.access_log import LONGEST_LOGGED_PATH, AccessLog, FinishedCall
from sapa.http.allow_list import AllowList, client_address, get_network
from sapa.http.cors import Cors
from sapa.http.endpoints import Endpoint, Routes, RouteTable
from sapa.http.errors import (
    ApiError,
    Invalid,
    InvalidApiKey,
    IpNotAllowed,
    MethodNotAllowed,
    MissingApiKey,
    NotFound,
    RateLimitExceeded,
    ServiceUnavailable,
    Unauthorized,
    explain,
)
from sapa.http.exchange import Exchange, Receive, Scope, Send, open_upload, read_body, split_path
from sapa.http.executor import Executor
from sapa.http.idempotency import IdempotencyClaim, build_claim
from sapa.http.incoming import ARRIVED_BODY, IncomingBody
from sapa.http.keys import Key, KeyRing, Retirement
from sapa.http.outbound_call import OutboundCall
from sapa.http.rate_limit import RateLimiter
from sapa.http.response_cache import ResponseCache, ResponseKey
from sapa.http.responses import HttpResponse
from sapa.http.uploads import UploadCall

JSON = (b"content-type", b"application/json")
PRIVATE = (b"cache-control", b"private, no-cache")

log = structlog.get_logger()


class Edge:
    """The API as one ASGI callable."""

    def __init__(
        self, domains: Sequence[Routes], context: AppContext, keys: KeyRing, trusted_proxies: AllowList, cors: Cors
    ) -> None:
        self._table = RouteTable(domains)
        self._unauthorized_prefixes = tuple(
            f"{routes.base}{routes.prefix}/" for routes in domains if routes.answers_unauthorized
        )
        self._context = context
        self._keys = keys
        self._limiter = RateLimiter(context.database)
        self._trusted = trusted_proxies
        self._cors = cors
        self._executor = Executor(context)
        self.response_cache = ResponseCache(context.database)
        self.access_log = AccessLog()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        exchange = Exchange(scope, IncomingBody(receive, self._context.large_bodies, scope.get(ARRIVED_BODY)))
        code = None
        try:
            self.read_head(exchange)
            exchange.route, path_values = self._table.match(split_path(exchange.scope))
            if exchange.method == "OPTIONS":
                response = self._options(exchange)
            else:
                key = await self.admit(exchange, exchange.header(b"x-api-key"))
                endpoint = self._get_endpoint(exchange)
                response = await self.execute(exchange, key, endpoint, path_values)
                if endpoint.has_etag:
                    response = add_etag(response, exchange.header(b"if-none-match"))
        except Exception as error:
            refusal = await self.refuse(exchange, error)
            code = refusal.code
            response = HttpResponse(refusal.status, refusal.encode(), refusal.headers)
        finally:
            exchange.incoming.release()
        await send_response(send, exchange, response, self._cors)
        route = exchange.route.template if exchange.route else "unknown"
        self.log_call(exchange, route, response.status, code, time.perf_counter() - started)

    def find_route(self, scope: Scope) -> str | None:
        """The template of a call's route."""
        route, _ = self._table.match(split_path(scope))
        return route.template if route else None

    def read_head(self, exchange: Exchange) -> None:
        exchange.read_headers()
        peer = exchange.scope.get("client")
        forwarded = exchange.header(b"x-forwarded-for")
        exchange.address = client_address(peer[0] if peer else "", forwarded, self._trusted)

    async def admit(self, exchange: Exchange, raw_key: str | None) -> Key:
        """The call's key, once its allow-list and its rate limit permit the call."""
        key = exchange.key = await self._identify(exchange, raw_key)
        if not key.allow_list.allows(exchange.address):
            raise IpNotAllowed(f"The address {exchange.address} is not in the key's allow-list.")
        self._keys.record_use(key, exchange.address)
        quota = await self._limiter.count(key)
        exchange.quota = quota.headers()
        if not quota.granted:
            raise RateLimitExceeded(
                f"Too many requests: this key may make {quota.limit} a minute; retry in {quota.reset} seconds.",
                headers={"retry-after": str(quota.reset)},
            )
        return key

    async def execute(
        self, exchange: Exchange, key: Key, endpoint: Endpoint, path_values: Sequence[str]
    ) -> HttpResponse:
        """Runs one operation for an admitted key: scope, body, arguments, idempotency key, handler."""
        endpoint.check_rights(key)
        exchange.endpoint = endpoint
        takes_body = endpoint.body is not None
        media_type, body = await read_body(exchange, endpoint.uploads, endpoint.needs_body) if takes_body else ("", b"")
        response_key = build_response_key(exchange, endpoint, key, path_values, body)
        if response_key is not None and (cached := self.response_cache.find(response_key)) is not None:
            return HttpResponse(endpoint.status, cached)
        arguments = endpoint.bind(path_values, exchange.scope["query_string"], media_type, body)
        if endpoint.takes_file:
            return await self._executor.run_upload(endpoint, self._open_upload(exchange, endpoint, key), arguments)
        claim = find_claim(exchange, endpoint, key, body)
        if endpoint.is_outbound:
            request = exchange.build_request_info(endpoint.routes.base)
            call = exchange.outbound_call = OutboundCall(self._context, key, request, endpoint.status, claim)
            generation = self.response_cache.generation
            response = await self._executor.run_outbound(endpoint, call, arguments)
            if response_key is not None and call.cache_seconds is not None:
                self.response_cache.store(response_key, response.body, call.cache_seconds, generation)
            return response
        return await self._executor.run(endpoint, key, arguments, claim, address=exchange.address)

    async def refuse(self, exchange: Exchange, error: Exception) -> ApiError:
        """The error to respond with, recorded where the endpoint records refused calls."""
        refusal = explain(error, exchange.request_id, method=exchange.method)
        await self._record(exchange, refusal)
        return refusal

    def _open_upload(self, exchange: Exchange, endpoint: Endpoint, key: Key) -> UploadCall:
        return UploadCall(
            self._context,
            key,
            open_upload(exchange, self._context.settings.files.max_bytes),
            endpoint.status,
            f"{exchange.method} {exchange.path}",
            exchange.scope["query_string"],
            exchange.header(b"idempotency-key"),
        )

    async def _record(self, exchange: Exchange, refusal: ApiError) -> None:
        """If this fails, the caller still gets the refusal."""
        endpoint, key, call = exchange.endpoint, exchange.key, exchange.outbound_call
        if endpoint is None or endpoint.recorder is None or key is None:
            return
        if isinstance(refusal, ServiceUnavailable) or (call is not None and call.is_recorded):
            return
        try:
            await endpoint.recorder(
                self._context, key.company, exchange.build_request_info(endpoint.routes.base), refusal
            )
        except Exception as error:
            log.error("refused call not recorded", request_id=exchange.request_id, exc_info=error)

    def _options(self, exchange: Exchange) -> HttpResponse:
        if exchange.route is None:
            raise NotFound
        return HttpResponse(204, headers={"allow": exchange.route.allow})

    async def _identify(self, exchange: Exchange, raw: str | None) -> Key:
        try:
            if not raw:
                raise MissingApiKey
            return await self._keys.identify(raw, get_network(exchange.address))
        except (MissingApiKey, InvalidApiKey) as error:
            if exchange.path.startswith(self._unauthorized_prefixes):
                raise Unauthorized(error.message) from None
            raise

    def _get_endpoint(self, exchange: Exchange) -> Endpoint:
        # Bytes that are not UTF-8 arrive as this character; so does the character itself.
        if "\ufffd" in exchange.path and not _is_utf8(exchange.scope.get("raw_path", b"")):
            raise Invalid("The path is not valid UTF-8. Encode it as UTF-8.")
        if exchange.route is None:
            raise NotFound
        method = "GET" if exchange.method == "HEAD" else exchange.method
        endpoint = exchange.route.endpoints.get(method)
        if endpoint is None:
            raise MethodNotAllowed(headers={"allow": exchange.route.allow})
        return endpoint

    def log_call(
        self, exchange: Exchange, route: str, status: int, code: str | None, seconds: float, tool: str | None = None
    ) -> None:
        """A line of the access log; `tool` is set for a tool call."""
        key_id, company_id = (exchange.key.id, exchange.key.company.id) if exchange.key else (None, None)
        self.access_log.add(
            FinishedCall(
                time.time(),
                exchange.request_id,
                exchange.method,
                route,
                exchange.path[:LONGEST_LOGGED_PATH],
                status,
                seconds,
                exchange.address,
                key_id,
                company_id,
                code,
                tool,
            )
        )


def find_claim(exchange: Exchange, endpoint: Endpoint, key: Key, body: bytes) -> IdempotencyClaim | None:
    """The claim of a write with an Idempotency-Key."""
    idempotency_key = exchange.header(b"idempotency-key") if endpoint.writes else None
    if idempotency_key is None:
        return None
    content = exchange.scope["query_string"] + b"\n" + body
    return build_claim(key.company.id, idempotency_key, f"{exchange.method} {exchange.path}", content)


def build_response_key(
    exchange: Exchange, endpoint: Endpoint, key: Key, path_values: Sequence[str], body: bytes
) -> ResponseKey | None:
    """Where the response is in the cache. None if the endpoint has no cache, or if the request has an Idempotency-Key,
    with which the response is stored."""
    if not endpoint.is_cached or exchange.header(b"idempotency-key") is not None:
        return None
    return key.company, endpoint.operation, tuple(path_values), exchange.scope["query_string"], body


def _is_utf8(raw_path: bytes) -> bool:
    try:
        unquote_to_bytes(raw_path).decode()
    except UnicodeDecodeError:
        return False
    return True


def add_etag(response: HttpResponse, if_none_match: str | None) -> HttpResponse:
    """The response with its ETag, or 304 when the caller has it already."""
    etag = build_etag(response.body)
    if matches_etag(if_none_match, etag):
        return HttpResponse(304, headers={"etag": etag})
    response.headers["etag"] = etag
    return response


def build_etag(body: bytes) -> str:
    return f'"{blake2b(body, digest_size=16).hexdigest()}"'


def matches_etag(header: str | None, tag: str) -> bool:
    if header is None:
        return False
    return header.strip() == "*" or tag in (part.strip().removeprefix("W/") for part in header.split(","))


async def send_response(send: Send, exchange: Exchange, response: HttpResponse, cors: Cors) -> None:
    headers = [(b"x-request-id", exchange.request_id.encode()), PRIVATE, *exchange.quota]
    if response.status not in {204, 304}:
        headers.append((b"content-length", b"%d" % len(response.body)))
        if "content-type" not in response.headers:
            headers.append(JSON)
    headers += [(name.encode(), value.encode("latin-1")) for name, value in response.headers.items()]
    if exchange.key is not None and exchange.key.retirement is not None:
        headers += retirement_headers(exchange.key.retirement)
    elif exchange.endpoint is not None and exchange.endpoint.retirement is not None:
        headers += retirement_headers(exchange.endpoint.retirement)
    if cors.origins:
        headers += cors.headers(exchange.method, exchange.headers)
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    body = b"" if exchange.method == "HEAD" else response.body
    await send({"type": "http.response.body", "body": body})


def retirement_headers(retirement: Retirement) -> list[tuple[bytes, bytes]]:
    """Since when a rotated key or an operation is deprecated, and when it stops."""
    text = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(retirement.stops))
    return [(b"deprecation", b"@%d" % retirement.since), (b"sunset", text.encode())]
