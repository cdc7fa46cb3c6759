"""One HTTP/1.1 connection: Uvicorn's protocol, with stricter request heads and limits on waiting."""

import re
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from sapa.http.errors import ApiError, Invalid
from sapa.runtime.connection_limits import IDLE_SECONDS, READ_SECONDS, Connection, ConnectionLimits

MOST_HEAD_BYTES = 32 * 1024
# The rest of a body that nobody reads is still received this far, so that the caller gets the response.
MOST_DRAINED_BYTES = 16 * 1_048_576

KNOWN_METHODS = {b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"}
_is_token = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}").fullmatch

# No other protocol is offered. A parser that sees the offer would take the body for the other protocol's bytes.
_remove_upgrade = re.compile(rb"(?i)(?<=\r\n)upgrade[ \t]*:[^\r\n]*\r\n").sub


class HeadersTooLarge(ApiError):
    """The request line and headers are larger than 32 KiB."""

    status = 431
    code = "HEADERS_TOO_LARGE"


class HttpConnection(HttpToolsProtocol):
    """Gives the parser one whole head at a time, checked before, then the head's body."""

    def __init__(self, limits: ConnectionLimits, connection: Connection, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._limits = limits
        self._connection = connection
        self._part = b""
        """What has arrived of the next head."""
        self._is_in_head = False
        self._is_in_body = False
        self._body_left: int | None = None
        """None for a chunked body, whose end only the parser finds."""
        self._other_method: bytes | None = None
        self._drained = 0
        self._refusal: ApiError | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._limits.release(self._connection)

    def eof_received(self) -> None:
        """A caller who has sent its last byte still gets to know that the body lacks some."""
        if self._is_in_body and self._is_busy():
            self._refuse(Invalid("The body is incomplete. Send the whole body."))

    def data_received(self, data: bytes) -> None:
        while data and self._refusal is None and not self.transport.is_closing():
            data = self._receive_body(data) if self._is_in_body else self._receive_head(data)

    def _receive_head(self, data: bytes) -> bytes:
        """Returns what came after it."""
        is_first_part = not self._part
        data = self._part + data
        end = data.find(b"\r\n\r\n")
        size = len(data) if end < 0 else end + 4
        if size > MOST_HEAD_BYTES:
            self._refuse(HeadersTooLarge())
        elif data.count(b"\n", 0, size) != data.count(b"\r\n", 0, size):
            self._refuse(Invalid("A line of the request's head ends without CR. End each line with CR LF."))
        elif end < 0:
            if is_first_part and not self._is_busy():
                self._connection.await_head()
            self._part = data
        else:
            self._part = b""
            self._is_in_head = True
            head = data[:size]
            self._parse(self._replace_method(_remove_upgrade(b"", head) if b"upgrade" in head.lower() else head))
            self._is_in_head = False
            return data[size:]
        return b""

    def _replace_method(self, head: bytes) -> bytes:
        """The parser refuses methods that it does not know; the application answers 405 to them."""
        method, _, rest = head.partition(b" ")
        self._other_method = method if method not in KNOWN_METHODS and _is_token(method) else None
        return b"PATCH " + rest if self._other_method else head

    def _receive_body(self, data: bytes) -> bytes:
        if self._body_left is None:
            self._parse(data)
            return b""
        part, rest = data[: self._body_left], data[self._body_left :]
        self._body_left -= len(part)
        self._parse(part)
        return rest

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._refuse(self._refusal or Invalid("The request is not valid HTTP/1.1."))

    def on_message_begin(self) -> None:
        if not self._is_in_head:
            raise self._remember(Invalid("A request directly follows a chunked body. Wait for the response first."))
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        hosts, self._body_left, self._drained = 0, None, 0
        for name, value in self.headers:
            if name == b"host":
                hosts += 1
            elif name == b"content-length":
                self._body_left = int(value)
        if hosts != 1:
            raise self._remember(Invalid("Send exactly one Host header."))
        self._is_in_body = True
        self._connection.end_wait()
        super().on_headers_complete()
        if self._other_method:
            self.scope["method"] = self._other_method.decode()

    def on_body(self, body: bytes) -> None:
        if self.cycle.response_complete:
            self._drained += len(body)
            if self._drained > MOST_DRAINED_BYTES:
                self.transport.close()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_body = False
        super().on_message_complete()
        if not self._is_busy():
            self._connection.await_caller()

    def on_response_complete(self) -> None:
        """As in the base class, without its timer: the limits watch over idle connections."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self._refusal is not None and not self.pipeline:
            self._answer(self._refusal)
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        elif self._is_in_body or self._part:
            self._connection.await_head()
        else:
            self._connection.await_caller(READ_SECONDS if self.flow.write_paused else IDLE_SECONDS)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._connection.await_caller(READ_SECONDS)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._is_busy():
            self._connection.end_wait()
        else:
            self._connection.await_caller()

    def _is_busy(self) -> bool:
        """Whether a response is under way."""
        return self.cycle is not None and not self.cycle.response_complete

    def _remember(self, refusal: ApiError) -> ApiError:
        self._refusal = refusal
        return refusal

    def _refuse(self, refusal: ApiError) -> None:
        """After the responses to the requests before it. A request whose body is broken gets no other response."""
        self._refusal = refusal
        if not self._is_busy() or (self._is_in_body and not self.pipeline and not self.cycle.response_started):
            self._answer(refusal)
        elif self._is_in_body:
            self.transport.close()

    def _answer(self, refusal: ApiError) -> None:
        body = refusal.encode()
        self.transport.write(
            STATUS_LINE[refusal.status]
            + b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
            + body
        )
        self.transport.close()
