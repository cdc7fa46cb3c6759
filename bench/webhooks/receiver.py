"""The receiver: answers every POST at once and notes when it came. python -m bench.webhooks.receiver PORT

Deliveries to /hang… are never answered. `GET /count` tells how many came, `GET /arrivals` tells event ids and instants
and forgets them, `GET /drop` closes the connections that hang.
"""

import asyncio
import re
import sys
import time
from typing import cast

import msgspec
import uvloop
from msgspec import Struct

DELIVERED = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
EVENT = b"X-Service-Webhook-Id: "

_find_length = re.compile(rb"content-length: (\d+)", re.IGNORECASE).search


class Book(Struct):
    """What all connections share."""

    count: int = 0
    arrivals: list[tuple[str, float]] = []
    hanging: list[asyncio.Transport] = []


class Receiver(asyncio.Protocol):
    """As little HTTP as will do, so that it is never what is measured."""

    transport: asyncio.Transport

    def __init__(self, book: Book) -> None:
        self._book = book
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (head := self._buffer.find(b"\r\n\r\n")) >= 0:
            length = _find_length(self._buffer, 0, head)
            end = head + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < end:
                return
            request, self._buffer = self._buffer[:head], self._buffer[end:]
            self._answer(request)

    def _answer(self, request: bytes) -> None:
        if request.startswith(b"GET"):
            self._tell(request)
        elif request.startswith(b"POST /hang"):
            self._book.hanging.append(self.transport)
        else:
            start = request.find(EVENT) + len(EVENT)
            self._book.arrivals.append((request[start : start + 30].decode(), time.monotonic()))
            self._book.count += 1
            self.transport.write(DELIVERED)

    def _tell(self, request: bytes) -> None:
        book, told = self._book, b"{}"
        if request.startswith(b"GET /count"):
            told = b"%d" % book.count
        elif request.startswith(b"GET /arrivals"):
            told, book.arrivals = msgspec.json.encode(book.arrivals), []
        elif request.startswith(b"GET /drop"):
            for transport in book.hanging:
                transport.abort()
            book.hanging = []
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(told) + told)


async def serve(port: int) -> None:
    book = Book()
    server = await asyncio.get_running_loop().create_server(lambda: Receiver(book), "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
