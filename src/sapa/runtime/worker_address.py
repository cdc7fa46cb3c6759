"""Where a worker says that it is well, and what it has done."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from msgspec.structs import replace
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sapa.db.pool import Database
from sapa.http.health import health_routes
from sapa.http.metrics_page import PATH, MetricsPage, find_refusal
from sapa.http.site import build_site
from sapa.runtime.http_server import HttpServer, open_listener
from sapa.runtime.processes import check_port
from sapa.settings import Settings

MAX_CONNECTIONS = 32
SETTING = "SAPA_WORKER_LISTEN"

log = structlog.get_logger()


@asynccontextmanager
async def open_address(settings: Settings, database: Database) -> AsyncIterator[None]:
    """Serves for the length of a block, from the worker's own loop: a loop that hangs does not answer."""
    if settings.worker.listen is None:
        yield
        return
    host, port = settings.worker.listen
    address = await check_port(host, port, SETTING)
    limited = replace(
        settings.server,
        processes=1,
        connections=MAX_CONNECTIONS,
        connections_per_address=MAX_CONNECTIONS,
        tls_cert=None,
        tls_key=None,
        drain_seconds=0,
    )
    at_once = asyncio.Event()
    at_once.set()
    server = HttpServer(limited, _build_app(database, settings.metrics.token))
    async with server.open([open_listener(address, port)], at_once):
        log.info("serving health and metrics", address=f"http://{host}:{port}")
        yield


def _build_app(database: Database, token: str | None) -> ASGIApp:
    page = MetricsPage(_collect_nothing)

    async def serve(request: Request) -> Response:
        return find_refusal(request, token) or Response(await page.read(), media_type=CONTENT_TYPE_LATEST)

    return build_site([*health_routes(database), Route(PATH, serve)])


async def _collect_nothing() -> bytes:
    """What is read from the database is in the API's metrics, once for the installation."""
    return b""
