"""`sapa webhook`: where a company's events are delivered."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec
import typer
from msgspec import UNSET
from rich.console import Console

from sapa import domains  # noqa: F401 - declares every kind of event
from sapa.access.actions import get_company
from sapa.cli.connect import (
    AsJson,
    CompanyId,
    harmless,
    in_company,
    naming_options,
    reach_database,
    reach_vault,
    show,
    transact,
)
from sapa.cli.verify import verify
from sapa.db.pool import Tx
from sapa.events import CATALOGUE
from sapa.http.query_string import BadValue, parse_date_time
from sapa.settings import read_settings
from sapa.values.sealing import Vault
from sapa.webhooks.deliveries import actions as deliveries
from sapa.webhooks.endpoints import actions, test_event
from sapa.webhooks.sender import SendResult, WebhookMessage
from sapa.webhooks.types import (
    DeliveryDetails,
    DeliveryFilter,
    Missed,
    NewSecret,
    WebhookEndpoint,
    WebhookEndpointIn,
    WebhookEndpointPatch,
)

app = typer.Typer(no_args_is_help=True, help="Webhook endpoints and their deliveries.")

Result = TypeVar("Result")
Work = Callable[[Tx, Vault, int], Awaitable[Result]]

COLUMNS = ["endpoint", "status", "events"]

Id = Annotated[str, typer.Argument(help="The endpoint's id, such as whe_01j….")]
Url = Annotated[str, typer.Option(help="The URL to deliver to, with https.")]
Events = Annotated[
    list[str] | None, typer.Option("--event", help="A kind of event, such as customer.created; repeatable.")
]
AllEvents = Annotated[bool, typer.Option("--all-events", help="Deliver every kind of event, including future ones.")]
Header = Annotated[list[str] | None, typer.Option(help="A custom header, as 'Name: value'; repeatable.")]
Description = Annotated[str | None, typer.Option(help="What the endpoint is for.")]
AutoResume = Annotated[
    bool, typer.Option(help="Probe the endpoint while it is suspended, and resume it with the first success.")
]
DeliveryId = Annotated[str, typer.Argument(help="The delivery's id, such as whd_01j….")]


@app.command()
def create(
    company: CompanyId,
    url: Url,
    event: Events = None,
    all_events: AllEvents = False,
    header: Header = None,
    description: Description = None,
    auto_resume: AutoResume = True,
    json: AsJson = False,
) -> None:
    """Register an endpoint. Its signing secret is shown once."""
    if bool(event) == all_events:
        raise typer.BadParameter("use at least one --event, or --all-events")
    body = WebhookEndpointIn(
        url=url,
        events=event or [],
        headers=_parse_headers(header or []),
        description=description,
        auto_resume=auto_resume,
    )
    settings = read_settings().webhooks
    _show_secret(
        transact(lambda tx: actions.create(tx, reach_vault(), settings, company, body)), json, "Endpoint created"
    )


@app.command("list")
def list_(company: CompanyId, json: AsJson = False) -> None:
    """List a company's endpoints, without their secrets."""
    found = transact(in_company(company, lambda tx: actions.list_endpoints(tx, reach_vault(), company)))
    _show(found, json, "Webhook endpoints")


@app.command("show")
def show_(id: Id, json: AsJson = False) -> None:
    """Show one endpoint."""
    _show(_with_endpoint(id, lambda tx, vault, company: actions.get(tx, vault, company, id)), json, "Endpoint")


