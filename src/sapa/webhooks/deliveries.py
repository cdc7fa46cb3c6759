"""Deliveries as people look at them, and sending again what was sent before."""

from collections.abc import Callable
from datetime import UTC, datetime

from sapa.db.pool import (
    Connection,
    Database,
    Tx,
    notify_after_commit,
)
from sapa.events import CHANNEL, DELIVERY_ID, EVENT_ID
from sapa.http.errors import Invalid
from sapa.values.sealing import Vault
from sapa.webhooks import delivery_queries, queries
from sapa.webhooks.attempt import build_url
from sapa.webhooks.delivery_queries import SentEvent, StoredAttempt, StoredEvent
from sapa.webhooks.endpoint import check_events, open_headers
from sapa.webhooks.id_times import made_at, write_time
from sapa.webhooks.sender import shorten
from sapa.webhooks.signing import build_headers
from sapa.webhooks.types import (
    Delivery,
    DeliveryAttempt,
    DeliveryDetails,
    DeliveryFilter,
    DeliveryNotFound,
    DeliveryRequest,
    DeliveryStatus,
    EndpointNotActive,
    EndpointNotFound,
    EventGone,
)

MOST_LISTED = 100
REPLAY_BATCH = 500
REACHES = (600, 7200, 86_400)
# Attempts bear the worker's time, ids that of whoever made them.
CLOCK_SKEW_SECONDS = 300
_LAST_SECOND = 253_402_300_799.0


async def list_deliveries(db: Connection, company_id: int, wanted: DeliveryFilter) -> list[Delivery]:
    """The newest first; the last one's id is the next page's `before`."""
    if not 1 <= wanted.limit <= MOST_LISTED:
        raise Invalid.field("limit", f"must be from 1 to {MOST_LISTED}")
    if wanted.status is not None and wanted.status not in list(DeliveryStatus):
        raise Invalid.field("status", f"must be one of {', '.join(DeliveryStatus)}")
    if wanted.before is not None and not DELIVERY_ID.matches(wanted.before):
        raise Invalid.field("before", f"must be a delivery's id, such as {DELIVERY_ID.example}")
    check_events([wanted.event] if wanted.event is not None else [])
    found: list[Delivery] = []
    for oldest in _list_reaches(wanted):
        found = await delivery_queries.list_deliveries(
            db, company_id, wanted, DELIVERY_ID.prefix + write_time(oldest), _instant(oldest - CLOCK_SKEW_SECONDS)
        )
        if len(found) == wanted.limit:
            break
    return found


def _list_reaches(wanted: DeliveryFilter) -> list[float]:
    """How far back to look, ever further: an endpoint's attempts are stored by time, and mostly a look at the last
    ones is enough. No delivery is older than its event."""
    if wanted.event_id is not None:
        if not EVENT_ID.matches(wanted.event_id):
            raise Invalid.field("event-id", f"must be an event's id, such as {EVENT_ID.example}")
        return [made_at(wanted.event_id)]
    if wanted.endpoint_id is None:
        return [0.0]
    newest = made_at(wanted.before) if wanted.before else datetime.now(UTC).timestamp()
    return [*(max(0.0, newest - seconds) for seconds in REACHES), 0.0]


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(min(max(0.0, seconds), _LAST_SECOND), UTC).isoformat()


async def get_company_of(db: Connection, id: str) -> int:
    """The company that a delivery belongs to."""
    found = await delivery_queries.find_company_of_delivery(db, id) if DELIVERY_ID.matches(id) else None
    if found is None:
        raise DeliveryNotFound
    return found


async def get_delivery(db: Connection, vault: Vault, company_id: int, id: str, address: str) -> DeliveryDetails:
    """With its tries, oldest first, and what is sent by the installation at this address."""
    delivery = await delivery_queries.get_delivery(db, company_id, id)
    attempts = [_build_attempt(stored) for stored in await delivery_queries.list_attempts(db, company_id, id)]
    return DeliveryDetails(delivery, await _build_request(db, vault, company_id, delivery, address), attempts)


async def _build_request(
    db: Connection, vault: Vault, company_id: int, delivery: Delivery, address: str
) -> DeliveryRequest:
    event = await delivery_queries.find_event(db, company_id, delivery.event_at, delivery.event_id)
    text = None if event is None else _build_body(event, address)
    ours = list(build_headers([], "", "", b"", 0))
    try:
        stored = await queries.get_endpoint(db, company_id, delivery.endpoint_id)
    except EndpointNotFound:
        return DeliveryRequest(None, ours, text)
    return DeliveryRequest(stored.url, [*ours, *open_headers(vault, stored)], text)


def _build_body(event: SentEvent, address: str) -> str:
    url = build_url(address, event.kind, event.resource_id)
    return shorten(event.body, event.resource_id, url).decode()


def _build_attempt(stored: StoredAttempt) -> DeliveryAttempt:
    return DeliveryAttempt(
        stored.number,
        stored.started_at,
        stored.milliseconds,
        stored.outcome,
        stored.response_status,
        stored.error,
        stored.message,
        stored.address,
        (stored.response or b"").decode(errors="replace"),
    )


async def resend(tx: Tx, company_id: int, id: str) -> Delivery:
    """A new delivery of the same event to the same endpoint, due at once."""
    old = await delivery_queries.get_delivery(tx, company_id, id)
    await _check_active(tx, company_id, old.endpoint_id)
    if await delivery_queries.find_event(tx, company_id, old.event_at, old.event_id) is None:
        raise EventGone
    event, new_id = StoredEvent(old.event_id, old.event_at, 0), DELIVERY_ID.new()
    await delivery_queries.queue_again(tx, company_id, old.endpoint_id, [new_id], [event])
    notify_after_commit(tx, CHANNEL)
    return await delivery_queries.get_delivery(tx, company_id, new_id)


async def replay(
    database: Database,
    company_id: int,
    endpoint_id: str,
    since: datetime,
    until: datetime | None = None,
    kinds: list[str] | None = None,
    report: Callable[[int], None] = lambda count: None,
) -> int:
    """New deliveries of what happened in a time, in its order; how many they are.

    Queued batch by batch, so that a long time holds up nobody; `report` hears of each batch.
    """
    until = until or datetime.now(UTC)
    place, count, batch = StoredEvent("", since.isoformat(), -1), 0, REPLAY_BATCH
    while batch == REPLAY_BATCH:
        async with database.transaction() as tx:
            events = await _queue_batch(tx, company_id, endpoint_id, place, until, kinds)
        batch = len(events)
        count += batch
        place = events[-1] if events else place
        report(count)
    return count


async def _queue_batch(
    tx: Tx, company_id: int, endpoint_id: str, place: StoredEvent, until: datetime, kinds: list[str] | None
) -> list[StoredEvent]:
    subscribed = await _check_active(tx, company_id, endpoint_id)
    wanted = check_events(kinds) if kinds else subscribed
    events = await delivery_queries.list_recorded(tx, company_id, place, until, wanted, REPLAY_BATCH)
    if events:
        ids = [DELIVERY_ID.new() for _ in events]
        await delivery_queries.queue_again(tx, company_id, endpoint_id, ids, events)
        notify_after_commit(tx, CHANNEL)
    return events


async def _check_active(tx: Tx, company_id: int, endpoint_id: str) -> list[str]:
    """The kinds that an active endpoint is subscribed to."""
    stored = await queries.get_endpoint(tx, company_id, endpoint_id)
    if stored.status != "active":
        raise EndpointNotActive
    if stored.catch_up is not None:
        raise EndpointNotActive("The webhook endpoint is still catching up; try again in a moment.")
    return stored.kinds
