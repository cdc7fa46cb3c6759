"""Loops that run until they are stopped."""

import asyncio

import pytest
from structlog.testing import capture_logs

from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database
from sapa.db.wakeups import DueQueue
from sapa.work.loops import keep_running, repeat, wait, wait_for_due

AGES = 3600.0


class Steps:
    """Returns or raises one outcome per step, and stops the loop after the last."""

    def __init__(self, *outcomes: object) -> None:
        self.stopping = asyncio.Event()
        self.taken = 0
        self._outcomes = outcomes

    async def take(self) -> object:
        outcome = self._outcomes[self.taken]
        self.taken += 1
        if self.taken == len(self._outcomes):
            self.stopping.set()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def test_a_step_with_more_to_do_is_repeated_at_once() -> None:
    steps = Steps(True, True, None)
    async with asyncio.timeout(120):
        await repeat(steps.take, steps.stopping, every=AGES)
    assert steps.taken == 3


async def test_a_pause_ends_when_the_loop_is_to_stop() -> None:
    steps, waiting = Steps(None, None), asyncio.Event()

    async def step() -> None:
        await steps.take()
        waiting.set()

    loop = asyncio.create_task(repeat(step, steps.stopping, every=AGES))
    await waiting.wait()
    assert not loop.done()
    steps.stopping.set()
    await asyncio.wait_for(loop, 120)
    assert steps.taken == 1


async def test_an_error_of_a_step_ends_a_loop() -> None:
    steps = Steps(None, ValueError("broken"), None)
    with pytest.raises(ValueError, match="broken"):
        await repeat(steps.take, steps.stopping)
    assert steps.taken == 2


async def test_a_loop_that_must_not_end_logs_a_failure_and_continues() -> None:
    steps = Steps(None, ValueError("broken"), DatabaseAway("away"), None)
    with capture_logs() as logged:
        await keep_running("chores", steps.take, steps.stopping, pause=0.01)
    assert steps.taken == 4
    assert [(line["event"], line["log_level"], line["loop"]) for line in logged] == [
        ("loop failed", "error", "chores"),
        ("loop waits for the database", "warning", "chores"),
    ]


async def test_any_of_the_events_ends_a_wait() -> None:
    first, second = asyncio.Event(), asyncio.Event()
    waiting = asyncio.create_task(wait(AGES, first, second))
    await asyncio.sleep(0)
    second.set()
    await asyncio.wait_for(waiting, 120)
    await asyncio.wait_for(wait(AGES, first, second), 120)
    await wait(0.01, first)


async def test_a_task_that_is_done_is_removed_and_its_error_is_raised(database: Database) -> None:
    async def fail() -> None:
        raise ValueError("broken")

    endless = asyncio.create_task(asyncio.sleep(AGES))
    running = {"endless": endless, "broken": asyncio.create_task(fail())}
    with database.wakeups.open(DueQueue("nothing"), 0.1) as wakeup, pytest.raises(ValueError, match="broken"):
        await wait_for_due(wakeup, running, asyncio.Event())
    assert list(running) == ["endless"]
    endless.cancel()
