"""One attempt of one delivery: a signed POST through the guard, bounded in time and memory, and its outcome."""

import asyncio
import re
import ssl
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache

import aiohttp
import structlog
from msgspec import Struct
from yarl import URL

from sapa import traces
from sapa.outbound import resolver
from sapa.outbound.guard import BlockedAddress, Guard
from sapa.settings import WebhookSettings
from sapa.values.json import encode
from sapa.webhooks.certificate import explain_refusal
from sapa.webhooks.connections import ConnectionInfo, ReceiverConnections, ReceiverResponse
from sapa.webhooks.diagnosis import (
    DeliveryFailure,
    describe,
    describe_timeout,
    find_refusal,
)
from sapa.webhooks.signing import build_headers

DEADLINE_SECONDS = 30
"""For connecting, TLS, the request and the response's headers together."""

CAPTURE_SECONDS = 2
CAPTURED_BYTES = 4096
MAX_BODY_BYTES = 65_536

RESERVED_HEADERS = frozenset(
    "content-type user-agent x-service-webhook-id x-service-webhook-event x-service-webhook-timestamp"
    " x-service-webhook-signature webhook-id webhook-timestamp webhook-signature host content-length"
    " content-encoding transfer-encoding connection keep-alive upgrade expect te trailer proxy-authorization"
    " proxy-connection".split()
)
"""Names that a custom header cannot have, in lower case."""

_find_control_character = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]").search

log = structlog.get_logger()


class Target(Struct, frozen=True):
    """Where a delivery goes, and what it is signed with: the current secret first."""

    url: str
    headers: dict[str, str]
    secrets: list[str]


class WebhookMessage(Struct, frozen=True):
    event_id: str
    kind: str
    body: bytes


class SendResult(Struct, frozen=True):
    """What came of sending one message."""

    started_at: datetime
    milliseconds: int
    status: int | None
    error: str | None
    """An error code, for programs."""
    message: str | None
    """A sentence on the failure, for people."""
    address: str | None
    response: bytes
    """The first 4 KB of the response's body, as raw bytes."""
    is_ours: bool = False
    """Not the receiver's fault."""

    @property
    def delivered(self) -> bool:
        return self.error is None


