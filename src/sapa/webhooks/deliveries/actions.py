"""Looking up deliveries, and sending events again."""

from collections.abc import Callable
from datetime import UTC, datetime

from msgspec.structs import replace

from sapa.db.pool import Connection, Database, Tx, notify_after_commit
from sapa.events import CHANNEL, DELIVERY_ID, EVENT_ID
from sapa.http.errors import Invalid
from sapa.http.query_string import parse_date_time
from sapa.values.sealing import Vault
from sapa.webhooks.deliveries import queries
from sapa.webhooks.deliveries.queries import SentEvent, StoredAttempt, StoredEvent
from sapa.webhooks.dispatch.attempt import build_url
from sapa.webhooks.endpoints import actions as endpoints
from sapa.webhooks.endpoints.fields import check_events, open_headers, open_secrets
from sapa.webhooks.id_times import format_time, parse_time
from sapa.webhooks.sender import shorten
from sapa.webhooks.signing import build_headers
from sapa.webhooks.types import (
    DeliveryAttempt,
    DeliveryDetails,
    DeliveryFilter,
    DeliveryNotFound,
    DeliveryRequest,
    DeliveryStatus,
    EndpointNotFound,
    EventGone,
    WebhookDelivery,
)

MASK = "••••"
MAX_LISTED = 100
REPLAY_BATCH = 500
REACHES = (600, 7200, 86_400)
# Attempts have the worker's time, ids that of the process that made them.
CLOCK_SKEW_SECONDS = 300
_LAST_SECOND = 253_402_300_799.0


async def list_deliveries(db: Connection, company_id: int, filter: DeliveryFilter) -> list[WebhookDelivery]:
    """Newest first; the last one's id is the next page's `before`."""
    found, _ = await list_page(db, company_id, filter)
    return found


async def list_page(db: Connection, company_id: int, filter: DeliveryFilter) -> tuple[list[WebhookDelivery], bool]:
    """The same, and whether there are older ones."""
    if not 1 <= filter.limit <= MAX_LISTED:
        raise Invalid.field("limit", f"must be from 1 to {MAX_LISTED}")
    if filter.status is not None and filter.status not in list(DeliveryStatus):
        raise Invalid.field("status", f"must be one of {', '.join(DeliveryStatus)}")
    if filter.before is not None and not DELIVERY_ID.matches(filter.before):
        raise Invalid.field("before", f"must be a delivery's id, such as {DELIVERY_ID.example}")
    check_events([filter.event] if filter.event is not None else [], "event")
    found: list[WebhookDelivery] = []
    with_next = replace(filter, limit=filter.limit + 1)
    for oldest in _list_reaches(filter):
        found = await queries.list_deliveries(
            db,
            company_id,
            with_next,
            DELIVERY_ID.prefix + format_time(oldest),
            _build_time(oldest - CLOCK_SKEW_SECONDS),
        )
        if len(found) > filter.limit:
            break
    return found[: filter.limit], len(found) > filter.limit


def _list_reaches(filter: DeliveryFilter) -> list[float]:
    """Times to search back to, each further than the last: an endpoint's attempts are stored by time, and the latest
    are mostly enough. No delivery is older than its event."""
    if filter.event_id is not None:
        if not EVENT_ID.matches(filter.event_id):
            raise Invalid.field("eventId", f"must be an event's id, such as {EVENT_ID.example}")
        return [parse_time(filter.event_id)]
    if filter.endpoint_id is None:
        return [0.0]
    newest = parse_time(filter.before) if filter.before else datetime.now(UTC).timestamp()
    return [*(max(0.0, newest - seconds) for seconds in REACHES), 0.0]


def _build_time(seconds: float) -> str:
    return datetime.fromtimestamp(min(max(0.0, seconds), _LAST_SECOND), UTC).isoformat()


async def get_company_of(db: Connection, id: str) -> int:
    company_id = await queries.find_company_of_delivery(db, id) if DELIVERY_ID.matches(id) else None
    if company_id is None:
        raise DeliveryNotFound
    return company_id


