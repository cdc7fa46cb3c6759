"""Catching up: what a resumed endpoint gets of the events that it missed.

While an endpoint is paused or suspended its deliveries are held, and new events are recorded but not queued for it.
Once it is resumed this job queues the missed events that were chosen, and only then is the endpoint served again.
Endpoints take turns of a second each, so that none waits for another's long backlog.
"""

import asyncio
import time
from collections import deque

import structlog

from sapa.db.connection import DatabaseAway
from sapa.db.pool import RETRYABLE, Database, notify_after_commit
from sapa.events import CHANNEL
from sapa.webhooks.dispatch.lanes import lease_lane
from sapa.webhooks.replay import actions, queries
from sapa.webhooks.replay.types import Overtaken, Resumed

# A run is stopped at 25 seconds; endpoints that are not done by then wait for the next run.
RUN_SECONDS = 18.0
TURN_SECONDS = 1.0
_LEASE_SECONDS = 60.0
_POLL_SECONDS = 0.1
# By then, a statement that already has its snapshot also has its transaction's number.
_SNAPSHOT_SECONDS = 0.25

log = structlog.get_logger()


async def catch_up(database: Database) -> None:
    async with database.connection() as db:
        endpoints = await queries.list_resumed(db)
    if not endpoints:
        return
    waiting = deque(await _list_waiting(database, endpoints))
    deadline = time.monotonic() + RUN_SECONDS
    while waiting and time.monotonic() < deadline:
        endpoint, next_transaction = waiting.popleft()
        if await _replay_batch(database, endpoint, next_transaction):
            waiting.append((endpoint, next_transaction))


async def _list_waiting(database: Database, endpoints: list[Resumed]) -> list[tuple[Resumed, str]]:
    """All transactions that may have seen an endpoint as it was before it was resumed have a lower number."""
    await asyncio.sleep(_SNAPSHOT_SECONDS)
    async with database.connection() as db:
        found = [(endpoint, await queries.find_next_transaction(db, endpoint)) for endpoint in endpoints]
    return [(endpoint, number) for endpoint, number in found if number is not None]


async def _replay_batch(database: Database, endpoint: Resumed, next_transaction: str) -> bool:
    """Whether it should have another turn in this run. An error of one endpoint does not stop the others."""
    try:
        if not await _try_begin(database, endpoint, next_transaction):
            await asyncio.sleep(_POLL_SECONDS)
            return True
        async with lease_lane(database, endpoint.company_id, endpoint.endpoint_id, _LEASE_SECONDS) as is_leased:
            return is_leased and not await _queue_missed(database, endpoint)
    except Overtaken:
        return False
    except (DatabaseAway, *RETRYABLE) as error:
        reason = f"{type(error).__name__}: {error}"
        log.warning("webhook replay waits for the database", webhook_id=endpoint.endpoint_id, reason=reason)
    except Exception:
        log.exception("webhook replay failed", webhook_id=endpoint.endpoint_id)
    return False


async def _try_begin(database: Database, endpoint: Resumed, next_transaction: str) -> bool:
    """Begins once all transactions that may have seen the endpoint paused have ended; returns whether it has begun."""
    if actions.find_progress(endpoint):
        return True
    async with database.connection() as db:
        until = await queries.find_end(db, endpoint, next_transaction)
    if until:
        await actions.begin(database, endpoint, until)
    return until is not None


async def _queue_missed(database: Database, endpoint: Resumed) -> bool:
    """Queues as many batches as fit into one turn; returns whether that was all."""
    end_of_turn = time.monotonic() + TURN_SECONDS
    progress = actions.find_progress(endpoint)
    while progress and not await actions.queue_batch(database, endpoint, progress):
        if time.monotonic() > end_of_turn:
            return False
    async with database.transaction() as tx:
        await queries.finish(tx, endpoint)
        notify_after_commit(tx, CHANNEL)
    return True
