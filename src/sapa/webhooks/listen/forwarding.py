"""A developer's end of `/listen`: follows a company's events and forwards each as a real signed webhook."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import msgspec
from msgspec import Struct

from sapa.db.retry import Backoff
from sapa.settings import WebhookSettings
from sapa.webhooks.id_times import parse_time
from sapa.webhooks.listen.streams import HEARTBEAT_SECONDS, MARGIN_SECONDS, ListenedEvent
from sapa.webhooks.sender import (
    SendResult,
    Target,
    WebhookMessage,
    WebhookSender,
)

RETRY_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
SHORTEST_PAUSE = 0.25
LONGEST_PAUSE = 5.0
_SILENCE_SECONDS = HEARTBEAT_SECONDS * 2.5
_MAX_IDS = 20_000


class ListenRefused(Exception):
    """The server refuses this listener; the text says why."""


class Interrupted(Struct, frozen=True):
    """The stream broke; it reconnects automatically."""

    reason: str


class StreamOpened(Struct, frozen=True):
    """The stream is open: events from now on are received."""


StreamMessage = ListenedEvent | StreamOpened | Interrupted


class ReceivedEvents:
    """The events that were received already: a stream that reconnects goes back a little."""

    def __init__(self) -> None:
        self.position: str | None = None
        """The stream's last position; reconnecting with it misses nothing."""
        self._newest = ""
        self._ids: set[str] = set()

    def is_new(self, id: str) -> bool:
        """True once for each event."""
        if id in self._ids:
            return False
        self._ids.add(id)
        self._newest = max(self._newest, id)
        if len(self._ids) > _MAX_IDS:
            oldest = parse_time(self._newest) - 4 * MARGIN_SECONDS
            self._ids = {id for id in self._ids if parse_time(id) >= oldest}
        return True


class EventListener:
    """Follows the stream of a server and reconnects after every interruption."""

    def __init__(self, server: str, get_token: Callable[[bool], Awaitable[str]], kinds: list[str]) -> None:
        """`get_token` gets whether its last token was refused; it raises ListenRefused when it has no other."""
        self._url = server.rstrip("/") + "/listen"
        self._get_token = get_token
        self._kinds = kinds
        self._received = ReceivedEvents()

    async def follow(self) -> AsyncIterator[StreamMessage]:
        timeout = aiohttp.ClientTimeout(total=None, connect=10, sock_read=_SILENCE_SECONDS)
        backoff, was_refused = Backoff(SHORTEST_PAUSE, LONGEST_PAUSE), False
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                token, reason = await self._get_token(was_refused), "the server ended the stream"
                try:
                    async for message in self._open(session, token):
                        backoff.reset()
                        was_refused = False
                        yield message
                except _TokenRefused as error:
                    was_refused, reason = True, str(error)
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    reason = str(error) or type(error).__name__
                yield Interrupted(reason)
                await asyncio.sleep(backoff.next())

    async def _open(self, session: aiohttp.ClientSession, token: str) -> AsyncIterator[StreamMessage]:
        headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream"}
        if self._received.position is not None:
            headers["last-event-id"] = self._received.position
        params = {"kinds": ",".join(self._kinds)} if self._kinds else {}
        async with session.get(self._url, headers=headers, params=params, allow_redirects=False) as response:
            if response.status != 200:
                await _refuse(response)
            async for block in _blocks(response.content):
                self._received.position = parse_position(block) or self._received.position
                if block.startswith(b": ready"):
                    yield StreamOpened()
                event = parse_block(block)
                if event is not None and self._received.is_new(event.id):
                    yield event


class _TokenRefused(Exception):
    pass


async def _refuse(response: aiohttp.ClientResponse) -> None:
    """Temporary refusals are retried; others are raised at once."""
    message = _find_message(await response.content.read(4096)) or f"the server answered {response.status}"
    if response.status == 401:
        raise _TokenRefused(message)
    if response.status in {429, 500, 502, 503, 504}:
        raise aiohttp.ClientError(message)
    raise ListenRefused(message)


def _find_message(body: bytes) -> str | None:
    try:
        return str(msgspec.json.decode(body)["error"]["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return None


async def _blocks(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """The stream's messages, however the network splits them."""
    pending = b""
    async for part in content.iter_any():
        *whole, pending = (pending + part).split(b"\n\n")
        for block in whole:
            yield block


def parse_block(block: bytes) -> ListenedEvent | None:
    """The event in a message; comments have none."""
    for line in block.split(b"\n"):
        if line.startswith(b"data: "):
            return msgspec.json.decode(line.removeprefix(b"data: "), type=ListenedEvent)
    return None


def parse_position(block: bytes) -> str | None:
    """The stream's position in a comment. An event's id is not one, because earlier events may still come."""
    comment, _, line = block.partition(b"\n")
    return line.removeprefix(b"id: ").decode() or None if comment.startswith(b":") else None


class Forwarder:
    """Sends events to an address that the developer chose, without the guard."""

    def __init__(self, url: str, secret: str) -> None:
        self._target = Target(url, {}, [secret])
        self._sender = WebhookSender(WebhookSettings(allow_insecure=True, allowed_networks=()))

    async def forward(self, event: ListenedEvent) -> AsyncIterator[tuple[int, SendResult]]:
        """Each attempt and its number, until one is delivered or all are used up."""
        message = WebhookMessage(event.id, event.kind, event.body.encode())
        for number, pause in enumerate((*RETRY_PAUSES, None), start=1):
            outcome = await self._sender.send(self._target, message)
            yield number, outcome
            if outcome.delivered or pause is None:
                return
            await asyncio.sleep(pause)

    async def close(self) -> None:
        await self._sender.close()
