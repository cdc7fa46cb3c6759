"""Callbacks to one address that arrive together share a lookup, and nobody gets an account as it was before."""

import asyncio

import pytest

from sapa.context import AppContext
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.inbound.account_lookups import AccountLookups

CALLERS = 5


class Refused(Exception):
    pass


class SlowDirectory:
    """Answers lookups one after the other, when it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._answers: asyncio.Queue[Exception | None] = asyncio.Queue()

    def answer(self, error: Exception | None = None) -> None:
        self._answers.put_nowait(error)

    async def find(self, context: AppContext, token: str) -> ConnectedChannel | None:
        self.asked.append(token)
        if error := await self._answers.get():
            raise error
        return None


@pytest.fixture
def directory() -> SlowDirectory:
    return SlowDirectory()


async def test_callers_that_arrive_during_a_lookup_share_the_next_one(
    context: AppContext, directory: SlowDirectory
) -> None:
    lookups = AccountLookups(directory.find)
    first = asyncio.create_task(lookups.find(context, "a"))
    await settle()
    later = [asyncio.create_task(lookups.find(context, "a")) for _ in range(CALLERS)]
    await settle()
    assert directory.asked == ["a"]
    directory.answer()
    await first
    await settle()
    assert directory.asked == ["a", "a"]  # theirs began after they arrived
    assert not any(task.done() for task in later)
    directory.answer()
    assert await asyncio.gather(*later) == [None] * CALLERS
    directory.answer()
    assert await lookups.find(context, "a") is None
    assert directory.asked == ["a", "a", "a"]


async def test_addresses_do_not_wait_for_each_other(context: AppContext, directory: SlowDirectory) -> None:
    lookups = AccountLookups(directory.find)
    tasks = [asyncio.create_task(lookups.find(context, token)) for token in "ab"]
    await settle()
    assert directory.asked == ["a", "b"]
    directory.answer()
    directory.answer()
    await asyncio.gather(*tasks)


async def test_a_caller_that_leaves_and_a_lookup_that_fails_concern_nobody_else(
    context: AppContext, directory: SlowDirectory
) -> None:
    lookups = AccountLookups(directory.find)
    left, stays = (asyncio.create_task(lookups.find(context, "a")) for _ in range(2))
    await settle()
    later = asyncio.create_task(lookups.find(context, "a"))
    await settle()
    left.cancel()
    directory.answer(Refused())
    with pytest.raises(Refused):
        await stays
    directory.answer()
    assert await later is None
    assert left.cancelled()


async def settle() -> None:
    """Until every task waits for something."""
    for _ in range(5):
        await asyncio.sleep(0)