class WebhookSender:
    """Sends deliveries. Create it inside the event loop that uses it."""

    def __init__(
        self,
        settings: WebhookSettings,
        deadline: float = DEADLINE_SECONDS,
        look_up: Callable[[str], list[str]] = resolver.look_up,
    ) -> None:
        self.deadline = deadline
        self._schemes = {"https", "http"} if settings.allow_insecure else {"https"}
        self._guard = Guard(settings)
        self._resolver = resolver.GuardedResolver(self._guard, look_up)
        self._connections = ReceiverConnections(self._guard, self._resolver)

    async def send(self, target: Target, message: WebhookMessage) -> SendResult:
        """One attempt. Every failure of the receiver is an outcome, never an exception."""
        started_at, began = datetime.now(UTC), time.monotonic()
        connection_info = ConnectionInfo()
        status, captured = None, b""
        try:
            with traces.open_request("POST", target.url) as span:
                response = await self._post(connection_info, target, message)
                if span is not None:
                    span.describe({"http.response.status_code": response.status})
            captured = await self._capture(connection_info, response, began)
            status = response.status
            failure = find_refusal(status, response.location, target.url)
        except Exception as error:
            connection_info.abort()
            failure = await self._explain(error, connection_info, parse_url(target.url))
        return SendResult(
            started_at=started_at,
            milliseconds=round((time.monotonic() - began) * 1000),
            status=status,
            error=failure.error if failure else None,
            message=failure.message if failure else None,
            address=connection_info.address,
            response=captured,
            is_ours=failure.is_ours if failure else False,
        )

    async def close(self) -> None:
        await self._connections.close()
        await self._resolver.close()

    async def _post(self, connection_info: ConnectionInfo, target: Target, message: WebhookMessage) -> ReceiverResponse:
        url = parse_url(target.url)
        if url.scheme not in self._schemes:
            raise BlockedAddress(f"{url.scheme}:// is no longer allowed; change the endpoint to an https:// URL")
        request = build_request(url, target, message, int(time.time()))
        async with asyncio.timeout(self.deadline):
            try:
                return await self._connections.post(url, request, connection_info)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError) as error:
                if connection_info.is_fresh or not _is_unanswered(error):
                    raise
            # The receiver closed a kept-alive connection, as it may at any time; this is not a failure.
            return await self._connections.post(url, request, connection_info, fresh=True)

    async def _capture(self, connection_info: ConnectionInfo, response: ReceiverResponse, began: float) -> bytes:
        """The response is valid already, so an incomplete body is not a failure."""
        content = response.content
        if content.is_eof() and content.exception() is None:
            return content.read_nowait(CAPTURED_BYTES)
        left = max(0, began + self.deadline - time.monotonic())
        try:
            return await _read_start(content, min(left, CAPTURE_SECONDS))
        finally:
            if not content.is_eof():
                connection_info.abort()
            response.release()

    async def _explain(self, error: Exception, connection_info: ConnectionInfo, url: URL) -> DeliveryFailure:
        host, port = url.host or "", url.port or 0
        place = f"{connection_info.address or host} port {port}"
        if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientConnectorError):
            return describe_timeout(connection_info.transport is not None, place, self.deadline)
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            cause = error.certificate_error
            if isinstance(cause, ssl.SSLCertVerificationError):
                return DeliveryFailure(
                    "tls", await explain_refusal(cause, self._guard.open_socket, connection_info.address, port, host)
                )
        failure = describe(error, host, place)
        if failure.error == "internal":
            log.warning("webhook not sent", reason=failure.message, exc_info=not isinstance(error, OSError))
        return failure


def build_request(url: URL, target: Target, message: WebhookMessage, t: int) -> bytes:
    """The signed request as it is sent."""
    headers = build_headers(target.secrets, message.event_id, message.kind, message.body, t)
    if target.headers:
        headers |= {name: text for name, text in target.headers.items() if name.lower() not in RESERVED_HEADERS}
    if _find_control_character("".join([*headers, *headers.values()])):
        raise ValueError("a header has a control character")
    lines = "".join([f"{name}: {text}\r\n" for name, text in headers.items()])
    return f"{_build_start(url)}{lines}Content-Length: {len(message.body)}\r\n\r\n".encode() + message.body


@lru_cache(maxsize=4096)
def _build_start(url: URL) -> str:
    """The credentials of a URL are those that a developer forwards to; endpoints have none."""
    start = f"POST {url.raw_path_qs} HTTP/1.1\r\nHost: {url.host_port_subcomponent}\r\n"
    if url.user is None and url.password is None:
        return start
    credentials = b64encode(f"{url.user or ''}:{url.password or ''}".encode()).decode()
    return f"{start}Authorization: Basic {credentials}\r\n"


def shorten(body: bytes, resource_id: str, url: str | None) -> bytes:
    """The body as it is delivered: one over 64 KB is replaced by a link to the resource."""
    if len(body) <= MAX_BODY_BYTES:
        return body
    return encode({"id": resource_id, "truncated": True, "url": url})


async def _read_start(content: aiohttp.StreamReader, seconds: float) -> bytes:
    captured = b""
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(seconds):
            while len(captured) < CAPTURED_BYTES and (part := await content.read(CAPTURED_BYTES - len(captured))):
                captured += part
    return captured


def _is_unanswered(error: Exception) -> bool:
    """The connection ended before any byte of a response."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return isinstance(error.message, str)
    return not isinstance(error, aiohttp.ClientConnectorError)


@lru_cache(maxsize=4096)
def parse_url(url: str) -> URL:
    return URL(url, encoded=True)
