"""A carrier's server for tests: sends the replies it was given, and records the requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from sapa.outbound.http_client import HttpClient
from sapa.settings import WebhookSettings
from sapa.shipping.carriers.interface import CarrierAccount
from sapa.values.company import Company

KEPT = ("authorization", "client-id", "pass-key", "x-client-time-zone", "content-type")


class Reply(Struct, frozen=True):
    status: int = 200
    body: Any = None
    headers: dict[str, str] = {}
    text: str | None = None
    breaks_off: bool = False
    after_seconds: float = 0


class Peer:
    def __init__(self) -> None:
        self.address = ""
        self.replies: list[Reply] = []
        self.asked: list[dict[str, Any]] = []

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        content = await request.read()
        self.asked.append(
            {
                "method": request.method,
                "path": request.path,
                "query": dict(request.query),
                "headers": {name: request.headers[name] for name in KEPT if name in request.headers},
                "body": msgspec.json.decode(content) if content else None,
            }
        )
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        await asyncio.sleep(reply.after_seconds)
        if reply.breaks_off and request.transport is not None:
            request.transport.abort()
        body = reply.text.encode() if reply.text is not None else msgspec.json.encode(reply.body)
        return web.Response(status=reply.status, body=body, headers=reply.headers)


@asynccontextmanager
async def open_peer() -> AsyncIterator[Peer]:
    peer = Peer()
    runner = web.ServerRunner(web.Server(peer.serve), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    peer.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield peer
    finally:
        await runner.cleanup()


@asynccontextmanager
async def open_connection(adapter: str, address: str, credentials: dict[str, str]) -> AsyncIterator[CarrierAccount]:
    """A live account with a carrier whose server is the test's."""
    client = HttpClient(WebhookSettings(allow_insecure=False, allowed_networks=()))
    try:
        yield CarrierAccount(Company(1, "live", "ID", "IDR"), "carr_1", adapter, address, credentials, client)
    finally:
        await client.close()
