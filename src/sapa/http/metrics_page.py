"""The text of /metrics, for its own address and, with a token, for the API's."""

import asyncio
import hmac
import math
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client import REGISTRY as PROCESS_REGISTRY
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sapa.http.errors import NotFound

PATH = "/metrics"
CACHE_SECONDS = 2.0
PAUSE_SECONDS = 0.05
"""Before each answer, one after the other: however many clients ask, they get twenty answers a second."""


class MetricsPage:
    """Rendered in a thread and kept for two seconds. `collect` adds what is read from the database."""

    def __init__(self, collect: Callable[[], Awaitable[bytes]]) -> None:
        self._collect = collect
        self._turn = asyncio.Lock()
        self._text = b""
        self._rendered_at = -math.inf

    async def read(self) -> bytes:
        async with self._turn:
            await asyncio.sleep(PAUSE_SECONDS)
            if time.monotonic() - self._rendered_at >= CACHE_SECONDS:
                self._text = await asyncio.to_thread(_render_process_metrics) + await self._collect()
                self._rendered_at = time.monotonic()
            return self._text


def metrics_routes(page: MetricsPage, token: str | None) -> list[Route]:
    """On the API's address there is no such page unless the operator has set a token."""
    if token is None:
        return []

    async def serve(request: Request) -> Response:
        if not is_bearer(request.headers.get("authorization", ""), token):
            raise NotFound
        return Response(await page.read(), media_type=CONTENT_TYPE_LATEST)

    return [Route(PATH, serve)]


def find_refusal(request: Request, token: str | None, headers: Mapping[str, str] = {}) -> Response | None:
    """For an address of its own; None when the caller may read the page."""
    if token is None or is_bearer(request.headers.get("authorization", ""), token):
        return None
    advice = "Send SAPA_METRICS_TOKEN as a bearer token.\n"
    return PlainTextResponse(advice, 401, {**headers, "www-authenticate": "Bearer"})


def is_bearer(authorization: str, token: str) -> bool:
    scheme, _, secret = authorization.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(secret.strip().encode(), token.encode())


def _render_process_metrics() -> bytes:
    """Summed over all processes that share a folder, or this process's own."""
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if folder is None:
        return generate_latest(PROCESS_REGISTRY)
    _remove_gauges_of_dead(Path(folder))
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def _remove_gauges_of_dead(folder: Path) -> None:
    """What a process has now ends with it; what it counted stays."""
    for file in folder.glob("gauge_live*_*.db"):
        pid = int(file.stem.rpartition("_")[2])
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            file.unlink(missing_ok=True)
