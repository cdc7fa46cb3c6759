"""The ASGI app: the API's edge for both bases, what providers call, and plain pages for everything else."""

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial

import asyncpg
import structlog
from starlette.types import ASGIApp

from sapa.access import actions as access
from sapa.access.calls.recorder import CallRecorder
from sapa.console.pages import build_console
from sapa.console.public_pages import build_public_pages
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database
from sapa.domains import HOOKS, PAGES, ROUTES, build_process_context
from sapa.http.allow_list import AllowList
from sapa.http.cors import Cors
from sapa.http.documentation import documentation_routes
from sapa.http.documents import Documents
from sapa.http.edge import Edge
from sapa.http.endpoints import Base, Routes
from sapa.http.exchange import Receive, Scope, Send
from sapa.http.health import health_routes
from sapa.http.hook_calls import HookCalls
from sapa.http.keys import KeyRing
from sapa.http.metrics import POOL_CONNECTIONS, POOL_IDLE
from sapa.http.metrics_page import MetricsPage, metrics_routes
from sapa.http.site import build_site
from sapa.logs import STANDARD_OUTPUT, configure_logs
from sapa.mcp import server as mcp
from sapa.settings import Settings, read_settings
from sapa.webhooks.listen.pages import listen_route
from sapa.webhooks.listen.streams import Listeners
from sapa.wiring import install
from sapa.work.ages import collect_queue_ages
from sapa.work.loops import keep_running

USE_SECONDS = 2.0

log = structlog.get_logger()


class App:
    """One API process."""

    def __init__(self, settings: Settings, database: Database, domains: Sequence[Routes]) -> None:
        self.database = database
        self.context = build_process_context(settings, database)
        self.keys = KeyRing(database, access.load_key)
        server = settings.server
        cors = Cors(server.cors_origins)
        self.edge = Edge(domains, self.context, self.keys, AllowList(server.trusted_proxies), cors)
        self.call_recorder = CallRecorder(database)
        self.edge.access_log.record = self.call_recorder.add
        self._mcp = mcp.McpServer(domains, self.edge, self.context, cors) if server.serves_mcp else None
        self.listeners = Listeners(database, server.address)
        documents = [Documents(base, server.address, domains) for base in Base]
        self._hook_calls = HookCalls(self.context, HOOKS)
        self.site = self._build_site(domains, documents)
        self._api = tuple(f"{base}/" for base in Base)
        self._documents = {path for document in documents for path in document.paths}
        self._use_recorder: asyncio.Task[None] | None = None

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Routes the request. Returns the awaitable itself, so that this method adds no stack frame."""
        if scope["type"] == "lifespan":
            return self._run_lifespan(receive, send)
        if scope["path"].startswith(self._api) and scope["path"] not in self._documents:
            return self.edge(scope, receive, send)
        if scope["path"].startswith(self._hook_calls.prefixes):
            return self._hook_calls(scope, receive, send)
        if scope["path"] == mcp.PATH and self._mcp is not None:
            return self._mcp(scope, receive, send)
        return self.site(scope, receive, send)  # type: ignore[arg-type]

    def _build_site(self, domains: Sequence[Routes], documents: Sequence[Documents]) -> ASGIApp:
        metrics = MetricsPage(partial(collect_queue_ages, self.database))
        return build_site(
            [
                *build_console(self.context, domains),
                *health_routes(self.database),
                *metrics_routes(metrics, self.context.settings.metrics.token),
                *(route for document in documents for route in document.routes()),
                *documentation_routes(domains),
                *(route for build in PAGES for route in build(self.context)),
                listen_route(self.listeners),
                *build_public_pages(self.context),
            ]
        )

    async def start(self) -> None:
        """Needs no database: a process may start while PostgreSQL is away."""
        self.keys.start()
        self.edge.response_cache.start()
        self._use_recorder = asyncio.create_task(self._record_uses(), name="key uses")

    def end_streams(self) -> None:
        """Ends the streaming responses; their clients reconnect to another process."""
        self.listeners.stop()
        self.context.closing.set()

    async def stop(self) -> None:
        self.end_streams()
        if self._use_recorder is not None:
            await self._use_recorder
        await self._record_use()
        self.keys.stop()
        self.edge.response_cache.stop()
        await self.context.close()
        self.edge.access_log.flush()
        await self.call_recorder.close()
        await self.database.close()
        await asyncio.to_thread(STANDARD_OUTPUT.flush)

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await self.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _record_uses(self) -> None:
        await keep_running("key uses", self._record_use, self.context.closing, every=USE_SECONDS, pause=USE_SECONDS)

    async def _record_use(self) -> None:
        """When and from where each key was last used, and the pool's size: every few seconds, not at every call."""
        POOL_CONNECTIONS.set(self.database.open_count)
        POOL_IDLE.set(self.database.idle)
        uses, self.keys.uses = self.keys.uses, {}
        if not uses:
            return
        try:
            async with self.database.connection() as db:
                await access.record_use(db, uses)
        except (DatabaseAway, asyncpg.PostgresError) as error:
            log.warning("key uses not recorded", reason=str(error))


def build_app(settings: Settings, database: Database, domains: Sequence[Routes] = ROUTES) -> App:
    install()
    return App(settings, database, domains)


def prepare() -> None:
    """Call it before processes are forked: they share what it builds."""
    for routes in ROUTES:
        for endpoint in routes.endpoints:
            endpoint.prepare()


def create_app() -> App:
    """The app of a server process, from its environment."""
    settings = read_settings()
    configure_logs(settings.log_level)
    if settings.database.url is None:
        raise RuntimeError("sapa api needs SAPA_DATABASE_URL; `sapa serve` starts the embedded database and sets it.")
    database = Database(settings.database.url, settings.database.pool_size, "sapa api", settings.database.wait_seconds)
    return build_app(settings, database)
