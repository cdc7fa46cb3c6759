"""The ASGI app: the API's edge for both bases, plain pages for everything else."""

import asyncio
from collections.abc import Sequence

import asyncpg
import structlog
from starlette.types import ASGIApp

from sapa.access import actions as access
from sapa.context import build_kit
from sapa.db.pool import AWAY, Database
from sapa.domains import HOOKS, PAGES, ROUTES, SIMULATORS, install
from sapa.http.allow_list import AllowList
from sapa.http.cors import Cors
from sapa.http.edge import Edge
from sapa.http.endpoints import Base, Routes
from sapa.http.exchange import Receive, Scope, Send
from sapa.http.keys import KeyRing
from sapa.logs import configure_logs
from sapa.pages import build_pages
from sapa.settings import Settings, read_settings
from sapa.webhooks.listen import Listeners

USE_SECONDS = 2.0

log = structlog.get_logger()


class App:
    """One API process."""

    def __init__(self, settings: Settings, database: Database, domains: Sequence[Routes]) -> None:
        self.database = database
        self.kit = build_kit(settings, database, [*HOOKS, *SIMULATORS])
        self.keys = KeyRing(database, access.load_key)
        server = settings.server
        self.edge = Edge(domains, self.kit, self.keys, AllowList(server.trusted_proxies), Cors(server.cors_origins))
        self.listeners = Listeners(database, server.address)
        self.pages: ASGIApp = build_pages(self.kit, domains, self.listeners, HOOKS, PAGES)
        self._api = tuple(f"{base}/" for base in Base)
        self._documents = {f"{base}/{name}" for base in Base for name in ("openapi.json", "docs")}
        self._recorder: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["path"].startswith(self._api) and scope["path"] not in self._documents:
            await self.edge(scope, receive, send)
        else:
            await self.pages(scope, receive, send)  # type: ignore[arg-type]

    async def start(self) -> None:
        """Needs no database yet: a process may start while PostgreSQL is away."""
        self.keys.start()
        self._recorder = asyncio.create_task(self._record_uses(), name="key uses")

    def end_streams(self) -> None:
        """Answers that go on for as long as somebody listens end; whoever listens comes back, to another process."""
        self.listeners.stop()
        self.kit.closing.set()

    async def stop(self) -> None:
        self.end_streams()
        if self._recorder is not None:
            self._recorder.cancel()
            await asyncio.gather(self._recorder, return_exceptions=True)
        await self._record_use()
        await self.keys.stop()
        await self.kit.close()
        await self.database.close()
        self.edge.journal.flush()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await self.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _record_uses(self) -> None:
        while True:
            await asyncio.sleep(USE_SECONDS)
            await self._record_use()

    async def _record_use(self) -> None:
        """When and from where each key was last used: told to the database now and then, not at every call."""
        uses, self.keys.uses = self.keys.uses, {}
        if not uses:
            return
        try:
            async with self.database.connection() as db:
                await access.record_use(db, uses)
        except (*AWAY, asyncpg.PostgresError) as error:
            log.warning("last uses of keys were not recorded", reason=str(error))


def build_app(settings: Settings, database: Database, domains: Sequence[Routes] = ROUTES) -> App:
    install()
    return App(settings, database, domains)


def create_app() -> App:
    """The app of a server process, from its environment."""
    settings = read_settings()
    configure_logs(settings.log_level)
    if settings.database.url is None:
        raise RuntimeError("sapa api needs SAPA_DATABASE_URL; `sapa serve` starts the embedded database and sets it.")
    database = Database(settings.database.url, settings.database.pool_size, "sapa api")
    return build_app(settings, database)
