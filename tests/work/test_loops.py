"""Loops that go on until they are to stop, whatever happens on the way."""

import asyncio

import pytest
from structlog.testing import capture_logs

from sapa.db.connection import DatabaseAway
from sapa.work.loops import keep_on, repeat, rest, rest_beside

AGES = 3600.0


class Steps:
    """Does what it was made with, step by step, and then stops the loop."""

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


async def test_a_step_with_more_to_do_is_followed_at_once() -> None:
    steps = Steps(True, True, None)
    async with asyncio.timeout(20):
        await repeat(steps.take, steps.stopping, every=AGES)
    assert steps.taken == 3


async def test_a_rest_ends_when_it_is_time_to_stop() -> None:
    steps, resting = Steps(None, None), asyncio.Event()

    async def step() -> None:
        await steps.take()
        resting.set()

    loop = asyncio.create_task(repeat(step, steps.stopping, every=AGES))
    await resting.wait()
    assert not loop.done()
    steps.stopping.set()
    await asyncio.wait_for(loop, 20)
    assert steps.taken == 1


async def test_what_a_step_raises_ends_a_loop() -> None:
    steps = Steps(None, ValueError("broken"), None)
    with pytest.raises(ValueError, match="broken"):
        await repeat(steps.take, steps.stopping)
    assert steps.taken == 2


async def test_a_loop_that_must_not_end_logs_a_failure_and_goes_on() -> None:
    steps = Steps(None, ValueError("broken"), DatabaseAway("away"), None)
    with capture_logs() as logged:
        await keep_on("chores", steps.take, steps.stopping, pause=0.01)
    assert steps.taken == 4
    assert [(line["event"], line["log_level"], line["loop"]) for line in logged] == [
        ("loop failed", "error", "chores"),
        ("waiting for the database", "warning", "chores"),
    ]


async def test_any_of_the_events_ends_a_rest() -> None:
    first, second = asyncio.Event(), asyncio.Event()
    resting = asyncio.create_task(rest(AGES, first, second))
    await asyncio.sleep(0)
    second.set()
    await asyncio.wait_for(resting, 20)
    await asyncio.wait_for(rest(AGES, first, second), 20)
    await rest(0.01, first)


async def test_a_task_that_is_done_leaves_and_raises_what_it_raised() -> None:
    async def fail() -> None:
        raise ValueError("broken")

    endless = asyncio.create_task(asyncio.sleep(AGES))
    running = {"endless": endless, "broken": asyncio.create_task(fail())}
    with pytest.raises(ValueError, match="broken"):
        await rest_beside(running, AGES, asyncio.Event())
    assert list(running) == ["endless"]
    endless.cancel()
