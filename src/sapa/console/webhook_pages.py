"""Developer settings: webhook endpoints, their deliveries, and the catalogue of events."""

from datetime import datetime
from secrets import token_hex

from msgspec import UNSET
from starlette.responses import Response

from sapa.console.fields import parse_instant
from sapa.console.routes import (
    DEVELOPERS,
    PageRequest,
    console,
    go_to,
)
from sapa.events import CATALOGUE
from sapa.http.errors import Invalid
from sapa.http.query_string import BadValue, parse_date_time
from sapa.webhooks.deliveries import actions as deliveries
from sapa.webhooks.endpoints import actions as webhooks
from sapa.webhooks.endpoints import test_event
from sapa.webhooks.types import DeliveryFilter, DeliveryStatus, EndpointIn, EndpointPatch, Missed

PAGE = 25


@console.get("/{environment}/webhooks", roles=DEVELOPERS)
async def list_webhooks(visit: PageRequest) -> Response:
    async with visit.context.database.connection() as db:
        endpoints = await webhooks.list_endpoints(db, visit.context.vault, visit.company_id)
        notices = await webhooks.list_notices(db, visit.company_id)
    return visit.show("webhooks.html", endpoints=endpoints, notices=notices)


@console.get("/{environment}/webhooks/new", roles=DEVELOPERS)
async def show_new_webhook(visit: PageRequest) -> Response:
    return visit.show(
        "webhook_new.html",
        kinds=list_kinds(),
        chosen=visit.all_given("event"),
        given={name: visit.given(name) for name in ("url", "description")},
        once=token_hex(16),
    )


@console.post("/{environment}/webhooks", roles=DEVELOPERS, shown_by=show_new_webhook)
async def create_webhook(visit: PageRequest) -> Response:
    events = visit.all_given("event")
    if not events and not visit.given("all"):
        raise Invalid.field("event", "choose at least one, or all of them")
    given = EndpointIn(
        url=visit.given("url"),
        events=[] if visit.given("all") else events,
        description=visit.given("description") or None,
    )
    async with visit.context.database.transaction() as tx:
        await visit.take_once(tx)
        new = await webhooks.create(tx, visit.context.vault, visit.context.settings.webhooks, visit.company_id, given)
        await visit.record(tx, "webhook.created", new.endpoint.url)
    return visit.show("webhook_made.html", new=new)


@console.get("/{environment}/webhooks/{id}", roles=DEVELOPERS)
async def show_webhook(visit: PageRequest) -> Response:
    wanted = visit.request.query_params
    status = wanted.get("status") or None
    async with visit.context.database.connection() as db:
        notices = await webhooks.list_notices(db, visit.company_id)
        endpoint = await webhooks.get(db, visit.context.vault, visit.company_id, visit.request.path_params["id"])
        shown = await deliveries.list_deliveries(
            db,
            visit.company_id,
            DeliveryFilter(endpoint_id=endpoint.id, status=status, before=wanted.get("before") or None, limit=PAGE),
        )
    return visit.show(
        "webhook.html",
        endpoint=endpoint,
        deliveries=shown,
        kinds=list_kinds(),
        statuses=list(DeliveryStatus),
        status=status,
        more=shown[-1].id if len(shown) == PAGE else None,
        choices=list(Missed),
        suspended_at=next((notice.created_at for notice in notices if notice.resource_id == endpoint.id), None),
        given={name: visit.given(name) for name in ("since", "until")},
    )


@console.post("/{environment}/webhooks/{id}", roles=DEVELOPERS, shown_by=show_webhook)
async def change_webhook(visit: PageRequest) -> Response:
    id = visit.request.path_params["id"]
    description = visit.given("description") or None
    patch = EndpointPatch(
        url=visit.given("url") or UNSET,
        events=[] if visit.given("all") else visit.all_given("event") or UNSET,
        description=description,
    )
    async with visit.context.database.transaction() as tx:
        endpoint = await webhooks.update(
            tx, visit.context.vault, visit.context.settings.webhooks, visit.company_id, id, patch
        )
        await visit.record(tx, "webhook.changed", endpoint.url)
    return go_to(visit.path(f"/webhooks/{id}"))


@console.post("/{environment}/webhooks/{id}/resume", roles=DEVELOPERS, shown_by=show_webhook)
async def resume_webhook(visit: PageRequest) -> Response:
    id, missed = visit.request.path_params["id"], visit.given("missed")
    if missed not in list(Missed):
        raise Invalid.field("missed", f"must be one of {', '.join(Missed)}")
    async with visit.context.database.transaction() as tx:
        endpoint = await webhooks.resume(tx, visit.context.vault, visit.company_id, id, Missed(missed))
        await visit.record(tx, "webhook.resumed", endpoint.url)
    return go_to(visit.path(f"/webhooks/{id}"))


