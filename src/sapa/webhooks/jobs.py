"""Catching up: what a resumed endpoint gets of the events that it missed.

While an endpoint is paused or suspended its deliveries are held, and new events are recorded but not queued for it.
Once it is resumed this job puts into its queue what was chosen, and only then is it served again. Endpoints take turns,
each for a moment, so that nobody waits for another's long absence; `missed` knows how far each has come.
"""

import asyncio
import time
from collections import deque

import structlog

from sapa.db.connection import DatabaseAway
from sapa.db.pool import RETRYABLE, Database, notify_after_commit
from sapa.db.sql import sql
from sapa.events import CHANNEL
from sapa.webhooks import lanes, replay
from sapa.webhooks.replay import Overtaken, Resumed, find_progress
from sapa.work.leases import new_holder

# A run is cut short at 25 seconds; what it has not done by then waits for the next one.
RUN_SECONDS = 18.0
TURN_SECONDS = 1.0
_LEASE_SECONDS = 60.0
_LOOK_SECONDS = 0.1
# In this time a statement that has its snapshot already gets its transaction's number, too.
_MOMENT_SECONDS = 0.25

log = structlog.get_logger()

# A moment early, because times are kept in milliseconds; never from before there was an endpoint.
LIST_RESUMED = sql(
    """
    SELECT company_id, id AS endpoint_id, kinds, catch_up,
           GREATEST(missed_since - interval '1 second', created_at + interval '1 ms') AS since, resumed_at,
           progress AS stored
      FROM webhook_endpoints
     WHERE catch_up IS NOT NULL AND status = 'active'
     ORDER BY resumed_at""",
    row=Resumed,
    crosses="the worker looks for resumed endpoints over all companies, then helps company by company",
)

NEXT_TO_BEGIN = sql("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")

# The time at which all of them were over, rounded up as events' times may be; nothing while they are not.
FIND_END = sql(
    """
    SELECT clock_timestamp() + interval '2 milliseconds'
     WHERE pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8"""
)

END = sql(
    """
    UPDATE webhook_endpoints
       SET catch_up = NULL, missed_since = NULL, resumed_at = NULL, progress = NULL
     WHERE company_id = $1 AND id = $2 AND catch_up = $3 AND resumed_at = $4::text::timestamptz"""
)


async def catch_up(database: Database) -> None:
    """The worker's job."""
    async with database.connection() as db:
        line = deque(await LIST_RESUMED.all(db))
    if not line:
        return
    next_to_begin = await _find_next_to_begin(database)
    deadline = time.monotonic() + RUN_SECONDS
    while line and time.monotonic() < deadline:
        endpoint = line.popleft()
        if await _take_turn(database, endpoint, next_to_begin):
            line.append(endpoint)


async def _find_next_to_begin(database: Database) -> str:
    """All transactions that may have seen an endpoint as it was before it was resumed have a lower number."""
    await asyncio.sleep(_MOMENT_SECONDS)
    async with database.connection() as db:
        number: str = await NEXT_TO_BEGIN.value(db)
        return number


async def _take_turn(database: Database, endpoint: Resumed, next_to_begin: str) -> bool:
    """Whether it should have another one in this run. What goes wrong with one endpoint is its own affair."""
    try:
        if not await _has_begun(database, endpoint, next_to_begin):
            await asyncio.sleep(_LOOK_SECONDS)
            return True
        return await _help(database, endpoint)
    except Overtaken:
        return False
    except (DatabaseAway, *RETRYABLE) as error:
        reason = f"{type(error).__name__}: {error}"
        log.warning("catching up waits for the database", endpoint=endpoint.endpoint_id, reason=reason)
    except Exception:
        log.exception("catching up stumbled", endpoint=endpoint.endpoint_id)
    return False


async def _has_begun(database: Database, endpoint: Resumed, next_to_begin: str) -> bool:
    """Begins once the transactions are over that may have seen the endpoint paused."""
    if find_progress(endpoint):
        return True
    async with database.connection() as db:
        until = await FIND_END.value(db, next_to_begin)
    if until:
        await replay.begin(database, endpoint, until)
    return until is not None


async def _help(database: Database, endpoint: Resumed) -> bool:
    """Under the lane's lease: nothing is under way to the endpoint, and nothing can be. Whether there is more to do."""
    owner = new_holder()
    async with database.connection() as db:
        granted = await lanes.acquire(db, endpoint.company_id, [endpoint.endpoint_id], owner, _LEASE_SECONDS)
    if not granted:
        return False
    try:
        return not await _queue_missed(database, endpoint)
    finally:
        async with database.connection() as db:
            await lanes.release(db, endpoint.company_id, {endpoint.endpoint_id: granted[0].epoch}, owner)


async def _queue_missed(database: Database, endpoint: Resumed) -> bool:
    """As many batches as fit into one turn; whether that was all."""
    end_of_turn = time.monotonic() + TURN_SECONDS
    progress = find_progress(endpoint)
    while progress and not await replay.queue_batch(database, endpoint, progress):
        if time.monotonic() > end_of_turn:
            return False
    async with database.transaction() as tx:
        await END.run(tx, endpoint.company_id, endpoint.endpoint_id, endpoint.catch_up, endpoint.resumed_at)
        notify_after_commit(tx, CHANNEL)
    return True
