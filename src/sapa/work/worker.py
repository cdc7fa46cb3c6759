"""The worker: runs each job on its schedule, on one worker at a time however many there are."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import asyncpg
import structlog
from msgspec import Struct

from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database
from sapa.work import leases
from sapa.work.loops import keep_running, repeat
from sapa.work.metrics import RUNS, SECONDS

LEASE_SECONDS = 30.0
# A job is stopped before its lease ends, so that two workers never do it at once.
LONGEST_RUN_SECONDS = 25.0
RESTART_SECONDS = 1.0
MOST_CONNECTIONS = 40
"""Of a worker."""
CONNECTION_SECONDS = 10.0
"""How long work waits for one of them."""

log = structlog.get_logger()


class Job(Struct, frozen=True):
    """A periodic job. It must be safe to stop anywhere and run again."""

    name: str
    every_seconds: float
    run: Callable[[Database], Awaitable[None]]


class Service(Struct, frozen=True):
    """Runs on every worker as long as the worker does. It ends soon after `stopping` is set."""

    name: str
    run: Callable[[AppContext, asyncio.Event], Awaitable[None]]


class Worker:
    def __init__(self, context: AppContext, jobs: Sequence[Job], services: Sequence[Service] = ()) -> None:
        self._context = context
        self._database = context.database
        self._jobs = jobs
        self._services = services
        self._holder = leases.new_holder()
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Runs until SIGTERM or SIGINT; then finishes running jobs and releases its leases."""
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, self._stopping.set)
        log.info("worker started", jobs=[job.name for job in self._jobs])
        await asyncio.gather(*map(self._repeat, self._jobs), *map(self._keep_running, self._services))
        await self._release()
        await self._context.close()
        log.info("worker stopped")

    async def _keep_running(self, service: Service) -> None:
        """A service that ends early is started again."""
        run = partial(service.run, self._context, self._stopping)
        await keep_running(service.name, run, self._stopping, every=RESTART_SECONDS, pause=RESTART_SECONDS)

    async def _repeat(self, job: Job) -> None:
        await repeat(partial(self._run_once, job), self._stopping, every=job.every_seconds)

    async def _run_once(self, job: Job) -> None:
        started = time.perf_counter()
        try:
            async with self._database.connection() as db:
                if await leases.take(db, job.name, self._holder, LEASE_SECONDS) is None:
                    return
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
            async with asyncio.timeout(LONGEST_RUN_SECONDS) as deadline:
                await job.run(self._database)
        except TimeoutError:
            if deadline.expired():
                raise RuntimeError(f"the job took longer than {LONGEST_RUN_SECONDS:.0f} seconds") from None
            raise

    async def _release(self) -> None:
        try:
            async with self._database.connection() as db:
                await leases.release_all(db, self._holder)
        except (DatabaseAway, asyncpg.PostgresError) as error:
            log.warning("leases not released", reason=str(error))
