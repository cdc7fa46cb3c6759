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
    to_app: asyncio.Queue[Message] = asyncio.Queue()
    from_app: asyncio.Queue[Message] = asyncio.Queue()
    scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": state}
    running = asyncio.ensure_future(app(scope, to_app.get, from_app.put))
    await _send_event(running, to_app, from_app, "startup")
    try:
        yield state
    finally:
        await _send_event(running, to_app, from_app, "shutdown")
        await running


async def _send_event(
    running: asyncio.Future[None], to_app: asyncio.Queue[Message], from_app: asyncio.Queue[Message], step: str
) -> None:
    await to_app.put({"type": f"lifespan.{step}"})
    response = asyncio.create_task(from_app.get())
    either: set[asyncio.Future[Any]] = {running, response}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not response.done():
        response.cancel()
        await running  # raises what ended it
        raise AppDidNotStart(f"the application ended at {step}")
    if response.result()["type"] != f"lifespan.{step}.complete":
        raise AppDidNotStart(response.result().get("message", ""))
