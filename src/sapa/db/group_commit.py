"""Group commit: calls of one company that arrive while a transaction runs share the next one.

A lone call starts its transaction at once. A process runs one transaction of a company at a time, so calls are applied
in the order in which they arrive.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from sapa import traces
from sapa.db.connection import DatabaseAway
from sapa.db.pool import BUSY, Database, Tx

MAX_BATCH = 64

Call = TypeVar("Call")
Result = TypeVar("Result")

RunBatch = Callable[[Tx, int, Sequence[Call]], Awaitable[Sequence[Result | Exception]]]
"""Applies calls of one company in their order, inside the transaction. An exception among the results is raised to its
caller alone, and must have changed nothing; one that is raised undoes the batch."""


class GroupCommit(Generic[Call, Result]):
    """Callers get their result after the commit.

    A batch that fails is repeated one by one, so that each caller gets the error of its own call. When the database is
    lost, every caller of the batch gets that error: whether the batch was committed is unknown then, as it is for a
    transaction of one call.
    """

    def __init__(
        self,
        run_batch: RunBatch[Call, Result],
        get_key: Callable[[Call], Hashable],
        *,
        is_one_statement: bool = False,
    ) -> None:
        """`get_key` names what the call locks, such as a wallet. A batch that is one statement is a transaction by
        itself."""
        self._run_batch = run_batch
        self._get_key = get_key
        self._is_one_statement = is_one_statement
        self._waiting: dict[tuple[Database, int], list[tuple[Call, asyncio.Future[Result], traces.Span | None]]] = {}
        """By company, while one of its batches runs; each with the span of its call."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, database: Database, company_id: int, call: Call) -> Result:
        """The call is applied even if its caller does not wait for the result."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.get((database, company_id))
        if waiting is not None:
            waiting.append((call, future, traces.CURRENT.get()))
            return await future
        self._waiting[database, company_id] = [(call, future, traces.CURRENT.get())]
        task = asyncio.create_task(self._run_waiting(database, company_id), name="group commit")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await future

    async def _run_waiting(self, database: Database, company_id: int) -> None:
        """Runs the waiting calls, then those that arrived meanwhile, until none waits."""
        lane = database, company_id
        while waiting := self._waiting[lane]:
            batch, self._waiting[lane] = waiting[:MAX_BATCH], waiting[MAX_BATCH:]
            traces.work_for([span for _, _, span in batch])
            results = await self._run_together(database, company_id, [call for call, _, _ in batch])
            for (_, future, _), result in zip(batch, results, strict=True):
                _resolve(future, result)
        del self._waiting[lane]

    async def _run_together(
        self, database: Database, company_id: int, calls: Sequence[Call]
    ) -> Sequence[Result | Exception]:
        try:
            return await self._transact(database, company_id, calls)
        except DatabaseAway as error:
            return [error] * len(calls)
        except Exception as error:
            return [error] if len(calls) == 1 else await self._run_singly(database, company_id, calls)

    async def _run_singly(
        self, database: Database, company_id: int, calls: Sequence[Call]
    ) -> Sequence[Result | Exception]:
        results: list[Result | Exception] = []
        busy: dict[Hashable, Exception] = {}
        for call in calls:
            key = self._get_key(call)
            if key in busy:  # another one would wait just as long for the same lock, and all others behind it
                results.append(busy[key])
                continue
            try:
                results += await self._transact(database, company_id, [call])
            except Exception as error:
                results.append(error)
                if isinstance(error, (DatabaseAway, *BUSY)):
                    busy[key] = error
        return results

    async def _transact(
        self, database: Database, company_id: int, calls: Sequence[Call]
    ) -> Sequence[Result | Exception]:
        async def run(tx: Tx) -> Sequence[Result | Exception]:
            results = await self._run_batch(tx, company_id, calls)
            if len(results) != len(calls):
                raise RuntimeError(f"a batch of {len(calls)} calls gave {len(results)} results")
            return results

        return await database.transact(run, is_one_statement=self._is_one_statement)


def _resolve(future: asyncio.Future[Result], result: Result | Exception) -> None:
    if future.done():  # its caller is gone
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
