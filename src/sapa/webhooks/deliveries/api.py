"""How deliveries are looked up and sent again over HTTP."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict

from sapa.access import actions as access
from sapa.access.types import Scope
from sapa.db.pool import Tx
from sapa.events import EVENT_ID
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.outbound_call import OutboundCall
from sapa.http.query_string import POSITION, PageLimit, check_period
from sapa.http.responses import CursorPage, build_cursor_page
from sapa.webhooks.deliveries import actions
from sapa.webhooks.endpoints import actions as endpoints
from sapa.webhooks.types import (
    DeliveryAttempt,
    DeliveryFilter,
    DeliveryId,
    DeliveryNotFound,
    DeliveryRequest,
    DeliveryStatus,
    EndpointId,
    EndpointNotActive,
    EndpointNotFound,
    EventGone,
    WebhookDelivery,
)

routes = Routes("/webhook-deliveries", base=Base.CUSTOMER, tag="Webhook endpoints", resource="webhooks")
endpoint_routes = Routes("/webhook-endpoints", base=Base.CUSTOMER, tag="Webhook endpoints", resource="webhooks")


class WebhookDeliveriesQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """Which deliveries to list."""

    limit: PageLimit = 20
    before: Annotated[DeliveryId, Meta(description="Only deliveries older than this one."), POSITION] | None = None
    endpoint_id: Annotated[EndpointId, Meta(description="Only deliveries to this endpoint.")] | None = None
    status: Annotated[DeliveryStatus, Meta(description="Only deliveries with this status.")] | None = None
    event: Annotated[str, Meta(max_length=100, description="Only this kind of event.")] | None = None
    event_id: Annotated[str, EVENT_ID, Meta(description="Only deliveries of this event.")] | None = None


class WebhookDeliveryDetails(WebhookDelivery, frozen=True, rename="camel"):
    """A delivery with the request that is sent and every attempt."""

    request: DeliveryRequest
    attempt_log: Annotated[list[DeliveryAttempt], Meta(description="The attempts, oldest first.")]


class WebhookReplayIn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events to deliver again."""

    since: Annotated[datetime, Meta(tz=True, description="The start of the period.")]
    until: Annotated[datetime, Meta(tz=True, description="The end of the period. Now unless given.")] | None = None
    events: Annotated[
        list[str], Meta(description="Only these kinds of events. Those of the endpoint unless given.")
    ] = []


class WebhookReplay(Struct, frozen=True):
    """What was queued."""

    count: Annotated[int, Meta(examples=[42], description="The number of events that are delivered again.")]


@routes.get("", scope=Scope.WEBHOOKS_READ)
async def list_webhook_deliveries(call: Call, query: WebhookDeliveriesQuery) -> CursorPage[WebhookDelivery]:
    """List the deliveries of the last 30 days, newest first.

    To read older ones, send the response's nextBefore as `before`.
    """
    filter = DeliveryFilter(
        endpoint_id=query.endpoint_id,
        status=query.status,
        event=query.event,
        event_id=query.event_id,
        before=query.before,
        limit=query.limit,
    )
    found, has_more = await actions.list_page(call.db, call.company.id, filter)
    return build_cursor_page(found, query.limit, found[-1].id if has_more else None)


@routes.get("/{id}", scope=Scope.WEBHOOKS_READ, raises=[DeliveryNotFound])
async def get_webhook_delivery(call: Call, id: DeliveryId) -> WebhookDeliveryDetails:
    """Get one delivery: the request that is sent, and every attempt with its response."""
    context = call.context
    found = await actions.get_delivery(call.db, context.vault, call.company.id, id, context.settings.server.address)
    return WebhookDeliveryDetails(**asdict(found.delivery), request=found.request, attempt_log=found.attempts)


@routes.post(
    "/{id}/resend",
    scope=Scope.WEBHOOKS_WRITE,
    status=200,
    raises=[DeliveryNotFound, EndpointNotFound, EndpointNotActive, EventGone],
    tool=ToolTraits(is_destructive=False),
)
async def resend_webhook_delivery(call: Call, id: DeliveryId) -> WebhookDelivery:
    """Deliver the same event to the same endpoint again, under the same event id. The answer is the new delivery."""
    new = await actions.resend(call.db, call.company.id, id)
    await access.record_change(call.db, call.key, call.address, "delivery.resent", new.event_id)
    return new


@endpoint_routes.post(
    "/{id}/replay",
    scope=Scope.WEBHOOKS_WRITE,
    status=200,
    raises=[EndpointNotFound, EndpointNotActive],
    tool=ToolTraits(is_destructive=False),
)
async def replay_webhook_events(call: OutboundCall, id: EndpointId, body: WebhookReplayIn) -> WebhookReplay:
    """Deliver all events of a period again, in their order.

    Events are kept for 30 days. Each one has the same id as before. A long period is queued in parts: if the call is
    interrupted, those before it are delivered.
    """
    check_period("since", body.since, "until", body.until)
    database = call.context.database
    async with database.connection() as db:
        endpoint = await endpoints.get(db, call.context.vault, call.company.id, id)
    count = await actions.replay(database, call.company.id, id, body.since, body.until, body.events or None)

    async def record(tx: Tx) -> WebhookReplay:
        subject = f"{endpoint.url}: {count}"
        await access.record_change(tx, call.key, call.address, "webhook.replayed", subject)
        return WebhookReplay(count)

    return await call.commit(record)
