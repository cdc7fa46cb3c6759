"""The HTTP server with small applications; h11 reads its responses."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import h11
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from sapa.http.allow_list import AllowList
from sapa.runtime import connection_limits
from sapa.runtime.connection_limits import ConnectionLimits
from sapa.runtime.http_connection import MAX_UNREAD_BYTES, HttpConnection
from sapa.runtime.http_server import Acceptor
from sapa.runtime.request_cycle import App, ServedApp

SECONDS = 120
LARGE = 8 * MAX_UNREAD_BYTES

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


class Answer(Struct, frozen=True):
    status: int
    headers: dict[bytes, bytes]
    body: bytes


class Sent(Struct, frozen=True):
    """A request; a chunked body is sent in pieces of this size."""

    body: bytes = b""
    chunk: int | None = None
    method: str = "POST"

    def encode(self) -> bytes:
        client = h11.Connection(h11.CLIENT)
        length = [("Transfer-Encoding", "chunked")] if self.chunk else [("Content-Length", str(len(self.body)))]
        request = h11.Request(method=self.method, target="/echo?a=b", headers=[("Host", "x"), *length])
        parts = [client.send(request) or b""]
        size = self.chunk or len(self.body) or 1
        pieces = [self.body[start : start + size] for start in range(0, len(self.body), size)]
        parts += [client.send(h11.Data(data=piece)) or b"" for piece in pieces]
        return b"".join([*parts, client.send(h11.EndOfMessage()) or b""])


async def read_body(receive: Receive) -> bytes:
    body, has_more = b"", True
    while has_more:
        message = await receive()
        assert message["type"] == "http.request"
        body, has_more = body + message["body"], message["more_body"]
    return body


async def respond(send: Send, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})


async def echo(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Half of the responses have a length, the others come in two chunks."""
    body = await read_body(receive)
    if len(body) % 2:
        await respond(send, body, (b"content-length", b"%d" % len(body)))
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body[:7], "more_body": True})
    await send({"type": "http.response.body", "body": body[7:]})


@asynccontextmanager
async def serve(app: App, most: int = 100) -> AsyncIterator[int]:
    served, limits = ServedApp(app), ConnectionLimits(most, most, AllowList([]))
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    port: int = listener.getsockname()[1]
    acceptor = Acceptor(listener, limits, lambda connection: HttpConnection(served, limits, connection), None)
    try:
        yield port
    finally:
        await acceptor.close()
        for connection in list(served.connections):
            connection.abort()


