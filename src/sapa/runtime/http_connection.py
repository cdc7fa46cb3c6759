"""One HTTP/1.1 connection. httptools parses; what is not strictly HTTP/1.1 is refused before."""

import asyncio
import re
from urllib.parse import unquote

import httptools

from sapa.http.errors import ApiError, Invalid
from sapa.runtime.connection_limits import IDLE_SECONDS, READ_SECONDS, Connection, ConnectionLimits
from sapa.runtime.request_cycle import STATUS_LINES, Headers, RequestCycle, ServedApp

MAX_HEAD_BYTES = 32 * 1024
MAX_UNREAD_BYTES = 64 * 1024
"""What is received of a body, or of later requests, before it is needed."""
# The rest of a body that nobody reads is still received this far, so that the caller gets the response: twice the
# largest upload.
MAX_DRAINED_BYTES = 64 * 1_048_576

KNOWN_METHODS = {b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"}
_is_token = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}").fullmatch

# Where a chunked body without trailers may end and another request begin; the parser knows whether it does.
_find_end_of_chunks = re.compile(rb"0\r\n\r\n(?=[A-Z])").search

# No other protocol is offered. A parser that sees the offer would take the body for the other protocol's bytes.
_remove_upgrade = re.compile(rb"(?i)(?<=\r\n)upgrade[ \t]*:[^\r\n]*\r\n").sub


class HeadersTooLarge(ApiError):
    """The request line and headers are larger than 32 KiB."""

    status = 431
    code = "HEADERS_TOO_LARGE"
    fix = "Send less in the address and the headers. What is large belongs into the body."


