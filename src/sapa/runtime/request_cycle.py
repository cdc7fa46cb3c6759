"""One request and its response, as ASGI's receive and send."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Protocol

import structlog

from sapa.http.errors import InternalError
from sapa.http.incoming import ARRIVED_BODY
from sapa.traces import create_shared_task

STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
BODILESS = {204, 304}
LARGE_BYTES = 65_536
IS_DRAINING = "is_draining"
"""In the state of requests."""

Headers = list[tuple[bytes, bytes]]
Message = dict[str, Any]
App = Callable[..., Awaitable[None]]

log = structlog.get_logger()


class CycleConnection(Protocol):
    """What a request needs of its connection."""

    is_paused: bool

    def write(self, data: bytes) -> None: ...

    def read_on(self) -> None: ...

    def complete(self) -> None: ...

    def abort(self) -> None: ...

    def stop(self) -> None: ...

    def drain(self) -> None: ...


class ServedApp:
    """The application, with the connections and requests that are open."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.state: dict[str, Any] = {}
        """What the application's start has made, for each request."""
        self.connections: set[CycleConnection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.is_draining = False
        """Each connection ends with its next response."""

    def drain(self) -> None:
        """The server will stop soon: callers and load balancers are told to go elsewhere."""
        self.is_draining = self.state[IS_DRAINING] = True
        for connection in self.connections:
            connection.drain()

    def start(self, cycle: "RequestCycle") -> None:
        # The response before it may have been completed by a call that is traced.
        task = create_shared_task(cycle.run(self.app))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


class RequestCycle:
    __slots__ = (
        "_body", "_connection", "_expects_continue", "_head", "_is_chunked", "_is_disconnected", "_is_received",
        "_is_taken", "_left", "_scope", "_waiters", "is_complete", "is_started", "keeps_alive",
    )  # fmt: skip

    def __init__(self, connection: CycleConnection, scope: Message, keeps_alive: bool, expects_continue: bool) -> None:
        self._connection = connection
        self._scope = scope
        self._expects_continue = expects_continue
        self._body = b""
        self._is_received = False
        self._is_taken = False
        """The application has the whole body."""
        self._is_disconnected = False
        self._head = b""
        """Of a response whose body follows at once: both leave together."""
        self._is_chunked = False
        self._left: int | None = None
        """Bytes of the response's body that are still to come, if its length is known."""
        self._waiters: list[asyncio.Future[None]] = []
        self.keeps_alive = keeps_alive
        self.is_started = False
        self.is_complete = False

    async def run(self, app: App) -> None:
        if self._is_received:
            self._scope[ARRIVED_BODY] = self._body
        try:
            await app(self._scope, self.receive, self.send)
        except Exception as error:
            log.error("request failed", method=self._scope["method"], exc_info=error)
        finally:
            if not self.is_complete and not self._is_disconnected:
                self._fail()

    def _fail(self) -> None:
        if self.is_started:
            self._connection.abort()
            return
        body = InternalError().encode()
        self.keeps_alive = False
        self._start(500, [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))])
        self._send_body(body, has_more=False)

    # For the connection

    def add_body(self, part: bytes) -> int:
        """Returns how much the application has not taken yet."""
        self._body = self._body + part if self._body else part
        self.wake()
        return len(self._body)

    def end_body(self) -> None:
        self._is_received = True
        self.wake()

    def disconnect(self) -> None:
        self._is_disconnected = True
        self.wake()

    def wake(self) -> None:
        """What `_wait` waits for may have happened."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _wait(self) -> None:
        """Until a part of the body arrives, the caller reads on or disconnects, or the response ends."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    # For the application

    async def receive(self) -> Message:
        if self._expects_continue and not self.is_started:
            self._expects_continue = False
            self._connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not self._is_disconnected and not self.is_complete:
            if not self._is_taken and (self._body or self._is_received):
                body, self._body = self._body, b""
                self._is_taken = self._is_received
                self._connection.read_on()
                return {"type": "http.request", "body": body, "more_body": not self._is_received}
            await self._wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        while self._connection.is_paused and not self._is_disconnected:
            await self._wait()
        if self._is_disconnected:
            return
        if message["type"] == "http.response.start":
            self._start(message["status"], message["headers"])
        else:
            self._send_body(message.get("body", b""), message.get("more_body", False))

    def _start(self, status: int, headers: Headers) -> None:
        lines = [STATUS_LINES[status], _get_date()]
        self._is_chunked = status not in BODILESS
        for name, value in headers:
            lines.append(b"%b: %b\r\n" % (name, value))
            if name == b"content-length":
                self._left, self._is_chunked = int(value), False
            elif name == b"connection" and value.lower() == b"close":
                self.keeps_alive = False
        if self._is_chunked and self._scope["http_version"] == "1.0":
            self._is_chunked = self.keeps_alive = False
        if self._expects_continue:  # the caller may leave the body out, and send its next request instead
            self.keeps_alive = False
        if self._is_chunked:
            lines.append(b"transfer-encoding: chunked\r\n")
        if not self.keeps_alive:
            lines.append(b"connection: close\r\n")
        head = b"".join(lines)
        if head.count(b"\n") != len(lines):
            raise ValueError("a header of the response contains a line break")
        self.is_started = True
        self._head = head + b"\r\n"
        if self._left is None:  # a stream may have nothing to say for a while
            self._write(b"")

    def _send_body(self, part: bytes, has_more: bool) -> None:
        if self._scope["method"] == "HEAD":
            part = b""
        elif self._left is not None:
            self._left -= len(part)
            if self._left < 0 or (self._left and not has_more):
                raise ValueError("the response's body differs from its length")
        elif self._is_chunked:
            part = self._frame(part, has_more)
        self._write(part)
        if not has_more:
            self.is_complete = True
            self.wake()
            self._connection.complete()

    def _write(self, data: bytes) -> None:
        """A large body is not copied: a document that many callers are slow to read is in memory once."""
        head, self._head = self._head, b""
        if head and len(data) > LARGE_BYTES:
            self._connection.write(head)
            head = b""
        self._connection.write(head + data if head else data)

    def _frame(self, part: bytes, has_more: bool) -> bytes:
        chunk = b"%x\r\n%b\r\n" % (len(part), part) if part else b""
        return chunk if has_more else chunk + b"0\r\n\r\n"


_date = (0, b"")


def _get_date() -> bytes:
    """Formatted once a second."""
    global _date
    now = int(time.time())
    if _date[0] != now:
        _date = (now, b"date: %b\r\n" % formatdate(now, usegmt=True).encode())
    return _date[1]
