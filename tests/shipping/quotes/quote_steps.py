"""Quote requests, and a carrier that responds as a test decides."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
from aiohttp import web

from sapa.db.pool import Database
from sapa.settings import read_settings
from sapa.shipping.connections import actions as connections
from sapa.startup import build_context
from sapa.values.company import Company
from tests.conftest import Installation

MENTENG = {"districtId": 317106, "subDistrictId": 3171061001}
DAGO = {"districtId": 327302, "subDistrictId": 3273021001}
MONAS = {"coordinates": {"lat": -6.1754, "lng": 106.8272}}
SENAYAN = {"coordinates": {"lat": -6.2253, "lng": 106.8097}}

Behaviour = Callable[[web.Request], Any]


def build_question(provider: str, **fields: Any) -> dict[str, Any]:
    """A parcel that the provider accepts."""
    ends = (
        {"origin": MENTENG, "destination": DAGO}
        if provider in {"aggregator_carrier", "custom", "parcel_carrier"}
        else {"origin": MONAS, "destination": SENAYAN}
    )
    options = {"options": {"pickupCity": "Kota Jakarta Pusat"}} if provider == "ev_courier" else {}
    return {"provider": provider, **ends, **options, "package": {"weight": 1.2}, **fields}


async def ask(client: httpx.AsyncClient, provider: str = "aggregator_carrier", **fields: Any) -> httpx.Response:
    return await client.post("/shipping/calculate-fee", json=build_question(provider, **fields))


async def list_options(
    client: httpx.AsyncClient, provider: str = "aggregator_carrier", **fields: Any
) -> list[dict[str, Any]]:
    response = await ask(client, provider, **fields)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["data"]["options"]
    assert found, response.text
    return found


def field_of(response: httpx.Response) -> str:
    assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR"), response.text
    return str(response.json()["error"]["details"][0]["field"])


class Peer:
    """A carrier's server. It records requests; the test decides the responses."""

    def __init__(self) -> None:
        self.address = ""
        self.asked: list[tuple[str, Any]] = []
        self.behave: Behaviour = self.reply({"status": True})

    def reply(self, body: Any, status: int = 200) -> Behaviour:
        async def behave(request: web.Request) -> web.Response:
            text = body if isinstance(body, str) else msgspec.json.encode(body).decode()
            return web.Response(status=status, text=text)

        return behave

    async def hang(self, request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    async def receive(self, request: web.Request) -> web.Response:
        raw = await request.read()
        self.asked.append((request.path, msgspec.json.decode(raw) if raw else None))
        response: web.Response = await self.behave(request)
        return response


@asynccontextmanager
async def open_peer(peer: Peer | None = None) -> AsyncIterator[Peer]:
    peer = peer or Peer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", peer.receive)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        peer.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield peer
    finally:
        await runner.cleanup()


async def connect_live(
    installation: Installation,
    database: Database,
    company_id: int,
    provider: str,
    adapter: str | None = None,
    **credentials: str,
) -> str:
    """Connects a live company without verifying the account; returns the callback address."""
    settings = msgspec.structs.replace(read_settings({}), secret_key=installation.server.secret_key)
    context = build_context(settings, database)
    company = Company(company_id, "live", "ID", "IDR")
    created = await connections.connect(context, company, provider, adapter, credentials, verify=False)
    await context.close()
    return created.callback_url
