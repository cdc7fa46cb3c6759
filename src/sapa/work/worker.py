"""The worker: runs each job on its schedule, on one worker at a time however many there are."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import asyncpg
import structlog
from msgspec import Struct

from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database
from sapa.db.wakeups import DueQueue, Wakeup
from sapa.work.leases import FreeWork, WorkerLeases
from sapa.work.loops import keep_running, repeat
from sapa.work.metrics import RUNS, SECONDS

LONGEST_RUN_SECONDS = 25.0
RESTART_SECONDS = 1.0
QUEUE_PAUSE_SECONDS = 1.0
"""Between two runs of a job while work of its queue is due."""
CONNECTION_SECONDS = 10.0
"""How long work waits for a database connection."""
STOP_SECONDS = 15.0
"""What still runs then, after the worker was told to stop, is cut off; another worker does it again."""

log = structlog.get_logger()


class Job(Struct, frozen=True):
    """A periodic job. It must be safe to stop anywhere and run again."""

    name: str
    every_seconds: float
    run: Callable[[Database], Awaitable[None]]
    queue: DueQueue | None = None
    """It also runs when work of the queue may be due."""


class Service(Struct, frozen=True):
    """Runs on every worker as long as the worker does. It ends soon after `stopping` is set."""

    name: str
    run: Callable[[AppContext, asyncio.Event], Awaitable[None]]


class Worker:
    def __init__(
        self, context: AppContext, jobs: Sequence[Job], services: Sequence[Service] = (), free: Sequence[FreeWork] = ()
    ) -> None:
        """`free` frees what workers that died have left."""
        self._context = context
        self._database = context.database
        self._jobs = jobs
        self._services = services
        self._leases = WorkerLeases(context.database, context.lease, [job.name for job in jobs], free)
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Runs until SIGTERM or SIGINT; then finishes what is quick and releases its leases."""
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, self._stop)
        log.info("worker started", jobs=[job.name for job in self._jobs])
        keeping = asyncio.create_task(self._leases.keep(), name="leases")
        await self._run_until_stopped()
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await self._release()
        await self._context.close()
        log.info("worker stopped")

    async def _run_until_stopped(self) -> None:
        work = asyncio.gather(*map(self._repeat, self._jobs), *map(self._keep_running, self._services))
        stopping = asyncio.create_task(self._stopping.wait())
        either: set[asyncio.Future[Any]] = {work, stopping}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await work
        except TimeoutError:
            log.warning("work was cut off", seconds=STOP_SECONDS)

    def _stop(self) -> None:
        self._stopping.set()
        self._leases.stop_waiting()

    async def _keep_running(self, service: Service) -> None:
        """A service that ends early is started again."""
        run = partial(service.run, self._context, self._stopping)
        await keep_running(service.name, run, self._stopping, every=RESTART_SECONDS, pause=RESTART_SECONDS)

    async def _repeat(self, job: Job) -> None:
        if job.queue is None:
            await repeat(partial(self._run_once, job), self._stopping, every=job.every_seconds)
            return
        with self._database.wakeups.open(job.queue, QUEUE_PAUSE_SECONDS) as wakeup:
            run = partial(self._run_when_due, job, wakeup)
            await keep_running(job.name, run, self._stopping, pause=RESTART_SECONDS)

    async def _run_when_due(self, job: Job, wakeup: Wakeup) -> None:
        wakeup.begin()
        await self._run_once(job)
        await wakeup.wait(self._stopping, most=job.every_seconds)

    async def _run_once(self, job: Job) -> None:
        await self._leases.wait_for(job.name)
        if self._stopping.is_set():
            return
        started = time.perf_counter()
        try:
            await self._run_in_time(job)
            RUNS.labels(job.name, "done").inc()
        except DatabaseAway as error:
            RUNS.labels(job.name, "database away").inc()
            log.warning("job waits for the database", job=job.name, reason=f"{type(error).__name__}: {error}")
        except Exception:
            RUNS.labels(job.name, "failed").inc()
            log.exception("job failed", job=job.name)
        SECONDS.labels(job.name).observe(time.perf_counter() - started)

    async def _run_in_time(self, job: Job) -> None:
        try:
            async with self._leases.limit(LONGEST_RUN_SECONDS) as limit:
                await job.run(self._database)
        except TimeoutError:
            if limit.expired():
                raise RuntimeError("the job took too long, or the worker's lease was not renewed in time") from None
            raise

    async def _release(self) -> None:
        try:
            await self._leases.release()
        except (DatabaseAway, asyncpg.PostgresError) as error:
            log.warning("leases not released", reason=str(error))
