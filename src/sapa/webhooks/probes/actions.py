"""Probing a suspended endpoint: choosing what is sent, and settling how it went."""

from datetime import UTC, datetime

from sapa.db.pool import Tx
from sapa.events import DELIVERY_ID
from sapa.values.sealing import Vault
from sapa.webhooks.dispatch.attempt import GONE, build_message, clean
from sapa.webhooks.dispatch.types import DueDelivery
from sapa.webhooks.endpoints import actions as endpoints
from sapa.webhooks.endpoints.fields import build_target
from sapa.webhooks.probes import queries
from sapa.webhooks.probes.types import DueProbe, Probe, ProbeResult
from sapa.webhooks.sender import SendResult

EMPTY_SECONDS = 60
"""After this time an endpoint for which nothing waits is looked at again."""


async def choose(tx: Tx, vault: Vault, address: str, due: DueProbe) -> Probe | None:
    """The oldest delivery that waits, counted as a probe. None when nothing waits, or the probe is not due any more."""
    delivery = await _choose_delivery(tx, due)
    message = build_message(delivery, address) if delivery else None
    if delivery is None or message is None:
        await queries.postpone(tx, due.company_id, due.endpoint_id, EMPTY_SECONDS)
        return None
    if not await queries.claim(tx, due.company_id, due.endpoint_id):
        return None
    stored = await endpoints.get_stored(tx, due.company_id, due.endpoint_id)
    return Probe(delivery, message, build_target(vault, stored))


async def _choose_delivery(tx: Tx, due: DueProbe) -> DueDelivery | None:
    """The oldest delivery that can still be sent. Expired ones are recorded as failed. If none is queued, the oldest
    missed event is queued now, before the endpoint is resumed."""
    while delivery := await queries.find_oldest(tx, due.company_id, due.endpoint_id):
        if delivery.body is not None:
            return delivery
        expired = ProbeResult(datetime.now(UTC), 0, None, "expired", GONE, None, b"", "failed")
        await queries.record(tx, due.company_id, delivery, expired)
    if await queries.queue_oldest_missed(tx, due.company_id, due.endpoint_id, DELIVERY_ID.new()):
        return await queries.find_oldest(tx, due.company_id, due.endpoint_id)
    return None


async def settle(tx: Tx, due: DueProbe, delivery: DueDelivery, outcome: SendResult) -> bool:
    """Records the probe. A success settles the delivery and resumes the endpoint; returns whether it was resumed."""
    # First, because it locks the lane, as the dispatcher does before it settles deliveries.
    is_resumed = outcome.delivered and await endpoints.resume_probed(
        tx, due.company_id, due.endpoint_id, outcome.status
    )
    result = ProbeResult(
        started_at=outcome.started_at,
        milliseconds=outcome.milliseconds,
        status=outcome.status,
        error=outcome.error,
        message=clean(outcome.message),
        address=clean(outcome.address),
        response=outcome.response,
        outcome="delivered" if outcome.delivered else "retrying",
    )
    await queries.record(tx, due.company_id, delivery, result)
    return is_resumed
