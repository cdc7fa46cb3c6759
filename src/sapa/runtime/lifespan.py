"""Starts and stops an ASGI application with its server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sapa.runtime.request_cycle import App, Message


class AppDidNotStart(Exception):
    """The application refused to start; the message says why."""


@asynccontextmanager
async def run_lifespan(app: App) -> AsyncIterator[dict[str, Any]]:
    """Yields the state that the application has made for its requests."""
    state: dict[str, Any] = {}
    orders: asyncio.Queue[Message] = asyncio.Queue()
    reports: asyncio.Queue[Message] = asyncio.Queue()
    scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": state}
    running = asyncio.ensure_future(app(scope, orders.get, reports.put))
    await _order(running, orders, reports, "startup")
    try:
        yield state
    finally:
        await _order(running, orders, reports, "shutdown")
        await running


async def _order(
    running: asyncio.Future[None], orders: asyncio.Queue[Message], reports: asyncio.Queue[Message], step: str
) -> None:
    await orders.put({"type": f"lifespan.{step}"})
    report = asyncio.create_task(reports.get())
    either: set[asyncio.Future[Any]] = {running, report}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not report.done():
        report.cancel()
        await running  # raises what ended it
        raise AppDidNotStart(f"the application ended at {step}")
    if report.result()["type"] != f"lifespan.{step}.complete":
        raise AppDidNotStart(report.result().get("message", ""))
