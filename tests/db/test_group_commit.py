"""Calls that share a transaction, on a ledger whose balance must not go below zero."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import asyncpg
import pytest
from msgspec import Struct

from sapa.db import pool
from sapa.db.connection import DatabaseAway
from sapa.db.group_commit import MAX_BATCH, GroupCommit
from sapa.db.pool import BUSY, Database, Tx, open_database
from tests.conftest import Installation
from tests.db.scratch import connect, scratch_database
from tests.http.wire import eventually

COMPANY = 7
POISON = -1_000
"""An amount that the database refuses, and with it the whole transaction."""


class Posting(Struct, frozen=True):
    wallet: str
    amount: int
    note: str = ""


class TooLittle(Exception):
    pass


class Ledger:
    """Posts amounts in groups, and remembers how large the groups were."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.sizes: list[int] = []
        self.group = GroupCommit(self.post_batch, lambda posting: posting.wallet)

    async def post(self, wallet: str, amount: int, note: str = "") -> int:
        return await self.group.run(self.database, COMPANY, Posting(wallet, amount, note))

    async def post_batch(self, tx: Tx, _company_id: int, postings: Sequence[Posting]) -> Sequence[int | Exception]:
        self.sizes.append(len(postings))
        return [await self._post(tx, posting) for posting in postings]

    async def _post(self, tx: Tx, posting: Posting) -> int | Exception:
        balance: int | None = await tx.fetchval(
            "UPDATE wallets SET balance = balance + $2 WHERE id = $1 AND (balance + $2 >= 0 OR $2 = $3)"
            " RETURNING balance",
            posting.wallet, posting.amount, POISON,
        )  # fmt: skip
        if balance is None:
            return TooLittle(posting.wallet)
        await tx.execute("INSERT INTO postings (wallet, note) VALUES ($1, $2)", posting.wallet, posting.note)
        return balance

    async def list_notes(self, wallet: str) -> list[str]:
        async with self.database.connection() as db:
            rows = await db.fetch("SELECT note FROM postings WHERE wallet = $1 ORDER BY number", wallet)
        return [row["note"] for row in rows]


async def find_notes(ledger: Ledger) -> list[str] | None:
    with suppress(DatabaseAway):
        return await ledger.list_notes("a")
    return None


@pytest.fixture
async def ledger(installation: Installation) -> AsyncIterator[Ledger]:
    async with scratch_database(installation.server) as scratch:
        async with connect(scratch.owner_url) as owner:
            await owner.execute(
                """CREATE TABLE wallets (id text PRIMARY KEY, balance int NOT NULL CHECK (balance >= 0));
                   CREATE TABLE postings (number serial, wallet text NOT NULL, note text NOT NULL UNIQUE);
                   INSERT INTO wallets VALUES ('a', 0), ('b', 0), ('c', 0);
                   GRANT ALL ON ALL TABLES IN SCHEMA public TO sapa_app;
                   GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO sapa_app"""
            )
        async with open_database(scratch.app_url, size=4, application="sapa group") as database:
            yield Ledger(database)


async def test_a_lone_call_waits_for_no_other(ledger: Ledger) -> None:
    assert [await ledger.post("a", 5, str(n)) for n in range(3)] == [5, 10, 15]
    assert ledger.sizes == [1, 1, 1]