@app.command()
def update(
    id: Id,
    url: Annotated[str | None, typer.Option(help="The new URL.")] = None,
    event: Events = None,
    all_events: AllEvents = False,
    header: Header = None,
    no_headers: Annotated[bool, typer.Option("--no-headers", help="Remove all custom headers.")] = False,
    description: Description = None,
    auto_resume: Annotated[
        bool | None, typer.Option(help="Whether to probe the endpoint while it is suspended, and to resume it.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Change an endpoint. Events and headers replace the existing ones. With another origin, pass the headers again."""
    if (all_events and event) or (no_headers and header):
        raise typer.BadParameter("use either --event or --all-events, and either --header or --no-headers")
    patch = WebhookEndpointPatch(
        url=UNSET if url is None else url,
        events=[] if all_events else (event or UNSET),
        headers={} if no_headers else (_parse_headers(header) if header else UNSET),
        description=UNSET if description is None else description,
        auto_resume=UNSET if auto_resume is None else auto_resume,
    )
    settings = read_settings().webhooks
    _show(
        _with_endpoint(id, lambda tx, vault, company: actions.update(tx, vault, settings, company, id, patch)),
        json,
        "Endpoint changed",
    )


@app.command()
def pause(id: Id, json: AsJson = False) -> None:
    """Hold an endpoint's deliveries until it is resumed."""
    endpoint, _ = _with_endpoint(id, lambda tx, vault, company: actions.pause(tx, vault, company, id))
    _show(endpoint, json, "Endpoint paused")


@app.command()
def resume(
    id: Id,
    missed: Annotated[
        Missed, typer.Option(help="Which missed events to deliver: all, the latest of each resource, or none (skip).")
    ] = Missed.ALL,
    json: AsJson = False,
) -> None:
    """Resume a paused or suspended endpoint."""
    resumed = _with_endpoint(id, lambda tx, vault, company: actions.resume(tx, vault, company, id, missed))
    _show(resumed, json, "Endpoint resumed")


@app.command()
def rotate(
    id: Id,
    end_overlap: Annotated[
        bool, typer.Option("--end-overlap", help="Stop signing with the previous secret at once.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Create a new secret. For 24 hours deliveries are also signed with the old one."""
    new = _with_endpoint(id, lambda tx, vault, company: actions.rotate(tx, vault, company, id, end_overlap))
    _show_secret(new, json, "Secret rotated")


@app.command()
def delete(id: Id, json: AsJson = False) -> None:
    """Delete an endpoint and its pending deliveries."""
    _with_endpoint(id, lambda tx, _, company: actions.delete(tx, company, id))
    show({"id": id, "deleted": True}, json, "Endpoint deleted", ["id"])


@app.command("test")
def send_sample(
    id: Id,
    event: Annotated[
        str | None, typer.Option(help="The kind of event to send. Defaults to the endpoint's first.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Send a signed sample now and show the response. It is not recorded."""
    message, outcome = asyncio.run(_send_test_event(id, event))
    show(test_event.build_result(message, outcome), json, "Sample sent", ["event", "status", "milliseconds", "message"])
    sys.exit(0 if outcome.delivered else 1)


@app.command("deliveries")
def deliveries_(
    id: Annotated[str | None, typer.Argument(help="The endpoint's id. Defaults to all endpoints of --company.")] = None,
    company: Annotated[
        int | None, typer.Option(min=1, max=2**63 - 1, help="The company, if you give no endpoint.")
    ] = None,
    status: Annotated[str | None, typer.Option(help="pending, retrying, held, delivered, failed or skipped.")] = None,
    event: Annotated[str | None, typer.Option(help="Only this kind of event.")] = None,
    event_id: Annotated[str | None, typer.Option(help="Only this event.")] = None,
    before: Annotated[str | None, typer.Option(help="Only deliveries older than this one, for the next page.")] = None,
    limit: Annotated[int, typer.Option(help="How many, at most 100.")] = 20,
    json: AsJson = False,
) -> None:
    """List deliveries, the newest first."""
    if (id is None) == (company is None):
        raise typer.BadParameter("use an endpoint's id, or --company")
    wanted = DeliveryFilter(endpoint_id=id, status=status, event=event, event_id=event_id, before=before, limit=limit)

    async def find(tx: Tx) -> Any:
        owner = await actions.get_company_of(tx, id) if id else (await get_company(tx, company or 0)).id
        return await deliveries.list_deliveries(tx, owner, wanted)

    columns = ["id", "event", "eventAt", "status", "attempts", "responseStatus", "message"]
    with naming_options({"eventId": "event-id"}):
        found = transact(find)
    show(found, json, "Deliveries", columns)


@app.command()
def delivery(id: DeliveryId, json: AsJson = False) -> None:
    """Show one delivery: the request, and each attempt with its response."""
    address = read_settings().server.address
    found = _with_delivery(id, lambda tx, company: deliveries.get_delivery(tx, reach_vault(), company, id, address))
    if json:
        show(found, json, "", [])
    else:
        _print_delivery(found)


@app.command()
def resend(id: DeliveryId, json: AsJson = False) -> None:
    """Deliver the same event again."""
    new = _with_delivery(id, lambda tx, company: deliveries.resend(tx, company, id))
    show(new, json, "Delivery queued", ["id", "eventId", "event", "status"])


@app.command()
def replay(
    id: Id,
    since: Annotated[str, typer.Option(help="The start of the period, such as 2026-01-31T09:00:00Z.")],
    until: Annotated[str | None, typer.Option(help="The end of the period. Defaults to now.")] = None,
    event: Events = None,
    json: AsJson = False,
) -> None:
    """Deliver all events of a period again, in order."""
    begin, end = _instant(since), _instant(until) if until else None

    async def run() -> int:
        async with reach_database() as database:
            async with database.connection() as db:
                company = await actions.get_company_of(db, id)
            return await deliveries.replay(database, company, id, begin, end, event)

    show({"id": id, "count": asyncio.run(run())}, json, "Events queued again", ["id", "count"])


@app.command()
def notices(company: CompanyId, json: AsJson = False) -> None:
    """List the company's notices, such as suspended endpoints."""
    found = transact(in_company(company, lambda tx: actions.list_notices(tx, company)))
    show(found, json, "Notices", ["createdAt", "resourceId", "message"])


@app.command()
def events(json: AsJson = False) -> None:
    """List the kinds of events."""
    kinds = [{"event": kind, "meaning": (event.__doc__ or "").strip()} for kind, event in sorted(CATALOGUE.items())]
    show(kinds, json, "Events", ["event", "meaning"])


app.command()(verify)


def _with_endpoint(id: str, work: Work[Result]) -> Result:
    """Runs on one endpoint in one transaction; its id determines the company."""

    async def run(tx: Tx) -> Result:
        return await work(tx, reach_vault(), await actions.get_company_of(tx, id))

    return transact(run)


def _with_delivery(id: str, work: Callable[[Tx, int], Awaitable[Result]]) -> Result:
    async def run(tx: Tx) -> Result:
        return await work(tx, await deliveries.get_company_of(tx, id))

    return transact(run)


async def _send_test_event(id: str, kind: str | None) -> tuple[WebhookMessage, SendResult]:
    async with reach_database() as database, database.connection() as db:
        company = await actions.get_company_of(db, id)
        target, message = await test_event.prepare_test_event(db, reach_vault(), company, id, kind)
    return message, await test_event.send_test_event(read_settings().webhooks, target, message)


def _parse_headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise typer.BadParameter(f"use 'Name: value' for a header, not {line!r}")
        if name.strip() in headers:
            raise typer.BadParameter(f"the header {name.strip()} is given twice")
        headers[name.strip()] = value.strip()
    return headers


def _instant(text: str) -> datetime:
    try:
        return parse_date_time(text)
    except BadValue as error:
        raise typer.BadParameter(str(error)) from None


def _show(found: WebhookEndpoint | list[WebhookEndpoint], as_json: bool, title: str) -> None:
    if as_json:
        show(found, as_json, title, [])
    else:
        show(
            [_summary(endpoint) for endpoint in (found if isinstance(found, list) else [found])], False, title, COLUMNS
        )


def _summary(endpoint: WebhookEndpoint) -> dict[str, str]:
    """A few lines that fit a terminal; --json has the rest."""
    troubles = [f"{endpoint.failures} failures in a row"] if endpoint.failures else []
    probes = [f"next probe: {endpoint.next_probe_at}"] if endpoint.next_probe_at else []
    return {
        "endpoint": f"{endpoint.id}\n{endpoint.url}" + (f"\n{endpoint.description}" if endpoint.description else ""),
        "status": "\n".join([endpoint.status, *troubles, *([endpoint.reason] if endpoint.reason else []), *probes]),
        "events": "\n".join(endpoint.events) or "all",
    }


def _show_secret(new: NewSecret, as_json: bool, title: str) -> None:
    if as_json:
        info: dict[str, Any] = msgspec.to_builtins(new.endpoint)
        show({**info, "secret": new.secret}, as_json, title, [])
        return
    _show(new.endpoint, as_json, title)
    text = f"\n  {new.secret}\n\nThis signing secret is shown only once: copy it now."
    Console(soft_wrap=True).print(text, highlight=False, markup=False)


def _print_delivery(found: DeliveryDetails) -> None:
    show(found.delivery, False, "Delivery", ["id", "event", "status", "attempts", "nextAttemptAt"])
    tries = ["number", "isProbe", "startedAt", "milliseconds", "responseStatus", "message", "response"]
    show(found.attempts, False, "Attempts", tries)
    body = found.request.body if found.request.body is not None else "(the event is past its retention)"
    text = harmless(f"\nPOST {found.request.url}\n{body}")
    Console(soft_wrap=True).print(text, highlight=False, markup=False)
