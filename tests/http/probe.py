"""A small domain for tests only: endpoints that do on purpose what real ones must not, served in this process."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

import httpx
from msgspec import Struct

from sapa.access.types import Scope
from sapa.app import build_app
from sapa.db.pool import Database
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Unauthorized
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.settings import read_settings
from sapa.values.ids import IdKind
from tests.conftest import Installation

SHIPMENT_ID = IdKind("shp_")
ShipmentId = Annotated[str, SHIPMENT_ID]
CONNECTIONS = 4
ACQUIRE_SECONDS = 5.0
"""More than a busy machine needs to open a connection, less than an idle transaction lives."""
SECRET = "the password is swordfish"


class Thing(Struct, frozen=True):
    """What the probe answers with."""

    name: str


class ThingIn(Struct, frozen=True, forbid_unknown_fields=True):
    """What the probe takes."""

    name: str


class Stage:
    """What a test and the probe's handlers tell each other."""

    def __init__(self) -> None:
        self.tries = 0
        self.entered = asyncio.Event()
        self.go_on = asyncio.Event()
        self.holding: dict[str, asyncio.Event] = {"left": asyncio.Event(), "right": asyncio.Event()}

    async def all_busy(self) -> bool | None:
        return self.tries >= CONNECTIONS or None


def build_shipping() -> Routes:
    """Stands where shipping will: needs a product, and answers UNAUTHORIZED to a key that won't do."""
    routes = Routes("/shipping", base=Base.CUSTOMER, tag="Probe shipping", product="CRM", refusal=Unauthorized)

    @routes.get("/shipments/{id}", scope=Scope.ORDERS_READ)
    async def get_shipment(call: Call, id: ShipmentId) -> Thing:
        """Get one."""
        return Thing(id)

    return routes


def build_probe(stage: Stage) -> Routes:
    routes = Routes("/probe", base=Base.CUSTOMER, tag="Probe")

    @routes.post("/things", scope=Scope.ORDERS_WRITE)
    async def create_thing(call: Call, body: ThingIn) -> Thing:
        """Create one, before the list is declared."""
        return Thing(body.name)

    @routes.get("/things", scope=Scope.ORDERS_READ)
    async def list_things(call: Call, query: PageQuery) -> Page[Thing]:
        """List none."""
        return build_page([], query.page, query.limit, 0)

    @routes.get("/fault", scope=Scope.ORDERS_READ)
    async def fail(call: Call) -> Thing:
        """Fail with words that are nobody's business."""
        raise RuntimeError(SECRET)

    @routes.get("/endless", scope=Scope.ORDERS_READ)
    async def run_endlessly(call: Call) -> Thing:
        """Run a statement for longer than PostgreSQL allows."""
        async with call.db.transaction():
            await call.db.execute("SET LOCAL statement_timeout = '50ms'")
            await call.db.execute("SELECT pg_sleep(30)")
        return Thing("never")

    _declare_writes(routes, stage)
    return routes


def _declare_writes(routes: Routes, stage: Stage) -> None:
    @routes.post("/slow", scope=Scope.ORDERS_WRITE)
    async def wait(call: Call, body: ThingIn) -> Thing:
        """Answer when the test says so."""
        stage.tries += 1
        stage.entered.set()
        await stage.go_on.wait()
        return Thing(body.name)

    @routes.post("/tangle/{side}", scope=Scope.ORDERS_WRITE)
    async def tangle(call: Call, side: str) -> Thing:
        """Take two locks, each side in the other's order: a deadlock, the first time."""
        stage.tries += 1
        mine, other = ("left", "right") if side == "left" else ("right", "left")
        await call.db.execute("SELECT pg_advisory_xact_lock(hashtext($1))", mine)
        stage.holding[mine].set()
        await stage.holding[other].wait()
        await call.db.execute("SELECT pg_advisory_xact_lock(hashtext($1))", other)
        return Thing(side)

    @routes.post("/collide", scope=Scope.ORDERS_WRITE)
    async def collide(call: Call) -> Thing:
        """Collide with another transaction every time."""
        stage.tries += 1
        await call.db.execute("DO $$ BEGIN RAISE EXCEPTION 'collision' USING ERRCODE = '40001'; END $$")
        return Thing("never")


@asynccontextmanager
async def open_app(
    installation: Installation, domains: Sequence[Routes], peer: str = "127.0.0.1", **variables: str
) -> AsyncIterator[httpx.AsyncClient]:
    """The application in this process, on the installation's database; `peer` is who seems to call."""
    url = variables.pop("SAPA_DATABASE_URL", installation.server.app_url)
    database = Database(url, CONNECTIONS, "probe", ACQUIRE_SECONDS)
    app = build_app(read_settings(variables), database, domains)
    await app.start()
    transport = httpx.ASGITransport(app, client=(peer, 40000))  # type: ignore[arg-type]
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://probe/customer/v1", timeout=120) as client:
            yield client
    finally:
        await app.stop()
