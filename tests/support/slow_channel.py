"""WhatsApp's API as a real local server that holds some messages until the test releases them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from uuid import uuid4

from aiohttp import web

SLOW = "pelan"
"""A text with this word is held."""


class SlowChannel:
    def __init__(self) -> None:
        self.address = ""
        self.taken: list[str] = []
        self.has_slow = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self._numbers = count(1)
        self._name = uuid4().hex

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        text = json.loads(await request.read())["text"]["body"]
        if SLOW in text:
            self.has_slow.set()
            await self.may_go_on.wait()
        self.taken.append(text)
        answer = {"messages": [{"id": f"wamid.{self._name}.{next(self._numbers)}"}], "contacts": []}
        return web.json_response(answer)


@asynccontextmanager
async def open_slow_channel() -> AsyncIterator[SlowChannel]:
    channel = SlowChannel()
    runner = web.ServerRunner(web.Server(channel.serve), handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    channel.address = f"http://{host}:{port}"
    try:
        yield channel
    finally:
        channel.may_go_on.set()
        await runner.cleanup()
