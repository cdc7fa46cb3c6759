"""The settler: gathers what came of attempts and writes it down in batches."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import structlog

from sapa.db.connection import DatabaseAway
from sapa.db.pool import BUSY, RETRYABLE, Database
from sapa.webhooks.dispatch.attempt import build_postponed, build_unrecorded, without_words
from sapa.webhooks.dispatch.settling import settle
from sapa.webhooks.dispatch.slots import ActiveLane, group
from sapa.webhooks.dispatch.types import RETRY_SECONDS, Result
from sapa.work.metrics import ATTEMPTS

BATCH_SECONDS = 0.02
FULL_BATCH = 100
WRITERS = 2

UNAVAILABLE = (DatabaseAway, *BUSY, *RETRYABLE)
"""The database's trouble, not the outcome's: the same may be stored a moment later."""

Finished = tuple[ActiveLane, Result]

log = structlog.get_logger()


class Settler:
    def __init__(self, database: Database, owner: str, on_settled: Callable[[ActiveLane], None]) -> None:
        self._database = database
        self._owner = owner
        self._on_settled = on_settled
        self._waiting: list[Finished] = []
        self._unsettled = 0
        self._is_awaited = asyncio.Event()
        self._is_done = asyncio.Event()
        self._writers = asyncio.Semaphore(WRITERS)

    def add(self, lane: ActiveLane, result: Result) -> None:
        self._unsettled += 1
        self._is_done.clear()
        self._waiting.append((lane, result))
        self._is_awaited.set()

    async def done(self, seconds: float) -> None:
        """Returns when all is settled, or when it takes too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds if self._unsettled else 0):
                await self._is_done.wait()

    async def settle_batch(self) -> None:
        """What has come meanwhile, company by company. What cannot be written now is kept for the next time."""
        await self._is_awaited.wait()
        if len(self._waiting) < FULL_BATCH:
            await asyncio.sleep(BATCH_SECONDS)
        self._is_awaited.clear()
        batch, self._waiting = self._waiting, []
        companies = group(batch, lambda finished: finished[1].company_id)
        outcomes = await asyncio.gather(
            *map(self._settle_company, companies, companies.values()), return_exceptions=True
        )
        for error in outcomes:
            if isinstance(error, BaseException):
                raise error

    async def _settle_company(self, company_id: int, batch: list[Finished]) -> None:
        try:
            await self._write(company_id, batch)
        except UNAVAILABLE:
            self._keep(batch)
            raise
        except Exception:
            await self._settle_singly(company_id, batch)

    async def _settle_singly(self, company_id: int, batch: list[Finished]) -> None:
        """So that what cannot be stored stops nobody else."""
        for number, (lane, result) in enumerate(batch):
            try:
                await self._settle_one(company_id, lane, result)
            except UNAVAILABLE:
                self._keep(batch[number:])
                raise

    async def _settle_one(self, company_id: int, lane: ActiveLane, result: Result) -> None:
        """As much as can be stored: the outcome without the receiver's words, else that it failed, else nothing."""
        failed = [] if result.is_ours else [build_unrecorded(result)]
        for storable in (without_words(result), *failed, build_postponed(result)):
            try:
                await self._write(company_id, [(lane, storable)])
            except UNAVAILABLE:
                raise
            except Exception:
                log.exception("a webhook attempt could not be stored", delivery=result.delivery_id)
            else:
                return
        # Still known to its lane meanwhile, so that it is not sent again and again.
        asyncio.get_running_loop().call_later(RETRY_SECONDS[0], lane.known.discard, result.delivery_id)
        self._count_settled(1)

    async def _write(self, company_id: int, batch: list[Finished]) -> None:
        async with self._writers:
            suspended = await settle(self._database, company_id, self._owner, [result for _, result in batch])
        for endpoint_id in suspended:
            log.warning("a webhook endpoint was suspended", company=company_id, endpoint=endpoint_id)
        self._note(batch)

    def _note(self, batch: list[Finished]) -> None:
        for (outcome, error), number in Counter((r.outcome, r.error or "") for _, r in batch).items():
            ATTEMPTS.labels(outcome, error).inc(number)
        for lane, result in batch:
            lane.known.discard(result.delivery_id)
        for lane in {lane for lane, _ in batch}:
            self._on_settled(lane)
        self._count_settled(len(batch))

    def _count_settled(self, number: int) -> None:
        self._unsettled -= number
        if not self._unsettled:
            self._is_done.set()

    def _keep(self, batch: list[Finished]) -> None:
        """Before what comes later: failures are counted in the order in which they happened."""
        self._waiting[:0] = batch
        self._is_awaited.set()
