"""A shop's site with the web chat, and the secrets of its server."""

import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any
from uuid import uuid4

import httpx
from aiohttp import web
from msgspec import Struct

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.sandbox.channels.accounts import build_credentials, build_hook_token
from sapa.settings import read_settings
from sapa.startup import build_context
from tests.conftest import Installation

PAGE = """<!doctype html>
<html lang="{lang}">
<head><title>Toko Kopi</title><meta name="viewport" content="width=device-width"></head>
<body>
<h1>Toko Kopi Gayo</h1>
<p>Kopi segar dari dataran tinggi Gayo, disangrai setiap pagi.</p>
<a href="#beans">Biji kopi</a>
<script src="{server}/widget/v1/widget.js" data-key="{key}" async></script>
</body>
</html>"""

# A page that permits only what the chat requires.
POLICY = (
    "default-src 'none'; script-src {server}; connect-src {server}; img-src https://images.example {server} blob:; "
    "base-uri 'none'"
)


class Chat(Struct, frozen=True):
    """The chat of a test environment."""

    server: str
    key: str
    secret: str

    def prove(self, *words: str) -> str:
        """The hash that the shop's server computes."""
        return hmac.new(self.secret.encode(), "\n".join(words).encode(), sha256).hexdigest()


def build_chat(installation: Installation, database: Database, company_id: int) -> Chat:
    context = build_test_context(installation, database)
    fields = tuple(CHANNELS[Source.WIDGET].fields)
    return Chat(
        installation.address,
        build_hook_token(context, company_id, Source.WIDGET),
        build_credentials(context, company_id, Source.WIDGET, fields)["secret"],
    )


def build_test_context(installation: Installation, database: Database) -> AppContext:
    return build_context(read_settings({"SAPA_SECRET_KEY": installation.server.secret_key}), database)


@asynccontextmanager
async def open_site(chat: Chat) -> AsyncIterator[str]:
    """The address of the shop's page; `?lang=en` shows it in English."""

    async def show(request: web.Request) -> web.Response:
        page = PAGE.format(lang=request.query.get("lang", "id"), server=chat.server, key=chat.key)
        headers = {"content-security-policy": POLICY.format(server=chat.server)}
        return web.Response(text=page, content_type="text/html", headers=headers)

    app = web.Application()
    app.router.add_get("/", show)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}/"
    finally:
        await runner.cleanup()


class Browser:
    """The requests of a page, without a browser."""

    def __init__(self, client: httpx.AsyncClient, chat: Chat) -> None:
        self._client = client
        self.key = chat.key
        self.token: str | None = None
        self.origin = "https://shop.example"

    async def call(self, method: str, path: str, json: Any = None, **options: Any) -> httpx.Response:
        headers = {"x-widget-key": self.key, "origin": self.origin} | options.pop("headers", {})
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        return await self._client.request(method, f"/widget/v1/{path}", headers=headers, json=json, **options)

    async def join(self, **visitor: Any) -> dict[str, Any]:
        """Creates or resumes a session, and keeps the token as a page does."""
        answer = await self.call("POST", "sessions", {"visitor": visitor} if visitor else {})
        assert answer.status_code == 200, answer.text
        session: dict[str, Any] = answer.json()["data"]
        self.token = session["token"] or self.token
        return session

    async def send(self, text: str, id: str | None = None, **fields: Any) -> httpx.Response:
        return await self.call("POST", "messages", {"id": id or new_id(), "text": text, **fields})


def new_id() -> str:
    return f"p_{uuid4().hex}"
