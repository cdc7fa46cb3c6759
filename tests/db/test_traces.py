"""A trace has what its own call did, and a traced call leaves nothing behind on its connection."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import pytest

from sapa import traces
from sapa.db.group_commit import GroupCommit
from sapa.db.pool import Database, Tx, open_database
from sapa.traces import Attributes, SpanKind
from tests.conftest import Installation
from tests.db.scratch import scratch_database

MAX_STEPS = 80
"""More steps of the event loop than a traced call takes."""


class RecordedSpan:
    """Remembers the texts of its statements."""

    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    def __init__(self) -> None:
        self.texts: list[str | int] = []

    def start(self, name: str, kind: SpanKind, attributes: Attributes, started_at: int | None = None) -> "RecordedSpan":
        self.texts.append(attributes["db.query.text"])
        return RecordedSpan()

    def rename(self, name: str) -> None: ...

    def describe(self, attributes: Attributes) -> None: ...

    def end(self, error: BaseException | None = None) -> None: ...


@pytest.fixture(scope="module")
async def database(installation: Installation) -> AsyncIterator[Database]:
    """With a pool of one connection."""
    async with (
        scratch_database(installation.server) as scratch,
        open_database(scratch.app_url, size=1, application="sapa test") as opened,
    ):
        yield opened


async def test_a_traced_call_that_is_cancelled_at_any_moment_gives_its_connection_back(database: Database) -> None:
    async def call() -> None:
        with traces.activate(RecordedSpan()):
            async with database.connection() as db:
                await db.fetchval("SELECT 1")

    for steps in range(MAX_STEPS):
        task = asyncio.create_task(call())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        async with database.connection() as db:
            assert await db.fetchval("SELECT current_setting('sapa.traceparent', true)") in {None, ""}


async def test_statements_of_a_lone_call_are_in_its_trace_and_those_of_several_in_none(database: Database) -> None:
    async def run_batch(tx: Tx, company_id: int, calls: Sequence[int]) -> Sequence[int]:
        await tx.fetchval(f"SELECT {len(calls)} AS calls")
        return calls

    group = GroupCommit(run_batch, lambda call: call)

    async def call(number: int) -> RecordedSpan:
        span = RecordedSpan()
        with traces.activate(span):
            await group.run(database, 1, number)
        return span

    alone = await call(0)
    assert "SELECT 1 AS calls" in alone.texts
    several = await asyncio.gather(*map(call, range(5)))
    assert [span.texts for span in several] == [[]] * 5


async def test_a_task_that_calls_share_is_in_no_trace() -> None:
    async def get_current() -> traces.Span | None:
        return traces.CURRENT.get()

    span = RecordedSpan()
    with traces.activate(span):
        assert await asyncio.create_task(get_current()) is span
        assert await traces.create_shared_task(get_current()) is None
        assert traces.CURRENT.get() is span
