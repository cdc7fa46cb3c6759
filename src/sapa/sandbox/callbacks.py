"""Callbacks of simulators: stored until they are due by the company's clock, then posted like a provider's."""

import asyncio
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
import structlog

from sapa.context import AppContext
from sapa.db.pool import Connection, Database, Tx, announce_due
from sapa.sandbox import queries
from sapa.sandbox.queries import SimulatedCallback
from sapa.sandbox.subscriptions import actions as subscriptions
from sapa.sandbox.types import PlannedCallback
from sapa.values.hook_calls import HookCall
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
    has_copies = await queries.insert_callbacks(tx, company_id, path, planned)
    announce_scheduled(tx, planned, has_copies=has_copies)


def announce_scheduled(tx: Tx, planned: Sequence[PlannedCallback], *, has_copies: bool) -> None:
    """`has_copies` says whether an address is subscribed to them."""
    after_seconds = min(each.after_seconds for each in planned)
    announce_due(tx, queries.CALLBACKS, after_seconds)
    if has_copies:
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
        outcomes = []
        for path, callbacks in groupby(due[start : start + SETTLED_TOGETHER], attrgetter("path")):
            outcomes += await _post_all(context, path, list(callbacks))
        async with context.database.connection() as db:
            await _settle(db, outcomes)
    return len(due) == BATCH


async def _post_all(
    context: AppContext, path: str, callbacks: Sequence[SimulatedCallback]
) -> list[tuple[SimulatedCallback, bool]]:
    """In their order: one by one, or side by side where the hook keeps the order, so that they are stored together."""
    account = await context.loopback.find_account(path)
    if account is None:
        accepted = [await _post(context, callback, None) for callback in callbacks]
    else:
        accepted = await asyncio.gather(*(_post(context, callback, account) for callback in callbacks))
    return list(zip(callbacks, accepted, strict=True))


async def _post(context: AppContext, callback: SimulatedCallback, account: Any) -> bool:
    headers = msgspec.json.decode(callback.headers)
    call = HookCall("POST", callback.path, {}, headers, callback.body, "127.0.0.1", account=account)
    try:
        async with asyncio.timeout(POST_SECONDS):
            return (await context.loopback.answer(call)).status < 300
    except TimeoutError:
        log.warning("sandbox callback not accepted", company_id=callback.company_id)
        return False


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
