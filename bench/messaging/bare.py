"""The yardstick of sends: the least Python that takes a message over HTTP and hands it to a provider over HTTP.

Like Sapa's sandbox the provider is played by the same process, on a loopback address. Nothing is checked, stored,
limited or logged.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import aiohttp
import msgspec
from aiohttp import web

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

JSON = [(b"content-type", b"application/json")]


async def play_provider(request: web.Request) -> web.Response:
    asked = msgspec.json.decode(await request.read())
    taken = {"contacts": [{"wa_id": asked["to"]}], "messages": [{"id": f"wamid.{uuid4().hex}"}]}
    return web.Response(body=msgspec.json.encode(taken), content_type="application/json")


class Provider:
    """Made at the first message, inside the event loop."""

    def __init__(self) -> None:
        self._address: str | None = None
        self._session: aiohttp.ClientSession | None = None

    async def send(self, to: str, text: str) -> str:
        if self._session is None or self._address is None:
            await self._start()
        assert self._session is not None
        body = {"messaging_product": "whatsapp", "to": to, "type": "text", "text": {"body": text}}
        url = f"{self._address}/v25.0/1/messages"
        async with self._session.post(url, data=msgspec.json.encode(body)) as answer:
            return str(msgspec.json.decode(await answer.read())["messages"][0]["id"])

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_post("/v25.0/1/messages", play_provider)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self._address = f"http://127.0.0.1:{runner.addresses[0][1]}"


provider = Provider()


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    answer = b"{}" if scope["method"] == "GET" else await deliver(body)
    await send({"type": "http.response.start", "status": 200, "headers": JSON})
    await send({"type": "http.response.body", "body": answer})


async def deliver(body: bytes) -> bytes:
    asked = msgspec.json.decode(body)
    id = await provider.send(asked["to"], asked["message"])
    sent = {"ack": 1, "messageId": id, "messageId2": str(uuid4()), "timestamp": int(time.time())}
    return msgspec.json.encode({"data": sent})
