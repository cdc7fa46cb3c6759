"""A lane under lease, and transactions over the queue."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from sapa.db.pool import Database, Tx
from sapa.webhooks.dispatch import queries
from sapa.work.leases import new_holder


@asynccontextmanager
async def queue_transaction(database: Database, *, commits_late: bool = False) -> AsyncIterator[Tx]:
    """A transaction whose statements read the queue by its indexes, whatever the planner estimates of its length."""
    async with database.transaction() as tx:
        await (queries.use_indexes_and_commit_late if commits_late else queries.use_indexes)(tx)
        yield tx


@asynccontextmanager
async def lease_lane(database: Database, company_id: int, endpoint_id: str, seconds: float) -> AsyncIterator[bool]:
    """Under the lease no delivery to the endpoint is running, and none starts. False when the lane is not free."""
    owner = new_holder()
    async with database.connection() as db:
        granted = await queries.acquire(db, company_id, [endpoint_id], owner, seconds)
    try:
        yield bool(granted)
    finally:
        if granted:
            async with database.connection() as db:
                await queries.release(db, company_id, {endpoint_id: granted[0].epoch}, owner)


async def free_lanes(tx: Tx, processes: Sequence[str]) -> None:
    """Those of workers that died. Whoever leases one next does so under a new epoch."""
    await queries.free(tx, processes)
