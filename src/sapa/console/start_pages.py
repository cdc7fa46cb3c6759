"""Starts a conversation: with a customer, or with the customer of an order."""

from typing import Any

from starlette.responses import Response

from sapa.console.inbox_queue import ask, read_team
from sapa.console.page_request import PageRequest
from sapa.console.reply_parts import check_placeholders
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console, go_to
from sapa.console.template_forms import is_plain, list_places
from sapa.console.ticket_pages import is_literal
from sapa.http.endpoints import Base
from sapa.http.errors import NotFound
from sapa.messaging.connections import actions as connections
from sapa.orders.types import ORDER_ID
from sapa.support.saved_replies.placeholders import list_known
from sapa.values.ids import CUSTOMER_ID

Json = dict[str, Any]


@console.get("/{environment}/inbox/new", roles=EVERYBODY)
async def show_start(page: PageRequest) -> Response:
    """First whom to write to, then what."""
    params = page.request.query_params
    order_id, customer_id = _read(page, "orderId"), _read(page, "customerId")
    if (order_id and not ORDER_ID.matches(order_id)) or (customer_id and not CUSTOMER_ID.matches(customer_id)):
        raise NotFound
    order = (await page.call("GET", f"/orders/{order_id}"))["data"] if order_id else None
    if order and order["customer"]:
        customer_id = order["customer"]["id"] or ""
    find = params.get("find", "").strip()
    return page.show(
        "start_talk.html",
        order=order,
        customer=(await page.call("GET", f"/customers/{customer_id}"))["data"] if customer_id else None,
        find=find,
        found=(await page.call("GET", "/customers", {"search": find, "limit": "10"}))["data"] if find else [],
        channels={str(channel.source): channel.label for channel in connections.list_channels()},
        given={name: _read(page, name) for name in ("source", "body")},
        has_placeholder=bool(list_known(page.form_value("body"))),
        params=page.form_values("param"),
        me=(await read_team(page)).me,
        **await _read_templates(page),
    )


@console.post("/{environment}/inbox/new", roles=EVERYBODY, shown_by=show_start, says="Sent")
async def start_ticket(page: PageRequest) -> Response:
    """A template that was chosen is shown first, and what was typed is kept."""
    if page.form_value("choose") or page.form_value("template") != page.form_value("shownTemplate"):
        return await show_start(page)
    text = page.form_value("body").replace("\r\n", "\n")
    body: Json = {
        "agentId": (await read_team(page)).my_id,
        "customerId": page.form_value("customerId") or None,
        "orderId": page.form_value("orderId") or None,
        "source": page.form_value("source") or None,
        "body": text or None,
    }
    if id := page.form_value("template"):
        template = (await ask(page, f"/templates/{id}"))["data"]
        params = page.form_values("param")
        body |= {"templateName": template["name"], "language": template["language"], "params": params, "body": None}
    elif not is_literal(page):
        check_placeholders(text)
    message = (await page.call("POST", "/tickets", body=body, base=Base.MESSAGING))["data"]
    return go_to(page.path(f"/inbox/{message['ticketId']}"))


async def _read_templates(page: PageRequest) -> Json:
    found = (await ask(page, "/templates", {"limit": "100", "status": "APPROVED"}))["data"]
    templates = [template for template in found if is_plain(template)]
    chosen = next((template for template in templates if template["id"] == page.form_value("template")), None)
    return {"templates": templates, "chosen": chosen, "places": list_places(chosen, page.language) if chosen else []}


def _read(page: PageRequest, name: str) -> str:
    return page.form_value(name) or page.request.query_params.get(name, "").strip()
