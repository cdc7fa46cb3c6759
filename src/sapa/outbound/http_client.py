"""Calls to providers, bounded in time and size; errors tell whether an unanswered request may have arrived."""

import asyncio
import socket
import ssl
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import aiohttp

from sapa import traces
from sapa.outbound.client import (
    CONNECT_SECONDS,
    MAX_BYTES,
    SECONDS,
    Client,
    Form,
    NotSent,
    ProviderResponse,
    Unclear,
)
from sapa.outbound.dialer import Dialer, connect_unguarded
from sapa.outbound.direct_post import LARGEST_CONTENT, DirectPosts, PostResponse, find_target
from sapa.outbound.file_payload import FilePayload
from sapa.outbound.guard import Guard
from sapa.outbound.loopback import Loopback
from sapa.outbound.resolver import GuardedResolver
from sapa.settings import WebhookSettings
from sapa.values.hook_calls import HookCall

KEEP_ALIVE_SECONDS = 15.0

_HEADERS = {"user-agent": "Sapa/1.0"}
_POST_HEADERS = {
    **{name.lower(): text for name, text in aiohttp.ClientRequest.DEFAULT_HEADERS.items()},
    **_HEADERS,
    "content-type": "application/octet-stream",
}
"""What the session adds by itself."""


class HttpClient(Client):
    """Sessions are opened on first use, because that has to be inside the event loop."""

    def __init__(self, settings: WebhookSettings, loopback: Loopback | None = None) -> None:
        self._settings = settings
        self._loopback = loopback
        self._plain: aiohttp.ClientSession | None = None
        self._posts: DirectPosts
        """Of the plain session's connections."""
        self._guarded: aiohttp.ClientSession | None = None
        self._dialer: Dialer | None = None

    async def call(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        content: bytes | None = None,
        form: Form | None = None,
        seconds: float = SECONDS,
        connect_seconds: float = CONNECT_SECONDS,
        max_bytes: int = MAX_BYTES,
    ) -> ProviderResponse:
        if self._loopback is not None and self._loopback.serves(url) and form is None:
            call = _build_hook_call(method, url, headers or {}, params or {}, content or b"")
            return await _call_loopback(self._loopback, call, seconds)
        if self._plain is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS)
            self._plain = _open_session(connector)
            self._posts = DirectPosts(connector, _POST_HEADERS)
        if method == "POST" and content is not None and params is None and len(content) <= LARGEST_CONTENT:
            target = find_target(url)
            if target is not None:
                post = self._posts.post(target, content, headers or {}, connect_seconds)
                return await _post_directly(post, url, seconds, max_bytes)
        timeout = aiohttp.ClientTimeout(total=seconds, connect=connect_seconds)
        data = content if form is None else _build_form(form)
        options = {"headers": headers, "params": params, "data": data}
        return await _exchange(self._plain, method, url, max_bytes, timeout=timeout, **options)

    async def fetch(
        self, url: str, max_bytes: int, *, headers: Mapping[str, str] | None = None, seconds: float = SECONDS
    ) -> ProviderResponse:
        return await _exchange(self._guard(), "GET", url, max_bytes, headers=headers, timeout=_limit(seconds))

    async def post_guarded(
        self, url: str, content: bytes, *, headers: Mapping[str, str] | None = None, seconds: float = SECONDS
    ) -> ProviderResponse:
        options = {"headers": headers, "data": content, "timeout": _limit(seconds)}
        return await _exchange(self._guard(), "POST", url, MAX_BYTES, **options)

    def _guard(self) -> aiohttp.ClientSession:
        if self._guarded is None:
            guard = Guard(self._settings)
            connector = aiohttp.TCPConnector(
                limit=0,
                force_close=True,
                use_dns_cache=False,
                resolver=GuardedResolver(guard),
                socket_factory=guard.open_socket,
            )
            self._guarded = _open_session(connector)
        return self._guarded

    async def dial(
        self, host: str, port: int, *, is_trusted: bool = False, seconds: float = CONNECT_SECONDS
    ) -> socket.socket:
        if self._dialer is None:
            self._dialer = Dialer(Guard(self._settings))
        try:
            if is_trusted:
                return await connect_unguarded(host, port, seconds)
            return await self._dialer.open(host, port, seconds)
        except OSError as error:
            raise NotSent(_describe(error)) from error

    async def close(self) -> None:
        if self._dialer is not None:
            await self._dialer.close()
        for session in (self._plain, self._guarded):
            if session is not None:
                await session.close()


