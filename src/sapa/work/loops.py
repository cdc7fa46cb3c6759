"""Loops that run until the process stops."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import structlog

from sapa.db.connection import DatabaseAway
from sapa.db.pool import RETRYABLE, Database
from sapa.db.wakeups import DueQueue, Wakeup

Key = TypeVar("Key")
Step = Callable[[], Awaitable[object]]
"""One pass of a loop. It returns True when there is more to do at once."""

log = structlog.get_logger()


async def wait(seconds: float, *events: asyncio.Event) -> None:
    """Returns when one of the events is set, or after `seconds`."""
    if any(event.is_set() for event in events):
        return
    if len(events) == 1:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await events[0].wait()
        return
    tasks = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, timeout=max(0.0, seconds), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def wait_for_due(wakeup: Wakeup, running: dict[Key, asyncio.Task[None]], stopping: asyncio.Event) -> None:
    """Returns when work may be due, when a task is done, removing it and raising its error, or when `stopping` is
    set."""
    await wakeup.wait(stopping, running.values())
    for key, task in list(running.items()):
        if task.done():
            del running[key]
            task.result()


async def repeat(step: Step, stopping: asyncio.Event, *, every: float = 0.0) -> None:
    """Runs steps until `stopping` is set, `every` seconds apart. An error of a step ends the loop."""
    while not stopping.is_set():
        if await step() is not True and every:
            await wait(every, stopping)


async def repeat_when_due(
    database: Database,
    queue: DueQueue,
    step: Step,
    stopping: asyncio.Event,
    *,
    pause: float,
    most: float | None = None,
) -> None:
    """Runs steps until `stopping` is set, whenever work of the queue may be due; `pause` seconds apart while rows are
    due that a step leaves alone, and `most` seconds apart in any case. An error of a step ends the loop."""
    with database.wakeups.open(queue, pause) as wakeup:
        while not stopping.is_set():
            wakeup.begin()
            if await step() is not True:
                await wakeup.wait(stopping, most=most)
                await wakeup.gather()


async def keep_running(name: str, step: Step, stopping: asyncio.Event, *, pause: float, every: float = 0.0) -> None:
    """The same for a loop that must not end: a step that fails is logged and run again after a pause."""

    async def run_step() -> object:
        try:
            return await step()
        except (DatabaseAway, *RETRYABLE) as error:
            log.warning("loop waits for the database", loop=name, reason=f"{type(error).__name__}: {error}")
        except Exception:
            log.exception("loop failed", loop=name)
        await wait(pause, stopping)
        return True

    await repeat(run_step, stopping, every=every)
