"""Callbacks of simulators: stored until they are due by the company's clock, then posted like a provider's."""

import asyncio
from collections.abc import Sequence

import msgspec
import structlog

from sapa.context import AppContext
from sapa.db.pool import Connection, Database, Tx, announce_due
from sapa.outbound.client import NotSent, Unclear
from sapa.sandbox import queries
from sapa.sandbox.queries import SimulatedCallback
from sapa.sandbox.subscriptions import actions as subscriptions
from sapa.sandbox.types import PlannedCallback
from sapa.work import leases
from sapa.work.loops import repeat_when_due

PAUSE_SECONDS = 0.2
LEASE = "sandbox callbacks"
LEASE_SECONDS = 15.0
BATCH = 100
SETTLED_TOGETHER = 20
"""If the worker dies, so many are posted once more, and recognised."""
MAX_TRIES = 20
POST_SECONDS = 5.0

log = structlog.get_logger()


async def schedule(tx: Tx, company_id: int, path: str, planned: Sequence[PlannedCallback]) -> None:
    """Posts to one of our paths, such as /hooks/carriers/…, after delays by the company's clock, and to the address
    that is subscribed to it."""
    if not planned:
        return
    await queries.insert_callbacks(tx, company_id, path, planned)
    after_seconds = min(each.after_seconds for each in planned)
    announce_due(tx, queries.CALLBACKS, after_seconds)
    announce_due(tx, subscriptions.QUEUE, after_seconds)


async def post_due(context: AppContext, stopping: asyncio.Event) -> None:
    """Worker service: one worker posts at a time, so that callbacks arrive in order."""
    holder = leases.new_holder()

    async def step() -> bool:
        return await _holds_lease(context.database, holder) and await _post_batch(context)

    await repeat_when_due(context.database, queries.CALLBACKS, step, stopping, pause=PAUSE_SECONDS)
    async with context.database.connection() as db:
        await leases.release_all(db, holder)


async def _holds_lease(database: Database, holder: str) -> bool:
    async with database.connection() as db:
        return await leases.take(db, LEASE, holder, LEASE_SECONDS) is not None


async def _post_batch(context: AppContext) -> bool:
    """Whether there may be more."""
    async with context.database.connection() as db:
        due = await queries.list_due(db, BATCH)
    for start in range(0, len(due), SETTLED_TOGETHER):
        part = due[start : start + SETTLED_TOGETHER]
        outcomes = [(callback, await _post(context, callback)) for callback in part]
        async with context.database.connection() as db:
            await _settle(db, outcomes)
    return len(due) == BATCH


async def _post(context: AppContext, callback: SimulatedCallback) -> bool:
    url = await context.loopback.address() + callback.path
    headers = msgspec.json.decode(callback.headers)
    try:
        response = await context.client.call("POST", url, headers=headers, content=callback.body, seconds=POST_SECONDS)
    except (NotSent, Unclear) as error:
        log.warning("sandbox callback not accepted", company_id=callback.company_id, reason=str(error))
        return False
    return response.status < 300


async def _settle(db: Connection, outcomes: Sequence[tuple[SimulatedCallback, bool]]) -> None:
    """A callback that is never accepted is dropped in the end, as providers do."""
    done: dict[int, list[int]] = {}
    for callback, is_accepted in outcomes:
        if is_accepted or callback.tries >= MAX_TRIES:
            done.setdefault(callback.company_id, []).append(callback.id)
        else:
            await queries.postpone_callback(db, callback)
    for company_id, ids in done.items():
        await queries.delete_callbacks(db, company_id, ids)
