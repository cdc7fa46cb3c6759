"""A developer's end of `/listen`: follows a company's events and forwards each as a real signed webhook."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import msgspec
from msgspec import Struct

from sapa.db.retry import Backoff
from sapa.settings import WebhookSettings
from sapa.webhooks.id_times import made_at
from sapa.webhooks.listen.streams import HEARTBEAT_SECONDS, MARGIN_SECONDS, ListenedEvent
from sapa.webhooks.sender import (
    Outcome,
    Target,
    WebhookMessage,
    WebhookSender,
)

PAUSES_BETWEEN_TRIES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
SHORTEST_PAUSE = 0.25
LONGEST_PAUSE = 5.0
_SILENCE_SECONDS = HEARTBEAT_SECONDS * 2.5
_MOST_REMEMBERED = 20_000


class ListenRefused(Exception):
    """The server does not let this listener in; the text says why."""


class Interrupted(Struct, frozen=True):
    """The stream broke; it is opened again by itself."""

    reason: str


class StreamOpened(Struct, frozen=True):
    """The stream is open: what happens from now on is heard."""


Heard = ListenedEvent | StreamOpened | Interrupted


class Memory:
    """The events that were heard already: a stream that is opened again goes back a little."""

    def __init__(self) -> None:
        self.position: str | None = None
        """Where the stream was when it last told; to come back with it misses nothing."""
        self._newest = ""
        self._known: set[str] = set()

    def is_new(self, id: str) -> bool:
        """Once for each event."""
        if id in self._known:
            return False
        self._known.add(id)
        self._newest = max(self._newest, id)
        if len(self._known) > _MOST_REMEMBERED:
            oldest = made_at(self._newest) - 4 * MARGIN_SECONDS
            self._known = {known for known in self._known if made_at(known) >= oldest}
        return True


class EventListener:
    """Follows the stream of a server for ever, through whatever happens to server and network."""

    def __init__(self, server: str, get_token: Callable[[bool], Awaitable[str]], kinds: list[str]) -> None:
        """`get_token` is told whether the token it gave before was refused; it raises Refused when it has no other."""
        self._url = server.rstrip("/") + "/listen"
        self._get_token = get_token
        self._kinds = kinds
        self._memory = Memory()

    async def follow(self) -> AsyncIterator[Heard]:
        timeout = aiohttp.ClientTimeout(total=None, connect=10, sock_read=_SILENCE_SECONDS)
        backoff, was_refused = Backoff(SHORTEST_PAUSE, LONGEST_PAUSE), False
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                token, reason = await self._get_token(was_refused), "the server ended the stream"
                try:
                    async for heard in self._open(session, token):
                        backoff.reset()
                        was_refused = False
                        yield heard
                except _TokenRefused as error:
                    was_refused, reason = True, str(error)
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    reason = str(error) or type(error).__name__
                yield Interrupted(reason)
                await asyncio.sleep(backoff.next())

    async def _open(self, session: aiohttp.ClientSession, token: str) -> AsyncIterator[Heard]:
        headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream"}
        if self._memory.position is not None:
            headers["last-event-id"] = self._memory.position
        params = {"kinds": ",".join(self._kinds)} if self._kinds else {}
        async with session.get(self._url, headers=headers, params=params, allow_redirects=False) as answer:
            if answer.status != 200:
                await _refuse(answer)
            async for block in _blocks(answer.content):
                self._memory.position = parse_position(block) or self._memory.position
                if block.startswith(b": ready"):
                    yield StreamOpened()
                told = parse_block(block)
                if told is not None and self._memory.is_new(told.id):
                    yield told


class _TokenRefused(Exception):
    pass


async def _refuse(answer: aiohttp.ClientResponse) -> None:
    """What may pass is tried again; what will not is told at once."""
    sentence = _sentence(await answer.content.read(4096)) or f"the server answered {answer.status}"
    if answer.status == 401:
        raise _TokenRefused(sentence)
    if answer.status in {429, 500, 502, 503, 504}:
        raise aiohttp.ClientError(sentence)
    raise ListenRefused(sentence)


def _sentence(body: bytes) -> str | None:
    try:
        return str(msgspec.json.decode(body)["error"]["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return None


async def _blocks(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """The stream's messages, however the network cuts them."""
    waiting = b""
    async for part in content.iter_any():
        *whole, waiting = (waiting + part).split(b"\n\n")
        for block in whole:
            yield block


def parse_block(block: bytes) -> ListenedEvent | None:
    """The event in a message; comments have none."""
    for line in block.split(b"\n"):
        if line.startswith(b"data: "):
            return msgspec.json.decode(line.removeprefix(b"data: "), type=ListenedEvent)
    return None


def parse_position(block: bytes) -> str | None:
    """The stream's place in a comment; an event's id is none, as earlier events may still come."""
    comment, _, line = block.partition(b"\n")
    return line.removeprefix(b"id: ").decode() or None if comment.startswith(b":") else None


class Forwarder:
    """Sends events to an address of the developer's own choice, so no guard stands before it."""

    def __init__(self, url: str, secret: str) -> None:
        self._target = Target(url, {}, [secret])
        self._sender = WebhookSender(WebhookSettings(allow_insecure=True, allowed_networks=()))

    async def forward(self, event: ListenedEvent) -> AsyncIterator[tuple[int, Outcome]]:
        """Each try and its number, until one is delivered or all are used up."""
        message = WebhookMessage(event.id, event.kind, event.body.encode())
        for number, pause in enumerate((*PAUSES_BETWEEN_TRIES, None), start=1):
            outcome = await self._sender.send(self._target, message)
            yield number, outcome
            if outcome.delivered or pause is None:
                return
            await asyncio.sleep(pause)

    async def close(self) -> None:
        await self._sender.close()
