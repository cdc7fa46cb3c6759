"""The settler: gathers what came of attempts and writes it down in batches."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import asyncpg
import structlog
from msgspec.structs import replace

from sapa.db.pool import AWAY, RETRYABLE, Database
from sapa.webhooks.settling import Result, settle
from sapa.webhooks.slots import Lane, group
from sapa.work.metrics import ATTEMPTS

BATCH_SECONDS = 0.02
FULL_BATCH = 100
WRITERS = 2

Finished = tuple[Lane, Result]

log = structlog.get_logger()


class Settler:
    def __init__(self, database: Database, owner: str, on_settled: Callable[[Lane], None]) -> None:
        self._database = database
        self._owner = owner
        self._on_settled = on_settled
        self._waiting: list[Finished] = []
        self._unsettled = 0
        self._is_awaited = asyncio.Event()
        self._is_done = asyncio.Event()
        self._writers = asyncio.Semaphore(WRITERS)

    def add(self, lane: Lane, result: Result) -> None:
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
        except (*AWAY, *RETRYABLE):
            self._keep(batch)
            raise
        except asyncpg.PostgresError:
            await self._settle_singly(company_id, batch)

    async def _settle_singly(self, company_id: int, batch: list[Finished]) -> None:
        """Without the receiver's own words, so that what cannot be stored stops nobody else."""
        for number, (lane, result) in enumerate(batch):
            try:
                await self._write(company_id, [(lane, replace(result, message=None, address=None, response=b""))])
            except (*AWAY, *RETRYABLE):
                self._keep(batch[number:])
                raise
            except asyncpg.PostgresError:
                # It stays known to its lane, and so is not sent again and again.
                self._unsettled -= 1
                log.exception("a webhook attempt could not be settled", delivery=result.delivery_id)

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
        self._unsettled -= len(batch)
        if not self._unsettled:
            self._is_done.set()

    def _keep(self, batch: list[Finished]) -> None:
        """Before what comes later: failures are counted in the order in which they happened."""
        self._waiting[:0] = batch
        self._is_awaited.set()