@asynccontextmanager
async def connect(app: App) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with asyncio.timeout(SECONDS), serve(app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()


async def read_answers(reader: asyncio.StreamReader, methods: Sequence[str]) -> list[Answer]:
    """Until all are read, or the connection ends."""
    answers: list[Answer] = []
    left = b""
    for method in methods:
        client = h11.Connection(h11.CLIENT)
        client.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
        client.send(h11.EndOfMessage())
        if left:
            client.receive_data(left)
        status, headers, body = 0, {}, b""
        while not isinstance(event := client.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                client.receive_data(await reader.read(65_536))
            elif isinstance(event, h11.ConnectionClosed):
                return answers
            elif isinstance(event, h11.Response):
                status, headers = event.status_code, dict(event.headers)
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
        answers.append(Answer(status, headers, body))
        left = client.trailing_data[0]
    return answers


@given(
    requests=st.lists(
        st.builds(
            Sent,
            body=st.binary(max_size=300) | st.integers(0, LARGE).map(lambda size: b"x" * size),
            chunk=st.none() | st.integers(40_000, 200_000),
        ),
        min_size=1,
        max_size=4,
    ),
    cuts=st.lists(st.integers(1, 400), max_size=8),
)
async def test_every_request_gets_its_own_body_back_however_the_bytes_arrive(
    requests: list[Sent], cuts: list[int]
) -> None:
    """A request after a chunked one waits for its response; the others follow each other at once."""
    async with connect(echo) as (reader, writer):
        waiting: list[Sent] = []
        for request in requests:
            data = request.encode()
            for cut in cuts:
                writer.write(data[:cut])
                data = data[cut:]
                await asyncio.sleep(0)
            writer.write(data)
            waiting.append(request)
            if request.chunk:
                answers = await read_answers(reader, ["POST"] * len(waiting))
                assert [answer.body for answer in answers] == [each.body for each in waiting]
                waiting = []
        answers = await read_answers(reader, ["POST"] * len(waiting))
        assert [answer.body for answer in answers] == [each.body for each in waiting]


async def test_a_response_to_head_has_no_body() -> None:
    async with connect(echo) as (reader, writer):
        writer.write(Sent(b"abc", method="HEAD").encode() + Sent(b"abcde").encode())
        first, second = await read_answers(reader, ["HEAD", "POST"])
        assert (first.body, first.headers[b"content-length"]) == (b"", b"3")
        assert second.body == b"abcde"
        assert b"date" in second.headers


async def test_a_body_that_ends_too_early_is_refused() -> None:
    async with connect(echo) as (reader, writer):
        writer.write(Sent(b"abc").encode()[:-1])
        writer.write_eof()
        (answer,) = await read_answers(reader, ["POST"])
        assert (answer.status, b"incomplete" in answer.body) == (400, True)


async def test_a_body_that_nobody_reads_does_not_cost_the_next_request() -> None:
    async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["method"] == "PUT":
            await respond(send, b"refused")
        else:
            await echo(scope, receive, send)

    async with connect(app) as (reader, writer):
        writer.write(Sent(b"x" * LARGE, method="PUT").encode() + Sent(b"abc").encode())
        answers = await read_answers(reader, ["PUT", "POST"])
        assert [answer.body for answer in answers] == [b"refused", b"abc"]


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [(b"content-length", b"2", 0), (b"content-length", b"9", 0), (b"x-name", b"a\r\nset-cookie: b", 500)],
)
async def test_a_response_that_would_mislead_is_not_sent(name: bytes, value: bytes, status: int) -> None:
    """A body of another length breaks the connection off; a header with a line break does not leave."""

    async def app(_: Any, receive: Receive, send: Send) -> None:
        await respond(send, b"abc", (name, value))

    async with connect(app) as (reader, writer):
        writer.write(Sent().encode())
        try:
            seen = await reader.read()
        except ConnectionError:
            seen = b""
        assert b"set-cookie" not in seen
        assert seen.startswith(b"HTTP/1.1 500") is (status == 500)
        assert not seen.endswith(b"abc")


async def test_an_application_that_fails_is_answered_with_an_error() -> None:
    async def app(_: Any, receive: Receive, send: Send) -> None:
        raise LookupError("nothing here")

    async with connect(app) as (reader, writer):
        writer.write(Sent().encode())
        (answer,) = await read_answers(reader, ["POST"])
        assert (answer.status, b"INTERNAL_ERROR" in answer.body) == (500, True)


async def test_the_application_learns_that_its_caller_has_gone() -> None:
    has_begun, has_ended = asyncio.Event(), asyncio.Event()
    seen: list[str] = []

    async def app(_: Any, receive: Receive, send: Send) -> None:
        await read_body(receive)
        has_begun.set()
        seen.append((await receive())["type"])
        await respond(send, b"nobody reads this")
        has_ended.set()

    async with connect(app) as (_, writer):
        writer.write(Sent(b"abc").encode())
        await has_begun.wait()
        writer.transport.abort()
        await has_ended.wait()
    assert seen == ["http.disconnect"]


async def test_a_response_waits_for_a_caller_who_reads_slowly() -> None:
    """The application cannot produce more than the connection holds."""
    produced = 0

    async def app(_: Any, receive: Receive, send: Send) -> None:
        nonlocal produced
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _number in range(1000):
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
            produced += 1
        await send({"type": "http.response.body", "body": b""})

    async with connect(app) as (reader, writer):
        writer.write(Sent().encode())
        await reader.readexactly(1)
        before = -1
        while produced != before:
            before = produced
            await asyncio.sleep(0.2)
        assert 0 < produced < 900
        client = 0
        while part := await reader.read(1_048_576):
            client += len(part)
            if part.endswith(b"0\r\n\r\n"):
                break
        assert produced == 1000
        assert client > 1000 * 65_536


async def test_the_responses_of_a_caller_who_does_not_read_wait() -> None:
    """However many requests it has sent: only one response is in memory."""
    produced = 0

    async def app(_: Any, receive: Receive, send: Send) -> None:
        nonlocal produced
        await respond(send, b"x" * 10_000_000)
        produced += 1

    async with connect(app) as (reader, writer):
        writer.write(Sent().encode() * 20)
        await reader.readexactly(1)
        await asyncio.sleep(0.5)
        assert produced == 1
        writer.transport.abort()


async def test_what_arrives_for_later_requests_is_limited() -> None:
    gate = asyncio.Event()

    async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        await gate.wait()
        await echo(scope, receive, send)

    async with connect(app) as (reader, writer):
        writer.write(Sent(b"a").encode())
        count, body = 400, b"x" * 60_000
        writer.write(Sent(body).encode() * count)
        await asyncio.sleep(0.2)
        assert writer.transport.get_write_buffer_size() > 0
        gate.set()
        first, *later = await read_answers(reader, ["POST"] * (count + 1))
        assert first.body == b"a"
        assert [answer.body == body for answer in later] == [True] * count


def connect_and_reset(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def answer_after_resets() -> None:
    async with asyncio.timeout(SECONDS), serve(echo, most=20) as port:
        for _ in range(100):
            connect_and_reset(port)  # gone before it is accepted
            await asyncio.sleep(0)
        await asyncio.sleep(3)
        for _ in range(40):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(Sent(b"hello").encode())
            assert (await read_answers(reader, ["POST"]))[0].body == b"hello"
            writer.close()


def test_callers_who_reset_their_connections_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after the time for a head, when they are closed. With the loop that serves: others report a reset."""
    monkeypatch.setattr(connection_limits, "HEAD_SECONDS", 1.0)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(answer_after_resets())


async def test_trailers_without_end_are_refused() -> None:
    async with connect(echo) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n")
        with suppress(ConnectionError):  # the server closes while we are still sending
            while not reader.at_eof():
                writer.write(b"a: b\r\n" * 1000)
                await writer.drain()
                await asyncio.sleep(0.01)


async def test_a_caller_that_got_no_continue_is_not_read_on() -> None:
    """It may leave out the body, so that what follows is another request."""

    async def refuse(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        await respond(send, b"no", (b"content-length", b"2"))

    async with connect(refuse) as (reader, writer):
        expecting = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
        writer.write(expecting + Sent(b"hello").encode())
        (answer,) = await read_answers(reader, ["POST"])
        assert answer.headers[b"connection"] == b"close"
        assert await reader.read() == b""
