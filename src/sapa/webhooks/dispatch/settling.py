"""Settling: the results of attempts become history, a scheduled retry, or the suspension of an endpoint.

Results are settled in batches, a transaction for each company. Only deliveries that a batch really moves are recorded
and counted, so settling the same result again after a lost connection does nothing.
"""

import time
from collections.abc import Iterable, Sequence

from sapa.access.actions import get_company
from sapa.db.pool import Database, Tx
from sapa.events import emit
from sapa.webhooks.dispatch import queries
from sapa.webhooks.dispatch.lanes import queue_transaction
from sapa.webhooks.dispatch.types import MAX_FAILURES, RETRY_SECONDS, AttemptResult, LockedLane
from sapa.webhooks.id_times import format_time
from sapa.webhooks.sender import parse_url
from sapa.webhooks.types import NOTICE_ID, SuspendedEndpoint, WebhookSuspended

MAIL_SECONDS = 3600
"""Owners get at most one mail in this time about the same endpoint."""


async def settle(database: Database, company_id: int, owner: str, results: Sequence[AttemptResult]) -> list[str]:
    """Records one company's results in the order in which they came; returns the endpoints that they suspend."""
    async with queue_transaction(database, commits_late=True) as tx:
        endpoint_ids = {result.endpoint_id for result in results}
        lanes = {lane.endpoint_id: lane for lane in await queries.lock_lanes(tx, company_id, list(endpoint_ids))}
        owned = [_is_owned(lanes.get(result.endpoint_id), owner, result.epoch) for result in results]
        # A success counts even when it comes too late. A late failure does not: the current owner records its own.
        valid = [result for result, is_owned in zip(results, owned, strict=True) if is_owned or result.error is None]
        moved = await _move(tx, company_id, valid)
        counted = [
            result
            for result, is_owned in zip(results, owned, strict=True)
            if is_owned and result.delivery_id in moved and result.is_counted
        ]
        return await _count_failures(tx, company_id, lanes, counted)


def _is_owned(lane: LockedLane | None, owner: str, epoch: int) -> bool:
    return lane is not None and (lane.owner, lane.epoch) == (owner, epoch)


async def _move(tx: Tx, company_id: int, results: Sequence[AttemptResult]) -> set[str]:
    """Takes deliveries out of the queue, or schedules their retry; returns those that were still queued."""
    postponed = [result.delivery_id for result in results if result.is_ours]
    if postponed:
        await queries.postpone(tx, company_id, postponed, RETRY_SECONDS[0])
    counted = [result for result in results if not result.is_ours]
    finished = await queries.finish(tx, company_id, [result for result in counted if result.outcome != "retrying"])
    retried = await queries.schedule_retry(
        tx, company_id, [result for result in counted if result.outcome == "retrying"]
    )
    return {*finished, *retried}


async def _count_failures(
    tx: Tx, company_id: int, lanes: dict[str, LockedLane], results: Iterable[AttemptResult]
) -> list[str]:
    by_endpoint: dict[str, list[AttemptResult]] = {}
    for result in results:
        by_endpoint.setdefault(result.endpoint_id, []).append(result)
    suspended = []
    for endpoint_id, own in by_endpoint.items():
        failures, is_over = fold_failures(lanes[endpoint_id].failures, [result.error is not None for result in own])
        if failures != lanes[endpoint_id].failures:
            await queries.set_failures(tx, company_id, endpoint_id, failures)
        if is_over and await _suspend(tx, company_id, endpoint_id, own):
            suspended.append(endpoint_id)
    return suspended


def fold_failures(failures: int, outcomes: Iterable[bool]) -> tuple[int, bool]:
    """Failures in a row after more attempts, True for each that failed, and whether they ever reached the limit."""
    is_over = False
    for failed in outcomes:
        failures = failures + 1 if failed else 0
        is_over = is_over or failures >= MAX_FAILURES
    return failures, is_over


async def _suspend(tx: Tx, company_id: int, endpoint_id: str, results: Sequence[AttemptResult]) -> bool:
    last = next(result for result in reversed(results) if result.error is not None)
    reason = f"{MAX_FAILURES} attempts in a row failed, so deliveries are held. The last failure: {last.message}"
    mailed_since = NOTICE_ID.prefix + format_time(time.time() - MAIL_SECONDS)
    suspension = await queries.suspend(
        tx, company_id, endpoint_id, reason, NOTICE_ID.new(), WebhookSuspended.kind, mailed_since
    )
    if suspension is None:
        return False
    announced = SuspendedEndpoint(
        id=endpoint_id,
        origin=str(parse_url(suspension.url).origin()),
        description=suspension.description,
        status="suspended",
        failures=MAX_FAILURES,
        error=last.error or "internal",
        response_status=last.status,
        auto_resume=suspension.auto_resume,
        suspended_at=suspension.suspended_at,
        next_probe_at=suspension.next_probe_at,
    )
    await emit(tx, await get_company(tx, company_id), WebhookSuspended(announced))
    return True
