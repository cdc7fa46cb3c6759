"""The settler: collects the results of attempts and stores them in batches."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import structlog

from sapa.db.connection import DatabaseAway
from sapa.db.pool import BUSY, RETRYABLE, Database
from sapa.webhooks.dispatch.attempt import build_postponed, build_unrecorded, strip_response
from sapa.webhooks.dispatch.settling import settle
from sapa.webhooks.dispatch.slots import ActiveLane, group
from sapa.webhooks.dispatch.types import RETRY_SECONDS, AttemptResult
from sapa.work.metrics import ATTEMPTS

BATCH_SECONDS = 0.02
FULL_BATCH = 100
WRITERS = 2

UNAVAILABLE = (DatabaseAway, *BUSY, *RETRYABLE)
"""Errors of the database, not of the result: it may be stored a moment later."""

LaneResult = tuple[ActiveLane, AttemptResult]

log = structlog.get_logger()


class Settler:
    """Stores the results of attempts in batches, and says which lanes may go on."""

    def __init__(self, database: Database, owner: str, on_settled: Callable[[ActiveLane], None]) -> None:
        self._database = database
        self._owner = owner
        self._on_settled = on_settled
        self._waiting: list[LaneResult] = []
        self._unsettled = 0
        self._has_results = asyncio.Event()
        self._is_done = asyncio.Event()
        self._writers = asyncio.Semaphore(WRITERS)

    def add(self, lane: ActiveLane, result: AttemptResult) -> None:
        self._unsettled += 1
        self._is_done.clear()
        self._waiting.append((lane, result))
        self._has_results.set()

    async def done(self, seconds: float) -> None:
        """Returns when everything is settled, or after `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds if self._unsettled else 0):
                await self._is_done.wait()

    async def settle_batch(self) -> None:
        """Settles the waiting results, company by company. What cannot be stored now waits for the next batch."""
        await self._has_results.wait()
        if len(self._waiting) < FULL_BATCH:
            await asyncio.sleep(BATCH_SECONDS)
        self._has_results.clear()
        batch, self._waiting = self._waiting, []
        companies = group(batch, lambda lane_result: lane_result[1].company_id)
        outcomes = await asyncio.gather(
            *map(self._settle_company, companies, companies.values()), return_exceptions=True
        )
        for error in outcomes:
            if isinstance(error, BaseException):
                raise error

    async def _settle_company(self, company_id: int, batch: list[LaneResult]) -> None:
        try:
            await self._write(company_id, batch)
        except UNAVAILABLE:
            self._requeue(batch)
            raise
        except Exception:
            await self._settle_singly(company_id, batch)

    async def _settle_singly(self, company_id: int, batch: list[LaneResult]) -> None:
        """One by one, so that a result that cannot be stored does not stop the others."""
        for number, (lane, result) in enumerate(batch):
            try:
                await self._settle_one(company_id, lane, result)
            except UNAVAILABLE:
                self._requeue(batch[number:])
                raise

    async def _settle_one(self, company_id: int, lane: ActiveLane, result: AttemptResult) -> None:
        """Stores as much as possible: the outcome without the response, else that it failed, else nothing."""
        failed = [] if result.is_ours else [build_unrecorded(result)]
        for storable in (strip_response(result), *failed, build_postponed(result)):
            try:
                await self._write(company_id, [(lane, storable)])
            except UNAVAILABLE:
                raise
            except Exception:
                log.exception("webhook attempt not stored", delivery_id=result.delivery_id)
            else:
                return
        # Until then it counts as in progress, so that the lane does not send it again and again.
        asyncio.get_running_loop().call_later(RETRY_SECONDS[0], lane.in_progress.discard, result.delivery_id)
        self._count_settled(1)

    async def _write(self, company_id: int, batch: list[LaneResult]) -> None:
        async with self._writers:
            suspended = await settle(self._database, company_id, self._owner, [result for _, result in batch])
        for endpoint_id in suspended:
            log.warning("webhook endpoint suspended", company_id=company_id, webhook_id=endpoint_id)
        self._finish(batch)

    def _finish(self, batch: list[LaneResult]) -> None:
        for (outcome, error), number in Counter((r.outcome, r.error or "") for _, r in batch).items():
            ATTEMPTS.labels(outcome, error).inc(number)
        for lane, result in batch:
            lane.in_progress.discard(result.delivery_id)
        for lane in {lane for lane, _ in batch}:
            self._on_settled(lane)
        self._count_settled(len(batch))

    def _count_settled(self, number: int) -> None:
        self._unsettled -= number
        if not self._unsettled:
            self._is_done.set()

    def _requeue(self, batch: list[LaneResult]) -> None:
        """Before later results: failures are counted in their order."""
        self._waiting[:0] = batch
        self._has_results.set()