@console.post("/{environment}/webhooks/{id}/replay", roles=DEVELOPERS, shown_by=show_webhook)
async def replay_events(visit: PageRequest) -> Response:
    """What happened in a time is delivered once more, in its order, with the same event ids."""
    id, kind = visit.request.path_params["id"], visit.given("event")
    since, until = _read_instant(visit, "since"), _read_instant(visit, "until")
    if since is None:
        raise Invalid.field("since", "is required: from when on")
    async with visit.context.database.connection() as db:
        endpoint = await webhooks.get(db, visit.context.vault, visit.company_id, id)
    database = visit.context.database
    count = await deliveries.replay(database, visit.company_id, id, since, until, [kind] if kind else None)
    async with database.transaction() as tx:
        await visit.record(tx, "webhook.replayed", f"{endpoint.url}: {count}")
    return visit.show("webhook_replayed.html", endpoint=endpoint, count=count)


def _read_instant(visit: PageRequest, name: str) -> datetime | None:
    text = parse_instant(visit.given(name), is_end=name == "until")
    try:
        return parse_date_time(text) if text else None
    except BadValue as error:
        raise Invalid.field(name, str(error)) from None


@console.post("/{environment}/webhooks/{id}/pause", roles=DEVELOPERS, shown_by=show_webhook)
async def pause_webhook(visit: PageRequest) -> Response:
    id = visit.request.path_params["id"]
    async with visit.context.database.transaction() as tx:
        endpoint = await webhooks.pause(tx, visit.context.vault, visit.company_id, id)
        await visit.record(tx, "webhook.paused", endpoint.url)
    return go_to(visit.path(f"/webhooks/{id}"))


@console.post("/{environment}/webhooks/{id}/rotate", roles=DEVELOPERS, shown_by=show_webhook)
async def rotate_webhook(visit: PageRequest) -> Response:
    id = visit.request.path_params["id"]
    async with visit.context.database.transaction() as tx:
        new = await webhooks.rotate(tx, visit.context.vault, visit.company_id, id, end_overlap=bool(visit.given("now")))
        await visit.record(tx, "webhook.rotated", new.endpoint.url)
    return visit.show("webhook_made.html", new=new)


@console.post("/{environment}/webhooks/{id}/delete", roles=DEVELOPERS, shown_by=show_webhook)
async def delete_webhook(visit: PageRequest) -> Response:
    id = visit.request.path_params["id"]
    async with visit.context.database.transaction() as tx:
        endpoint = await webhooks.get(tx, visit.context.vault, visit.company_id, id)
        await webhooks.delete(tx, visit.company_id, id)
        await visit.record(tx, "webhook.deleted", endpoint.url)
    return go_to(visit.path("/webhooks"))


@console.post("/{environment}/webhooks/{id}/test", roles=DEVELOPERS, shown_by=show_webhook)
async def test_webhook(visit: PageRequest) -> Response:
    """Sends a trial delivery now and shows what came of it; nothing of it is kept or counted."""
    id = visit.request.path_params["id"]
    async with visit.context.database.connection() as db:
        endpoint = await webhooks.get(db, visit.context.vault, visit.company_id, id)
        target, message = await test_event.build_test_event(
            db, visit.context.vault, visit.company_id, id, visit.given("event") or None
        )
    outcome = await test_event.send_test_event(visit.context.settings.webhooks, target, message)
    return visit.show("webhook_tested.html", endpoint=endpoint, message=message, outcome=outcome)


@console.get("/{environment}/deliveries/{id}", roles=DEVELOPERS)
async def show_delivery(visit: PageRequest) -> Response:
    async with visit.context.database.connection() as db:
        details = await deliveries.get_delivery(
            db,
            visit.context.vault,
            visit.company_id,
            visit.request.path_params["id"],
            visit.context.settings.server.address,
        )
    return visit.show("delivery.html", details=details)


@console.post("/{environment}/deliveries/{id}/resend", roles=DEVELOPERS, shown_by=show_delivery)
async def resend_delivery(visit: PageRequest) -> Response:
    async with visit.context.database.transaction() as tx:
        new = await deliveries.resend(tx, visit.company_id, visit.request.path_params["id"])
        await visit.record(tx, "delivery.resent", new.event_id)
    return go_to(visit.path(f"/deliveries/{new.id}"))


@console.get("/{environment}/events", roles=DEVELOPERS)
async def show_catalogue(visit: PageRequest) -> Response:
    return visit.show("events.html", kinds=list_kinds())


def list_kinds() -> list[tuple[str, str]]:
    """Every kind of event and what it means."""
    return [(kind, (event.__doc__ or "").strip().splitlines()[0]) for kind, event in sorted(CATALOGUE.items())]
