"""A live company whose WhatsApp API is a local server of the test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from msgspec import Struct

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.domains import ROUTES
from sapa.settings import read_settings
from sapa.startup import build_context
from tests.conftest import Installation
from tests.factories import make_key
from tests.http.probe import open_app
from tests.http.response_check import check_answer
from tests.messaging.channels.peer import Peer, open_peer
from tests.messaging.whatsapp_account import WhatsAppHook, connect_whatsapp

NUMBER_SENT = {"messages": [{"id": "wamid.1"}], "contacts": [{"input": "x", "wa_id": "628123456789"}]}
"""The response for an accepted message."""


class Live(Struct, frozen=True):
    client: httpx.AsyncClient
    """The messaging API, served in this process on the installation's database."""
    peer: Peer
    hook: WhatsAppHook
    context: AppContext

    async def post(self, path: str, **body: Any) -> httpx.Response:
        return await self.client.post(f"http://probe/messaging/v1{path}", json=body)

    async def get(self, path: str) -> Any:
        return (await self.client.get(f"http://probe/messaging/v1{path}")).json()["data"]


@asynccontextmanager
async def open_live(
    installation: Installation,
    database: Database,
    company_id: int,
    address: str | None = None,
    hook: WhatsAppHook | None = None,
    database_url: str | None = None,
) -> AsyncIterator[Live]:
    """The channel is at the peer's address unless `address` is set, and is connected unless `hook` is. `database_url`
    may lead to the database by way of a proxy."""
    key = await make_key(database, company_id)
    hook = hook or connect_whatsapp(installation, company_id)
    async with open_peer() as peer:
        variables = {
            "SAPA_SECRET_KEY": installation.server.secret_key,
            "SAPA_UPSTREAM_MSGAPP_CLOUD": address or peer.address,
        }
        context = build_context(read_settings(variables), database)
        if database_url is not None:
            variables["SAPA_DATABASE_URL"] = database_url
        async with open_app(installation, ROUTES, **variables) as client:
            client.headers["x-api-key"] = key.raw
            client.event_hooks = {"response": [check_answer]}
            yield Live(client, peer, hook, context)
        await context.close()