async def test_calls_that_arrive_during_a_transaction_share_the_next_one(ledger: Ledger) -> None:
    balances = await asyncio.gather(*(ledger.post("ab"[n % 2], 1, str(n)) for n in range(2 * MAX_BATCH)))
    assert balances == [n // 2 + 1 for n in range(2 * MAX_BATCH)]
    assert ledger.sizes == [MAX_BATCH, MAX_BATCH]
    assert await ledger.list_notes("a") == [str(n) for n in range(0, 2 * MAX_BATCH, 2)]


async def test_a_refused_call_leaves_the_others_alone(ledger: Ledger) -> None:
    results = await asyncio.gather(
        ledger.post("a", 5, "1"), ledger.post("a", -6, "2"), ledger.post("a", 1, "3"), return_exceptions=True
    )
    assert [str(result) for result in results] == ["5", "a", "6"]
    assert isinstance(results[1], TooLittle)
    assert await ledger.list_notes("a") == ["1", "3"]


async def test_a_batch_that_fails_is_repeated_one_by_one(ledger: Ledger) -> None:
    """Each caller gets its own error, and nothing of the failed batch stays."""
    results = await asyncio.gather(
        ledger.post("a", 5, "1"), ledger.post("b", POISON, "2"), ledger.post("a", 2, "3"), return_exceptions=True
    )
    assert (results[0], results[2]) == (5, 7)
    assert isinstance(results[1], asyncpg.CheckViolationError)
    assert await ledger.list_notes("a") == ["1", "3"]
    assert ledger.sizes == [3, 1, 1, 1]


async def test_results_come_after_the_commit(ledger: Ledger) -> None:
    async def post_and_look(n: int) -> bool:
        await ledger.post("a", 1, str(n))
        return str(n) in await ledger.list_notes("a")

    assert all(await asyncio.gather(*(post_and_look(n) for n in range(10))))


async def test_a_caller_that_leaves_does_not_take_the_others_along(ledger: Ledger) -> None:
    leaving = asyncio.create_task(ledger.post("a", 1, "gone"))
    staying = asyncio.create_task(ledger.post("a", 1, "here"))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == 2
    assert await ledger.list_notes("a") == ["gone", "here"]


async def test_a_locked_wallet_is_waited_for_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its callers get the lock's error; the others of the batch get their result."""
    monkeypatch.setattr(pool, "LOCK_MILLISECONDS", 500)
    async with ledger.database.transaction() as tx:
        await tx.execute("SET LOCAL lock_timeout = '60s'")
        await tx.fetchval("SELECT balance FROM wallets WHERE id = 'a' FOR UPDATE")
        results = await asyncio.gather(
            *(ledger.post(wallet, 1, str(n)) for n, wallet in enumerate("aabac")), return_exceptions=True
        )
    assert [isinstance(result, BUSY) for result in results] == [True, True, False, True, False]
    assert ledger.sizes == [5, 1, 1, 1]


async def test_companies_do_not_wait_for_each_other(ledger: Ledger) -> None:
    async with ledger.database.transaction() as tx:
        await tx.fetchval("SELECT balance FROM wallets WHERE id = 'a' FOR UPDATE")
        waiting = asyncio.create_task(ledger.group.run(ledger.database, 1, Posting("a", 1)))
        assert await ledger.group.run(ledger.database, 2, Posting("b", 1, "b")) == 1
        assert not waiting.done()
    assert await waiting == 1


async def test_nothing_is_lost_doubled_or_reordered_when_backends_are_terminated(
    ledger: Ledger,
) -> None:
    """A caller whose result is in doubt looks for its note, and posts it again if it is not there."""
    callers, each, terminations = 16, 12, 40

    async def post_all(caller: int) -> None:
        for n in range(each):
            note = f"{caller}-{n}"
            while True:
                try:
                    await ledger.post("a", 1, note)
                    break
                except (DatabaseAway, asyncpg.UniqueViolationError):
                    if note in await eventually(lambda: find_notes(ledger)):
                        break

    async def terminate() -> None:
        async with connect(ledger.database.url) as db:
            for _ in range(terminations):
                await asyncio.sleep(random.uniform(0, 0.05))
                await db.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND application_name = 'sapa group'"
                )

    terminating = asyncio.create_task(terminate())
    await asyncio.gather(*map(post_all, range(callers)))
    await terminating
    notes = await eventually(lambda: find_notes(ledger))
    assert len(notes) == len(set(notes)) == callers * each
    for caller in range(callers):
        own = [note for note in notes if note.startswith(f"{caller}-")]
        assert own == [f"{caller}-{n}" for n in range(each)]
