"""A worker of its own process with jobs that a test can watch: `python -m tests.work.sample_jobs URL`."""

import asyncio
import sys

from sapa.db.pool import Database, open_database
from sapa.logs import configure_logs
from sapa.settings import read_settings
from sapa.startup import build_context
from sapa.work.worker import Job, Worker


async def tally(database: Database, name: str) -> None:
    async with database.transaction() as tx:
        await tx.execute("INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES (1, $1, '', 1)", name)


async def fail(database: Database) -> None:
    await tally(database, "failed")
    raise ZeroDivisionError


async def succeed(database: Database) -> None:
    await tally(database, "succeeded")


async def take_a_while(database: Database) -> None:
    await tally(database, "begun")
    await asyncio.sleep(1)
    await tally(database, "ended")


JOBS = [Job("fails", 0.05, fail), Job("succeeds", 0.05, succeed), Job("takes a while", 0.05, take_a_while)]


async def main(url: str) -> None:
    configure_logs("info")
    async with open_database(url, size=4) as database:
        await Worker(build_context(read_settings({}), database), JOBS).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
