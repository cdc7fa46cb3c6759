"""Exports and reports: a pool of their own, two at a time for each company, over all processes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from sapa.db import long_reads
from sapa.db.long_reads import CONNECTIONS, MAX_STREAMS, LongReads, TooManyLongReads
from sapa.db.pool import Database
from tests.conftest import Installation
from tests.factories import Environments


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_reads, "WAIT_SECONDS", 0.5)


@asynccontextmanager
async def open_long_reads(installation: Installation) -> AsyncIterator[LongReads]:
    """As one process has them."""
    opened = LongReads(Database(installation.server.app_url, 1))
    try:
        yield opened
    finally:
        await opened.close()


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_company_has_two_at_a_time_over_all_processes(
    installation: Installation, company: Environments, processes: int
) -> None:
    async with open_long_reads(installation) as here, open_long_reads(installation) as there:
        other = there if processes == 2 else here
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(here.snapshot(company.live))
            second = await stack.enter_async_context(AsyncExitStack())
            await second.enter_async_context(other.snapshot(company.live))
            for place in (here, other):
                with pytest.raises(TooManyLongReads):
                    await stack.enter_async_context(place.snapshot(company.live))
            async with here.snapshot(company.test) as tx:
                assert await tx.fetchval("SELECT 1") == 1
            await second.aclose()
            async with other.snapshot(company.live) as tx:
                assert await tx.fetchval("SELECT 1") == 1


async def test_those_that_wait_hold_no_connection(
    installation: Installation, company: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_reads, "WAIT_SECONDS", 30)
    async with open_long_reads(installation) as reads:
        held = AsyncExitStack()
        for _ in range(2):
            await held.enter_async_context(reads.snapshot(company.live))
        waiting = [asyncio.create_task(_read(reads, company.live)) for _ in range(3 * CONNECTIONS)]
        await asyncio.sleep(0)
        assert await _read(reads, company.test) == 1
        await held.aclose()
        assert await asyncio.gather(*waiting) == [1] * len(waiting)


async def test_the_pool_is_small_for_all_companies_together(installation: Installation) -> None:
    async with open_long_reads(installation) as reads, AsyncExitStack() as stack:
        for company_id in range(CONNECTIONS):
            await stack.enter_async_context(reads.snapshot(-company_id - 1))
        with pytest.raises(TooManyLongReads):
            await stack.enter_async_context(reads.snapshot(-100))


async def test_streams_leave_room_for_other_reads(installation: Installation) -> None:
    async with open_long_reads(installation) as reads, AsyncExitStack() as stack:
        for company_id in range(MAX_STREAMS):
            await stack.enter_async_context(reads.stream(-company_id - 1))
        with pytest.raises(TooManyLongReads):
            await stack.enter_async_context(reads.stream(-100))
        assert await _read(reads, -100) == 1


async def test_one_that_fails_or_is_cancelled_gives_its_turn_back(
    installation: Installation, company: Environments
) -> None:
    async with open_long_reads(installation) as reads:
        for _ in range(2 * CONNECTIONS):
            with pytest.raises(ZeroDivisionError):
                async with reads.snapshot(company.live):
                    raise ZeroDivisionError
            started = asyncio.Event()
            task = asyncio.create_task(_sleep(reads, company.live, started))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await _read(reads, company.live) == 1


async def test_it_is_one_moment_and_changes_nothing(installation: Installation, company: Environments) -> None:
    async with open_long_reads(installation) as reads, reads.snapshot(company.live) as tx:
        assert await tx.fetchval("SHOW transaction_isolation") == "repeatable read"
        assert await tx.fetchval("SHOW transaction_read_only") == "on"


async def _read(reads: LongReads, company_id: int) -> int:
    async with reads.snapshot(company_id) as tx:
        value: int = await tx.fetchval("SELECT 1")
        return value


async def _sleep(reads: LongReads, company_id: int, started: asyncio.Event) -> None:
    async with reads.snapshot(company_id) as tx:
        started.set()
        await tx.fetchval("SELECT pg_sleep(60)")
