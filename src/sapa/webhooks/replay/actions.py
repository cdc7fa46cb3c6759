"""What a resumed endpoint missed: found and put into its queue, batch by batch.

Each batch is one transaction that also saves the progress, so the work can stop after any of them. The statement that
queues an event also checks that it is neither queued nor attempted.
"""

from collections.abc import Awaitable, Callable

import msgspec

from sapa.db.pool import Database, Tx
from sapa.webhooks.dispatch.lanes import queue_transaction
from sapa.webhooks.replay import queries
from sapa.webhooks.replay.types import MissedEvent, Overtaken, Progress, Resumed
from sapa.webhooks.types import Missed

BATCH = 1000

SKIPPED = "skipped when the endpoint was resumed"

Step = Callable[[Tx, Resumed, Progress], Awaitable[bool]]


def find_progress(endpoint: Resumed) -> Progress | None:
    """None when catching up has not begun since the endpoint was resumed."""
    progress = endpoint.stored and msgspec.json.decode(endpoint.stored, type=Progress)
    return progress if progress and progress.resumed_at == endpoint.resumed_at else None


async def begin(database: Database, endpoint: Resumed, until: str) -> None:
    """All transactions that may have seen the endpoint paused were over at `until`."""
    progress = Progress(endpoint.resumed_at, until, endpoint.since)
    async with queue_transaction(database) as tx:
        await queries.delete_all_newest(tx, endpoint)
        if endpoint.catch_up == Missed.LATEST:
            progress.since = await queries.get_first_missed(tx, endpoint)
        await _save(tx, endpoint, progress)


async def queue_batch(database: Database, endpoint: Resumed, progress: Progress) -> bool:
    """Takes one step; returns whether it was the last."""
    async with queue_transaction(database) as tx:
        step = _choose_step(endpoint, progress)
        is_last = await step(tx, endpoint, progress)
        await _save(tx, endpoint, progress)
    return is_last


def _choose_step(endpoint: Resumed, progress: Progress) -> Step:
    if endpoint.catch_up == Missed.SKIP:
        return _skip
    if endpoint.catch_up == Missed.ALL:
        return _queue_all
    if not progress.is_gathered:
        return _gather_newest
    return _queue_newest if progress.is_sorted_out else _skip_outdated


async def _save(tx: Tx, endpoint: Resumed, progress: Progress) -> None:
    stored = msgspec.json.encode(progress).decode()
    if not await queries.save_progress(tx, endpoint, stored):
        raise Overtaken
    endpoint.stored = stored


async def _skip(tx: Tx, endpoint: Resumed, _: Progress) -> bool:
    return await queries.skip(tx, endpoint, await queries.list_to_skip(tx, endpoint, BATCH), SKIPPED) < BATCH


async def _queue_all(tx: Tx, endpoint: Resumed, progress: Progress) -> bool:
    page = await _read_page(tx, endpoint, progress)
    await queries.queue(tx, endpoint, page)
    return len(page) < BATCH


async def _read_page(tx: Tx, endpoint: Resumed, progress: Progress) -> list[MissedEvent]:
    page = await queries.list_events(tx, endpoint, progress, BATCH)
    if page:
        progress.since, progress.event_id = page[-1].created_at, page[-1].id
    return page


async def _gather_newest(tx: Tx, endpoint: Resumed, progress: Progress) -> bool:
    page = await _read_page(tx, endpoint, progress)
    newest = {event.resource_id: event for event in sorted(page, key=lambda event: event.number)}
    await queries.upsert_newest(tx, endpoint, newest.values())
    progress.is_gathered = len(page) < BATCH
    return False


async def _skip_outdated(tx: Tx, endpoint: Resumed, progress: Progress) -> bool:
    """Skips held deliveries of resources that have a newer event, delivered or not."""
    held = await queries.list_held(tx, endpoint, progress, BATCH)
    await queries.skip(tx, endpoint, [delivery.id for delivery in held if delivery.is_outdated], SKIPPED)
    if held:
        progress.held_since, progress.held_id = held[-1].due_at, held[-1].id
    progress.is_sorted_out = len(held) < BATCH
    return False


async def _queue_newest(tx: Tx, endpoint: Resumed, _: Progress) -> bool:
    page = await queries.list_newest(tx, endpoint, BATCH)
    await queries.queue(tx, endpoint, page)
    await queries.delete_newest(tx, endpoint, page)
    return len(page) < BATCH