class HttpConnection(asyncio.Protocol):
    """Gives the parser one whole head at a time, checked before, then the head's body.

    One request is under way at a time: what follows it waits until its response is complete.
    """

    def __init__(self, served: ServedApp, limits: ConnectionLimits, connection: Connection) -> None:
        self._served = served
        self._limits = limits
        self._connection = connection
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._part = b""
        """What has arrived and is not parsed."""
        self._cycle: RequestCycle | None = None
        """The request under way: until its response is complete and its body has arrived."""
        self._is_in_head = False
        self._is_in_body = False
        self._body_left: int | None = None
        """None for a chunked body, whose end only the parser finds."""
        self._drained = 0
        self._framing = 0
        """Bytes of a chunked body since the last one that was content."""
        self._is_reading = True
        self.is_paused = False
        """The caller has not read what was sent."""
        self._method = b""
        self._url = b""
        self._headers: Headers = []
        self._pending_refusal: ApiError | None = None
        """Of the request that follows the one under way."""

    # What the transport calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._scheme = "https" if transport.get_extra_info("sslcontext") else "http"
        self._server = self._connection.socket.getsockname()[:2]
        self._served.connections.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        self._served.connections.discard(self)
        self._limits.release(self._connection)
        if self._cycle is not None:
            self._cycle.disconnect()

    def eof_received(self) -> None:
        """The caller has gone, unless it only wants to know that its body lacks some."""
        if self._is_in_body and self._cycle is not None and not self._cycle.is_complete:
            self._refuse(Invalid("The body is incomplete. Send the whole body."))

    def data_received(self, data: bytes) -> None:
        self._part = self._part + data if self._part else data
        self._parse()

    def pause_writing(self) -> None:
        self.is_paused = True
        self._connection.await_caller(READ_SECONDS)

    def resume_writing(self) -> None:
        self.is_paused = False
        if self._cycle is None:
            self._connection.await_caller()
        else:
            self._connection.end_wait()
            self._cycle.wake()

    # Reading

    def _parse(self) -> None:
        while self._part and self._pending_refusal is None and not self._transport.is_closing():
            if self._is_in_body:
                self._parse_body()
            elif self._cycle is not None:
                self._set_reading(len(self._part) < MAX_UNREAD_BYTES)
                return
            elif not self._parse_head():
                return
            if self._cycle is not None and self._cycle.is_complete and not self._is_in_body:
                self._end_cycle()

    def _parse_head(self) -> bool:
        """Returns whether the head was complete."""
        data = self._part = self._part.removeprefix(b"\r\n")  # some callers send a line break after a body
        end = data.find(b"\r\n\r\n")
        size = len(data) if end < 0 else end + 4
        if size > MAX_HEAD_BYTES:
            self._refuse(HeadersTooLarge())
        elif data.startswith(b"\r\n"):
            self._refuse(Invalid("The request begins with empty lines. Send at most one."))
        elif data.count(b"\n", 0, size) != data.count(b"\r\n", 0, size):
            self._refuse(Invalid("A line of the request's head ends without CR. End each line with CR LF."))
        elif end < 0:
            if self._connection.has_asked:
                self._connection.await_head()
        else:
            head, self._part = data[:size], data[size:]
            self._is_in_head = True
            self._feed(self._prepare_head(head))
            self._is_in_head = False
            return True
        return False

    def _prepare_head(self, head: bytes) -> bytes:
        """The parser refuses methods that it does not know; the application answers 405 to them."""
        self._method, _, rest = head.partition(b" ")
        if self._method not in KNOWN_METHODS and _is_token(self._method):
            head = b"PATCH " + rest
        # `find`, because `in` looks for a number first: with bytes, it raises and catches an error each time.
        has_upgrade = head.find(b"pgrade") >= 0 or head.find(b"PGRADE") >= 0
        return _remove_upgrade(b"", head) if has_upgrade else head

    def _parse_body(self) -> None:
        """A caller who has the response before its chunked body was read sends the next request right behind it. So the
        parser gets no more than what may be the end."""
        part, start = self._part, 0
        self._part = b""
        while start < len(part) and self._is_in_body and self._pending_refusal is None and self._body_left != 0:
            end = len(part)
            if self._body_left is not None:
                end = min(end, self._body_left)
                self._body_left -= end
            elif (found := _find_end_of_chunks(part, start)) is not None:
                end = found.end()
            self._framing += end - start
            self._feed(part[start:end])
            start = end
            if self._framing > MAX_HEAD_BYTES and self._is_in_body and self._pending_refusal is None:
                self._refuse(HeadersTooLarge("The chunk sizes or trailers of the body are larger than 32 KiB."))
                return
        self._part = part[start:]

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._pending_refusal = self._pending_refusal or Invalid("The request is not valid HTTP/1.1.")
            if self._cycle is None or self._is_in_body:
                self._refuse(self._pending_refusal)

    # What the parser calls

    def on_message_begin(self) -> None:
        if not self._is_in_head:
            self._pending_refusal = Invalid(
                "A request directly follows a body with trailers. Wait for the response first."
            )
            raise self._pending_refusal
        self._headers = []

    def on_url(self, url: bytes) -> None:
        self._url = url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Trailers, which come after a chunked body, are dropped: as headers they would pass the checks of the head."""
        if self._is_in_head:
            self._headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        hosts, expects_continue = 0, False
        self._body_left, self._drained, self._framing = None, 0, 0
        version = self._parser.get_http_version()
        for name, value in self._headers:
            if name == b"host":
                hosts += 1
            elif name == b"content-length":
                self._body_left = int(value)
            elif name == b"transfer-encoding" and (value.lower() != b"chunked" or version == "1.0"):
                self._pending_refusal = Invalid("The only transfer encoding is chunked, and only in HTTP/1.1.")
            elif name == b"expect":
                expects_continue = value.lower() == b"100-continue"
        if version not in {"1.0", "1.1"}:
            self._pending_refusal = Invalid("Use HTTP/1.1.")
        elif hosts != 1:
            self._pending_refusal = Invalid("Send exactly one Host header.")
        if self._pending_refusal is not None:
            raise self._pending_refusal
        self._is_in_body = True
        if not self.is_paused:
            self._connection.end_wait()
        self._start_cycle(version, expects_continue)

    def on_body(self, body: bytes) -> None:
        cycle, self._framing = self._cycle, 0
        if cycle is None or cycle.is_complete:
            self._drained += len(body)
            if self._drained > MAX_DRAINED_BYTES:
                self._transport.close()
        elif cycle.add_body(body) > MAX_UNREAD_BYTES:
            self._set_reading(False)

    def on_message_complete(self) -> None:
        self._is_in_body = False
        if self._cycle is not None:
            self._cycle.end_body()

    # The request under way

    def _start_cycle(self, version: str, expects_continue: bool) -> None:
        path, query = _split_url(self._url)
        scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "method": self._method.decode(),
            "scheme": self._scheme,
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": self._headers,
            "client": self._connection.client,
            "server": self._server,
            "state": self._served.state.copy(),
        }
        keeps_alive = self._parser.should_keep_alive() and not self._served.is_draining
        self._cycle = RequestCycle(self, scope, keeps_alive, expects_continue)
        self._served.start(self._cycle)

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def read_on(self) -> None:
        """The application has taken what there was of the body."""
        self._set_reading(True)

    def complete(self) -> None:
        """The response is complete."""
        if self._transport.is_closing():
            return
        self._set_reading(True)
        if self._is_in_body:
            self._connection.await_head()
            return
        self._end_cycle()
        self._parse()

    def abort(self) -> None:
        """The response cannot be completed."""
        self._transport.abort()

    def _end_cycle(self) -> None:
        cycle, self._cycle = self._cycle, None
        if self._pending_refusal is not None:
            self._refuse(self._pending_refusal)
        elif cycle is None or not cycle.keeps_alive:
            self._transport.close()
        else:
            self._connection.await_caller(READ_SECONDS if self.is_paused else IDLE_SECONDS)

    def drain(self) -> None:
        """The connection ends with the response under way, or with the next one."""
        if self._cycle is not None:
            self._cycle.keeps_alive = False

    def stop(self) -> None:
        """The server stops: the connection ends with the response under way, or now."""
        self.drain()
        if self._cycle is None:
            self._transport.close()

    def _set_reading(self, is_reading: bool) -> None:
        if is_reading == self._is_reading:
            return
        self._is_reading = is_reading
        if is_reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    # Refusals

    def _refuse(self, refusal: ApiError) -> None:
        """A request whose body is broken gets no other response."""
        cycle, self._cycle = self._cycle, None
        if cycle is not None:
            cycle.disconnect()
        if cycle is None or not cycle.is_started:
            body = refusal.encode()
            self._transport.write(
                STATUS_LINES[refusal.status]
                + b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
                + body
            )
        self._transport.close()


_ASGI = {"version": "3.0", "spec_version": "2.3"}


def _split_url(url: bytes) -> tuple[bytes, bytes]:
    """Path and query. Proxies may send a whole URL."""
    if url.startswith(b"/") and url.find(b"#") < 0:
        path, _, query = url.partition(b"?")
        return path, query
    parsed = httptools.parse_url(url)
    return parsed.path or b"/", parsed.query or b""
