"""The yardstick of sends: the least Python that takes a message over HTTP and hands it to a provider over HTTP.

Nothing is checked, stored, limited or logged.
"""

import os
import time
from typing import Any
from uuid import uuid4

import aiohttp
import msgspec

from bench.ceiling.app import Receive, Send, answer

PROVIDER = "SAPA_UPSTREAM_MSGAPP_CLOUD"
"""Sapa's setting of the provider's address, and the bare process's."""


class BareSends:
    """`POST` sends; everything else is answered at once."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._live(receive, send)
        if scope["method"] != "POST":
            return await answer(send, 200, b"{}")
        message = msgspec.json.decode((await receive())["body"])
        id = await self._pass_on(message["to"], message["message"])
        sent = {"ack": 1, "messageId": id, "messageId2": str(uuid4()), "timestamp": int(time.time())}
        return await answer(send, 200, msgspec.json.encode({"data": sent}))

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._url = f"{os.environ[PROVIDER]}/1/messages"
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as self._session:
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _pass_on(self, to: str, text: str) -> str:
        body = {"messaging_product": "whatsapp", "to": to, "type": "text", "text": {"body": text}}
        async with self._session.post(self._url, data=msgspec.json.encode(body)) as taken:
            return str(msgspec.json.decode(await taken.read())["messages"][0]["id"])


app = BareSends()
