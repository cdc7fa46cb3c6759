"""Receivers of every temper, on real sockets."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_network

from msgspec import Struct

from sapa.settings import WebhookSettings
from sapa.webhooks.sender import (
    SendResult,
    Target,
    WebhookMessage,
    WebhookSender,
)
from sapa.webhooks.signing import new_secret

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter

LOCAL = WebhookSettings(allow_insecure=False, allowed_networks=(ip_network("127.0.0.1"),))
INSECURE = WebhookSettings(allow_insecure=True, allowed_networks=())
CLOSED = WebhookSettings(allow_insecure=False, allowed_networks=())

BODY = b'{"id":"cust_1","firstName":"Ayu"}'
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Request(Struct, frozen=True):
    """A request as it came over the wire."""

    line: bytes
    headers: list[tuple[str, str]]
    body: bytes


class Receiver(Struct):
    port: int
    requests: list[Request]
    has_request: asyncio.Event
    connections: int = 0

    def url(self, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}/hook"


Drop = Callable[[Reader, Writer], Awaitable[None]]
Behaviour = Callable[[Receiver, Reader, Writer], Awaitable[None]]


async def read_request(reader: Reader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = [(name, value) for name, _, value in (line.partition(": ") for line in head[1:-2])]
    length = next(int(value) for name, value in headers if name.lower() == "content-length")
    return Request(head[0].encode(), headers, await reader.readexactly(length))


@asynccontextmanager
async def serve(
    behave: Behaviour, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Receiver]:
    """A server that treats every connection as told."""
    tasks: set[asyncio.Task[None]] = set()
    receiver = Receiver(0, [], asyncio.Event())

    async def handle(reader: Reader, writer: Writer) -> None:
        receiver.connections += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await behave(receiver, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(handle, host, 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answering(*responses: bytes) -> Behaviour:
    """Answers one after the other on a connection, the last one for ever."""

    async def behave(receiver: Receiver, reader: Reader, writer: Writer) -> None:
        left = list(responses)
        while True:
            receiver.requests.append(await read_request(reader))
            writer.write(left.pop(0) if len(left) > 1 else left[0])
            await writer.drain()

    return behave


def answering_and(after: Callable[[Reader, Writer], Awaitable[None]], start: bytes = b"") -> Behaviour:
    """Reads the request, writes the start of an answer, and then misbehaves."""

    async def behave(receiver: Receiver, reader: Reader, writer: Writer) -> None:
        receiver.requests.append(await read_request(reader))
        receiver.has_request.set()
        writer.write(start)
        await writer.drain()
        await after(reader, writer)

    return behave


async def hang(reader: Reader, writer: Writer) -> None:
    await asyncio.Event().wait()


async def close(reader: Reader, writer: Writer) -> None:
    return


async def reset(reader: Reader, writer: Writer) -> None:
    opened: socket.socket = writer.get_extra_info("socket")
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def flooding(chunk: bytes) -> Callable[[Reader, Writer], Awaitable[None]]:
    async def flood(reader: Reader, writer: Writer) -> None:
        while True:
            writer.write(chunk)
            await writer.drain()

    return flood


def dripping(text: bytes, seconds: float) -> Callable[[Reader, Writer], Awaitable[None]]:
    async def drip(reader: Reader, writer: Writer) -> None:
        for place in range(len(text)):
            await asyncio.sleep(seconds)
            writer.write(text[place : place + 1])
            await writer.drain()

    return drip


@asynccontextmanager
async def sending(
    settings: WebhookSettings = INSECURE, deadline: float = 10, **names: list[str]
) -> AsyncIterator[WebhookSender]:
    """A sender to whom the given names lead to the given addresses (`shop_example` is shop.example)."""
    existing = {name.replace("_", "."): addresses for name, addresses in names.items()}

    def look_up(host: str) -> list[str]:
        if host not in existing:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return existing[host]

    sender = WebhookSender(settings, deadline=deadline, look_up=look_up)
    try:
        yield sender
    finally:
        await sender.close()


async def send(
    sender: WebhookSender, url: str, body: bytes = BODY, secret: str | None = None, **headers: str
) -> SendResult:
    custom = {name.replace("_", "-"): value for name, value in headers.items()}
    return await sender.send(
        Target(url, custom, [secret or new_secret()]), WebhookMessage("evt_1", "customer.created", body)
    )