def _build_form(form: Form) -> aiohttp.FormData:
    built = aiohttp.FormData()
    for name, value in form.items():
        if isinstance(value, str):
            built.add_field(name, value)
        elif isinstance(value.content, bytes):
            built.add_field(name, value.content, filename=value.filename, content_type=value.media_type)
        else:
            built.add_field(name, FilePayload(value.content, value.size, value.media_type), filename=value.filename)
    return built


def _limit(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds, connect=CONNECT_SECONDS)


def _open_session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=_HEADERS,
        trust_env=False,
    )


def _build_hook_call(
    method: str, url: str, headers: Mapping[str, str], params: Mapping[str, str], content: bytes
) -> HookCall:
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **params}
    own = {"host": parts.netloc, **_lower_names(headers)}
    return HookCall(method, unquote(parts.path), query, own, content, parts.hostname or "")


async def _call_loopback(loopback: Loopback, call: HookCall, seconds: float) -> ProviderResponse:
    """A simulator in this process: HTTP with ourselves would take longer than what the simulator does."""
    try:
        with traces.open_request(call.method, f"http://{call.headers['host']}") as span, traces.leave():
            async with asyncio.timeout(seconds):
                answer = await loopback.answer(call)
            if span is not None:
                span.describe({"http.response.status_code": answer.status})
    except TimeoutError as error:
        raise Unclear(_describe(error)) from error
    return ProviderResponse(answer.status, _lower_names(answer.headers), answer.body)


async def _exchange(
    session: aiohttp.ClientSession, method: str, url: str, max_bytes: int, **options: Any
) -> ProviderResponse:
    with _classify_errors(), traces.open_request(method, url) as span:
        async with session.request(method, url, allow_redirects=False, **options) as response:
            if span is not None:
                span.describe({"http.response.status_code": response.status})
            try:
                body = await _read(response.content, max_bytes)
            except Unclear:
                response.close()
                raise
            return ProviderResponse(response.status, _lower_names(response.headers), body)


async def _post_directly(
    post: Coroutine[Any, Any, PostResponse], url: str, seconds: float, max_bytes: int
) -> ProviderResponse:
    with _classify_errors(), traces.open_request("POST", url) as span:
        async with asyncio.timeout(seconds):
            response = await post
            if span is not None:
                span.describe({"http.response.status_code": response.status})
            try:
                body = await _read(response.content, max_bytes)
            finally:
                response.close()
        return ProviderResponse(response.status, _lower_names(response.headers), body)


@contextmanager
def _classify_errors() -> Iterator[None]:
    """Raises NotSent where no byte of the request can have arrived."""
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL, ssl.SSLError) as error:
        raise NotSent(_describe(error)) from error
    except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError, OSError) as error:
        raise Unclear(_describe(error)) from error


async def _read(content: aiohttp.StreamReader, max_bytes: int) -> bytes:
    if content.is_eof() and content.exception() is None and content.total_bytes <= max_bytes:
        return content.read_nowait(-1)  # as most responses are
    body = bytearray()
    async for chunk in content.iter_chunked(65_536):
        body += chunk
        if len(body) > max_bytes:
            raise Unclear(f"the response is larger than {max_bytes:,} bytes")
    return bytes(body)


def _lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _describe(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "there was no response in time"
    if isinstance(error, aiohttp.InvalidURL):  # its text is the address, which may hold a password
        return "the address is not valid"
    return str(error) or type(error).__name__