async def get_delivery(db: Connection, vault: Vault, company_id: int, id: str, address: str) -> DeliveryDetails:
    """With its attempts, oldest first, and the request as the installation at this address sends it."""
    delivery = await queries.get_delivery(db, company_id, id)
    attempts = [_build_attempt(stored) for stored in await queries.list_attempts(db, company_id, id)]
    tried_at = parse_date_time(attempts[-1].started_at if attempts else delivery.event_at)
    request = await _get_request(db, vault, company_id, delivery, address, int(tried_at.timestamp()))
    return DeliveryDetails(delivery, request, attempts)


async def _get_request(
    db: Connection, vault: Vault, company_id: int, delivery: WebhookDelivery, address: str, tried_at: int
) -> DeliveryRequest:
    event = await queries.find_event(db, company_id, delivery.event_at, delivery.event_id)
    body = None if event is None else _build_body(event, address)
    about = (delivery.event_id, delivery.event or "", (body or "").encode(), tried_at)
    try:
        stored = await endpoints.get_stored(db, company_id, delivery.endpoint_id)
    except EndpointNotFound:
        return DeliveryRequest(None, list(build_headers([], *about)), body, {})
    custom = open_headers(vault, stored)
    values = build_headers(open_secrets(vault, stored), *about) | dict.fromkeys(custom, MASK)
    return DeliveryRequest(stored.url, [*build_headers([], *about), *custom], body, values)


def _build_body(event: SentEvent, address: str) -> str:
    url = build_url(address, event.kind, event.resource_id)
    return shorten(event.body, event.resource_id, url).decode()


def _build_attempt(stored: StoredAttempt) -> DeliveryAttempt:
    return DeliveryAttempt(
        stored.number,
        stored.is_probe,
        stored.started_at,
        stored.milliseconds,
        stored.outcome,
        stored.response_status,
        stored.error,
        stored.message,
        stored.address,
        (stored.response or b"").decode(errors="replace"),
    )


async def resend(tx: Tx, company_id: int, id: str) -> WebhookDelivery:
    """A new delivery of the same event to the same endpoint, due at once."""
    old = await queries.get_delivery(tx, company_id, id)
    await endpoints.get_active(tx, company_id, old.endpoint_id)
    if await queries.find_event(tx, company_id, old.event_at, old.event_id) is None:
        raise EventGone
    event, new_id = StoredEvent(old.event_id, old.event_at, 0), DELIVERY_ID.new()
    await queries.queue_again(tx, company_id, old.endpoint_id, [new_id], [event])
    notify_after_commit(tx, CHANNEL)
    return await queries.get_delivery(tx, company_id, new_id)


async def replay(
    database: Database,
    company_id: int,
    endpoint_id: str,
    since: datetime,
    until: datetime | None = None,
    kinds: list[str] | None = None,
    report: Callable[[int], None] = lambda count: None,
) -> int:
    """Queues new deliveries of the events of a period, in their order; returns how many.

    Each batch is its own transaction, so that a long period blocks nobody; `report` gets the count after each.
    """
    until = until or datetime.now(UTC)
    last, count, batch = StoredEvent("", since.isoformat(), -1), 0, REPLAY_BATCH
    while batch == REPLAY_BATCH:
        async with database.transaction() as tx:
            events = await _queue_batch(tx, company_id, endpoint_id, last, until, kinds)
        batch = len(events)
        count += batch
        last = events[-1] if events else last
        report(count)
    return count


async def _queue_batch(
    tx: Tx, company_id: int, endpoint_id: str, after: StoredEvent, until: datetime, kinds: list[str] | None
) -> list[StoredEvent]:
    endpoint = await endpoints.get_active(tx, company_id, endpoint_id)
    chosen = check_events(kinds) if kinds else endpoint.kinds
    events = await queries.list_events(tx, company_id, endpoint_id, after, until, chosen, REPLAY_BATCH)
    if events:
        ids = [DELIVERY_ID.new() for _ in events]
        await queries.queue_again(tx, company_id, endpoint_id, ids, events)
        notify_after_commit(tx, CHANNEL)
    return events
