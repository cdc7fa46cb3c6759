"""Developer settings: webhook endpoints, their deliveries, and the catalogue of events."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from msgspec import UNSET, Struct
from starlette.responses import Response

from sapa.console.charts import Chart, build_stacks
from sapa.console.fields import parse_instant, spread_instant
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console, go_to
from sapa.console.translations import translate
from sapa.events import CATALOGUE
from sapa.http.errors import Invalid
from sapa.http.query_string import BadValue, parse_date_time
from sapa.reports import actions as reports
from sapa.reports.types import EndpointHour
from sapa.webhooks.deliveries import actions as deliveries
from sapa.webhooks.endpoints import actions as webhooks
from sapa.webhooks.endpoints import test_event
from sapa.webhooks.types import (
    DeliveryFilter,
    DeliveryStatus,
    Missed,
    WebhookEndpointIn,
    WebhookEndpointPatch,
    WebhookSuspended,
)

PAGE = 25
PAGES_OF = {
    "cust_": "/customers", "order_": "/orders", "prod_": "/products", "shp_": "/shipments", "tkt_": "/inbox",
}  # fmt: skip
"""The page of a resource, by the start of its id."""
SNIPPETS = {
    "Python": "from sapa_client.webhooks import verify\n\nevent = verify(request.body, request.headers, SECRET)",
    "TypeScript": 'import { verifyWebhook } from "@sapa/client";\n\n'
    "const event = await verifyWebhook(request.body, request.headers, SECRET);",
}
"""How a receiver checks a signature."""


class WebhookForm(Struct, frozen=True):
    """What the form of a webhook shows: what is stored, or what was entered."""

    url: str = ""
    description: str = ""
    events: Sequence[str] = ()
    all: bool = False
    auto_resume: bool = True


@console.get("/{environment}/webhooks", roles=DEVELOPERS)
async def list_webhooks(page: PageRequest) -> Response:
    async with page.context.database.connection() as db:
        endpoints = await webhooks.list_endpoints(db, page.context.vault, page.company_id)
        notices = await webhooks.list_notices(db, page.company_id)
        health = {one.id: one for one in await reports.list_endpoint_health(db, page.company_id)}
    return page.show("webhooks.html", endpoints=endpoints, notices=notices, health=health)


@console.get("/{environment}/webhooks/new", roles=DEVELOPERS)
async def show_new_webhook(page: PageRequest) -> Response:
    return page.show(
        "webhook_new.html",
        kinds=list_kinds(),
        given=_read_given(page) if page.form else WebhookForm(all=True),
    )


def _read_given(page: PageRequest) -> WebhookForm:
    return WebhookForm(
        page.form_value("url"),
        page.form_value("description"),
        page.form_values("event"),
        bool(page.form_value("all")),
        bool(page.form_value("auto_resume")),
    )


def _list_events(page: PageRequest) -> list[str]:
    """The chosen events; none of them for all."""
    if page.form_value("all"):
        return []
    if not (events := page.form_values("event")):
        raise Invalid.field("event", "choose at least one, or all of them")
    return events


@console.post("/{environment}/webhooks", roles=DEVELOPERS, shown_by=show_new_webhook)
async def create_webhook(page: PageRequest) -> Response:
    body = WebhookEndpointIn(
        url=page.form_value("url"),
        events=_list_events(page),
        headers=_parse_headers(page.form_value("headers")),
        description=page.form_value("description") or None,
        auto_resume=bool(page.form_value("auto_resume")),
    )
    async with page.context.database.transaction() as tx:
        await page.claim_once(tx)
        new = await webhooks.create(tx, page.context.vault, page.context.settings.webhooks, page.company_id, body)
        await page.record(tx, "webhook.created", new.endpoint.url)
    page.form_page = page.path(f"/webhooks/{new.endpoint.id}")
    return page.show("webhook_made.html", new=new)


@console.get("/{environment}/webhooks/{id}", roles=DEVELOPERS)
async def show_webhook(page: PageRequest) -> Response:
    wanted = page.request.query_params
    status = wanted.get("status") or None
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=23)
    async with page.context.database.connection() as db:
        notices = await webhooks.list_notices(db, page.company_id)
        health = {one.id: one for one in await reports.list_endpoint_health(db, page.company_id)}
        endpoint = await webhooks.get(db, page.context.vault, page.company_id, page.request.path_params["id"])
        *hours, day = await reports.list_endpoint_hours(db, page.company_id, endpoint.id, start)
        listed = await deliveries.list_deliveries(
            db,
            page.company_id,
            DeliveryFilter(endpoint_id=endpoint.id, status=status, before=wanted.get("before") or None, limit=PAGE),
        )
    return page.show(
        "webhook.html",
        endpoint=endpoint,
        health=health.get(endpoint.id),
        day=day,
        hours=[(page.formats.clock(start + timedelta(hours=place)), one) for place, one in enumerate(hours)],
        chart=_draw_hours(page, start, hours),
        snippets=SNIPPETS,
        deliveries=listed,
        kinds=list_kinds(),
        statuses=list(DeliveryStatus),
        status=status,
        more=listed[-1].id if len(listed) == PAGE else None,
        choices=list(Missed),
        local=partial(spread_instant, page),
        suspended_at=next(
            (
                notice.created_at
                for notice in notices
                if notice.resource_id == endpoint.id and notice.kind == WebhookSuspended.kind
            ),
            None,
        ),
        period={name: page.form_value(name) for name in ("since", "until")},
        is_changed="url" in page.form,
        given=_read_given(page)
        if "url" in page.form
        else WebhookForm(
            endpoint.url, endpoint.description or "", endpoint.events, not endpoint.events, endpoint.auto_resume
        ),
    )


def _draw_hours(page: PageRequest, start: datetime, hours: Sequence[EndpointHour]) -> Chart:
    labels = [page.formats.clock(start + timedelta(hours=place)) for place in range(len(hours))]
    names = [translate(page.language, text) for text in ("Delivered", "Failed attempts")]
    delivered, failed = [one.delivered for one in hours], [one.failed for one in hours]
    return build_stacks(labels, {names[0]: delivered, names[1]: failed}, page.language)


@console.post("/{environment}/webhooks/{id}", roles=DEVELOPERS, shown_by=show_webhook, says="Saved")
async def change_webhook(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    description = page.form_value("description") or None
    patch = WebhookEndpointPatch(
        url=page.form_value("url") or UNSET,
        events=_list_events(page),
        description=description,
        headers={} if page.form_value("no_headers") else _parse_headers(page.form_value("headers")) or UNSET,
        auto_resume=bool(page.form_value("auto_resume")),
    )
    async with page.context.database.transaction() as tx:
        endpoint = await webhooks.update(
            tx, page.context.vault, page.context.settings.webhooks, page.company_id, id, patch
        )
        await page.record(tx, "webhook.changed", endpoint.url)
    return go_to(page.path(f"/webhooks/{id}"))


def _parse_headers(text: str) -> dict[str, str]:
    lines = [line.partition(":") for line in text.splitlines() if line.strip()]
    if not all(colon for _, colon, _ in lines):
        raise Invalid.field("headers", "must have one header per line, as Name: value")
    return {name.strip(): value.strip() for name, _, value in lines}


@console.post("/{environment}/webhooks/{id}/resume", roles=DEVELOPERS, shown_by=show_webhook, says="Webhook resumed")
async def resume_webhook(page: PageRequest) -> Response:
    id, missed = page.request.path_params["id"], page.form_value("missed")
    if missed not in list(Missed):
        raise Invalid.field("missed", f"must be one of {', '.join(Missed)}")
    async with page.context.database.transaction() as tx:
        endpoint = await webhooks.resume(tx, page.context.vault, page.company_id, id, Missed(missed))
        await page.record(tx, "webhook.resumed", endpoint.url)
    return go_to(page.path(f"/webhooks/{id}"))


@console.post("/{environment}/webhooks/{id}/replay", roles=DEVELOPERS, shown_by=show_webhook)
async def replay_events(page: PageRequest) -> Response:
    """Delivers the events of a period again, in order, with the same event ids."""
    id, kind = page.request.path_params["id"], page.form_value("event")
    since, until = _read_instant(page, "since"), _read_instant(page, "until")
    if since is None:
        raise Invalid.field("since", "is required: the start of the period")
    if until is not None and until < since:
        raise Invalid.field("until", "must not be before the start of the period")
    async with page.context.database.connection() as db:
        endpoint = await webhooks.get(db, page.context.vault, page.company_id, id)
    database = page.context.database
    count = await deliveries.replay(database, page.company_id, id, since, until, [kind] if kind else None)
    async with database.transaction() as tx:
        await page.record(tx, "webhook.replayed", f"{endpoint.url}: {count}")
    return page.show("webhook_replayed.html", endpoint=endpoint, count=count)


def _read_instant(page: PageRequest, name: str) -> datetime | None:
    text = parse_instant(page, page.form_value(name), is_end=name == "until")
    try:
        return parse_date_time(text) if text else None
    except BadValue as error:
        raise Invalid.field(name, str(error)) from None


@console.post("/{environment}/webhooks/{id}/pause", roles=DEVELOPERS, shown_by=show_webhook, says="Webhook paused")
async def pause_webhook(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    async with page.context.database.transaction() as tx:
        endpoint, is_new = await webhooks.pause(tx, page.context.vault, page.company_id, id)
        if is_new:
            await page.record(tx, "webhook.paused", endpoint.url)
    return go_to(page.path(f"/webhooks/{id}"))


@console.post("/{environment}/webhooks/{id}/rotate", roles=DEVELOPERS, shown_by=show_webhook)
async def rotate_webhook(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    async with page.context.database.transaction() as tx:
        await page.claim_once(tx)
        new = await webhooks.rotate(
            tx, page.context.vault, page.company_id, id, end_overlap=bool(page.form_value("now"))
        )
        await page.record(tx, "webhook.rotated", new.endpoint.url)
    return page.show("webhook_made.html", new=new)


@console.post("/{environment}/webhooks/{id}/delete", roles=DEVELOPERS, shown_by=show_webhook, says="Webhook deleted")
async def delete_webhook(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    async with page.context.database.transaction() as tx:
        endpoint = await webhooks.get(tx, page.context.vault, page.company_id, id)
        await webhooks.delete(tx, page.company_id, id)
        await page.record(tx, "webhook.deleted", endpoint.url)
    return go_to(page.path("/webhooks"))


@console.post("/{environment}/webhooks/{id}/test", roles=DEVELOPERS, shown_by=show_webhook)
async def test_webhook(page: PageRequest) -> Response:
    """Sends a test delivery now and shows the result; it is neither stored nor counted."""
    id = page.request.path_params["id"]
    async with page.context.database.connection() as db:
        endpoint = await webhooks.get(db, page.context.vault, page.company_id, id)
        target, message = await test_event.prepare_test_event(
            db, page.context.vault, page.company_id, id, page.form_value("event") or None
        )
    outcome = await test_event.send_test_event(page.context.settings.webhooks, target, message)
    return page.show("webhook_tested.html", endpoint=endpoint, message=message, outcome=outcome)


@console.get("/{environment}/deliveries/{id}", roles=DEVELOPERS)
async def show_delivery(page: PageRequest) -> Response:
    async with page.context.database.connection() as db:
        details = await deliveries.get_delivery(
            db,
            page.context.vault,
            page.company_id,
            page.request.path_params["id"],
            page.context.settings.server.address,
        )
    return page.show("delivery.html", details=details, about=_name_page(details.request.body))


def _name_page(body: str | None) -> str:
    """The page of the resource that an event is about, if it has one."""
    try:
        id = str(json.loads(body or "{}").get("id", ""))
    except (ValueError, AttributeError):
        return ""
    kind = next((kind for kind in PAGES_OF if id.startswith(kind)), "")
    return f"{PAGES_OF[kind]}/{id}" if kind else ""


@console.post(
    "/{environment}/deliveries/{id}/resend", roles=DEVELOPERS, shown_by=show_delivery, says="Delivery sent again"
)
async def resend_delivery(page: PageRequest) -> Response:
    async with page.context.database.transaction() as tx:
        new = await deliveries.resend(tx, page.company_id, page.request.path_params["id"])
        await page.record(tx, "delivery.resent", new.event_id)
    return go_to(page.path(f"/deliveries/{new.id}"))


@console.get("/{environment}/events", roles=DEVELOPERS)
async def show_catalogue(page: PageRequest) -> Response:
    return page.show("events.html", kinds=list_kinds())


def list_kinds() -> list[tuple[str, str]]:
    """Every kind of event and what it means."""
    meanings = {kind: (event.__doc__ or "").partition("\n\n")[0] for kind, event in sorted(CATALOGUE.items())}
    return [(kind, " ".join(meaning.split())) for kind, meaning in meanings.items()]
