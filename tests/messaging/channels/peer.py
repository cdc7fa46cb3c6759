"""A channel's API as a real local server: it records requests, and responds as the test says."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from msgspec import Struct


class RecordedRequest(Struct, frozen=True):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Peer:
    """Responds in turn; the last response stays: a status, a body, and headers if there are any. None drops the
    connection, a number waits that many seconds."""

    def __init__(self) -> None:
        self.address = ""
        self.requests: list[RecordedRequest] = []
        self.answers: list[tuple[int, Any] | tuple[int, Any, dict[str, str]] | float | None] = [(200, {})]
        self.hurried = asyncio.Event()
        self.opens = asyncio.Event()
        """No response is sent until it is set; set unless a test clears it."""
        self.opens.set()

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(
            RecordedRequest(request.method, request.path, dict(request.query), headers, await request.read())
        )
        await self.opens.wait()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, float):
            await asyncio.wait([asyncio.create_task(self.hurried.wait())], timeout=answer)
            answer = (200, {})
        if answer is None:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        status, body, *own_headers = answer
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=raw, headers=own_headers[0] if own_headers else None)


@asynccontextmanager
async def open_peer() -> AsyncIterator[Peer]:
    peer = Peer()
    runner = web.ServerRunner(web.Server(peer.serve), handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    peer.address = f"http://{host}:{port}"
    try:
        yield peer
    finally:
        peer.hurried.set()
        peer.opens.set()
        await runner.cleanup()
