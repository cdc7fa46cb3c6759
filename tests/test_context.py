import asyncio

import pytest
from structlog.testing import capture_logs

from sapa import context as contexts
from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.settings import read_settings
from sapa.startup import build_context

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


@pytest.fixture
async def context() -> AppContext:
    return build_context(read_settings({}), Database(NOWHERE, 2))


async def test_work_goes_on_when_its_caller_is_cancelled_and_close_waits_for_it(context: AppContext) -> None:
    begun, go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await go_on.wait()
        done.set()

    caller = asyncio.create_task(context.run_to_end(work()))
    await begun.wait()
    caller.cancel()
    await asyncio.wait([caller])
    assert not done.is_set()
    go_on.set()
    await context.close()
    assert done.is_set()


async def test_work_that_outlasts_the_limit_is_cancelled(context: AppContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "CLOSE_SECONDS", 0.01)
    begun, was_cancelled = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()

    caller = asyncio.create_task(context.run_to_end(work()))
    await begun.wait()
    with capture_logs() as lines:
        await context.close()
    assert was_cancelled.is_set()
    assert [line["event"] for line in lines] == ["running work cancelled"]
    await asyncio.wait([caller])


async def test_a_failure_is_logged_when_its_caller_is_gone(context: AppContext) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await go_on.wait()
        raise RuntimeError("no paper")

    caller = asyncio.create_task(context.run_to_end(work()))
    await begun.wait()
    caller.cancel()
    await asyncio.wait([caller])
    go_on.set()
    with capture_logs() as lines:
        await context.close()
    assert [line["reason"] for line in lines] == ["RuntimeError: no paper"]
