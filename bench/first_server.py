"""Serves an app of the first version, whose HTTP server is no longer installed. It does less than any real one."""

import asyncio
from asyncio import Task
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httptools


class Connection(asyncio.Protocol):
    """One request after the other, each answered before the next is sent."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.tasks: set[Task[None]] = set()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.url, self.headers, self.body = b"", list[tuple[bytes, bytes]](), b""

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        path, query = self.url.partition(b"?")[::2]
        scope = {
            "type": "http", "http_version": "1.1", "method": self.parser.get_method().decode(), "scheme": "http",
            "path": path.decode(), "raw_path": path, "query_string": query, "root_path": "", "state": {},
            "headers": self.headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 1),
        }  # fmt: skip
        task = asyncio.create_task(self.app(scope, self.receive, self.send))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def receive(self) -> dict[str, Any]:
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            lines = [b"%s: %s\r\n" % header for header in message["headers"]]
            self.transport.write(b"HTTP/1.1 %d OK\r\n%s\r\n" % (message["status"], b"".join(lines)))
        else:
            self.transport.write(message["body"])


@asynccontextmanager
async def serve(app: Any) -> AsyncIterator[str]:
    """Yields its address."""
    await app.start()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(app), "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    await app.stop()
