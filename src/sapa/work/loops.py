"""Loops: what goes on until the process stops."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import structlog

from sapa.db.connection import DatabaseAway
from sapa.db.pool import RETRYABLE

Key = TypeVar("Key")
Step = Callable[[], Awaitable[object]]
"""One turn of a loop. It returns True when there is more to do at once."""

log = structlog.get_logger()


async def rest(seconds: float, *events: asyncio.Event) -> None:
    """Until one of the events happens, but no longer than so many seconds."""
    if any(event.is_set() for event in events):
        return
    if len(events) == 1:
        with suppress(TimeoutError):
            await asyncio.wait_for(events[0].wait(), max(0.0, seconds))
        return
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=max(0.0, seconds), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def rest_beside(running: dict[Key, asyncio.Task[None]], seconds: float, stopping: asyncio.Event) -> None:
    """Until one of the tasks is done, which takes it out and raises what it raised; without any, a plain rest."""
    if running:
        await asyncio.wait(running.values(), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    else:
        await rest(seconds, stopping)
    for key, task in list(running.items()):
        if task.done():
            del running[key]
            task.result()


async def repeat(step: Step, stopping: asyncio.Event, *, every: float = 0.0) -> None:
    """Takes steps until it is time to stop, and rests between them. What a step raises ends the loop."""
    while not stopping.is_set():
        if await step() is not True and every:
            await rest(every, stopping)


async def keep_on(name: str, step: Step, stopping: asyncio.Event, *, pause: float, every: float = 0.0) -> None:
    """The same for what must not end: a step that fails is logged and taken again after a pause."""

    async def take() -> object:
        try:
            return await step()
        except (DatabaseAway, *RETRYABLE) as error:
            log.warning("waiting for the database", loop=name, reason=f"{type(error).__name__}: {error}")
        except Exception:
            log.exception("loop failed", loop=name)
        await rest(pause, stopping)
        return True

    await repeat(take, stopping, every=every)
