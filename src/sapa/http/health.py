"""Health and metrics."""

import os
from collections.abc import Awaitable, Callable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client import REGISTRY as PROCESS_REGISTRY
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.db.migrations import find_mismatch, is_writable
from sapa.db.pool import Database
from sapa.http.errors import ServiceUnavailable


def health_routes(database: Database, collect_metrics: Callable[[Database], Awaitable[bytes]]) -> list[Route]:
    """`collect_metrics` adds what is read from the database on each request."""

    async def healthz(_: Request) -> Response:
        """This process runs."""
        return Response(b'{"status":"ok"}', media_type="application/json")

    async def readyz(_: Request) -> Response:
        """The database answers and this version runs on its schema."""
        async with database.connection() as db:
            mismatch = await find_mismatch(db)
            writable = await is_writable(db)
        if not writable:
            raise ServiceUnavailable("The database is read-only. Connect to its primary.")
        if mismatch:
            raise ServiceUnavailable(mismatch)
        return Response(b'{"status":"ready"}', media_type="application/json")

    async def metrics(_: Request) -> Response:
        return Response(_process_metrics() + await collect_metrics(database), media_type=CONTENT_TYPE_LATEST)

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]


def _process_metrics() -> bytes:
    """Summed over all processes that share a folder, or this process's own."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(PROCESS_REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
