"""Draft orders: prepared, changed, and turned into orders."""

from typing import Any

from starlette.responses import Response

from sapa.console.fields import parse_money, parse_number
from sapa.console.order_pages import MOST_LINES, SHIPPING_TITLE, build_edit
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS, EVERYBODY
from sapa.console.routes import console, go_to
from sapa.http.errors import Invalid

STATUSES = ("open", "completed")
CONTACT = ("firstName", "lastName", "email", "phoneNumber")
LINE = ("title", "price", "quantity")
NEW_LINES = 5


@console.get("/{environment}/draft-orders", roles=EVERYBODY)
async def list_drafts(page: PageRequest) -> Response:
    params = page.request.query_params
    query = {"status": params.get("status", ""), "page": params.get("page", "")}
    found = await page.call("GET", "/draft-orders", query | {"limit": "25"})
    return page.show("draft_orders.html", items=found["data"], meta=found["meta"], query=query, statuses=STATUSES)


@console.get("/{environment}/draft-orders/new", roles=EVERYBODY)
async def show_new_draft(page: PageRequest) -> Response:
    return page.show("draft_order_new.html", given=page.form_value, lines=_list_fields(page))


@console.post("/{environment}/draft-orders/new", roles=EVERYBODY, shown_by=show_new_draft, says="Draft created")
async def create_draft(page: PageRequest) -> Response:
    price = parse_money(page, "shippingPrice")
    contact = {name: page.form_value(name) or None for name in CONTACT}
    body = {
        "lineItems": _list_lines(page),
        "customer": contact if any(contact.values()) else None,
        "shippingLines": [{"title": page.form_value("shippingTitle") or SHIPPING_TITLE, "price": price}]
        if price is not None
        else None,
        "notes": page.form_value("notes") or None,
    }
    made = await page.call("POST", "/draft-orders", body=body)
    return go_to(page.path(f"/draft-orders/{made['data']['id']}"))


@console.get("/{environment}/draft-orders/{id}", roles=EVERYBODY)
async def show_draft(page: PageRequest) -> Response:
    draft = (await page.call("GET", f"/draft-orders/{page.request.path_params['id']}"))["data"]
    return page.show("draft_order.html", draft=draft, most_lines=MOST_LINES, given=page.form_value)


@console.post("/{environment}/draft-orders/{id}", roles=EVERYBODY, shown_by=show_draft, says="Draft saved")
async def change_draft(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    draft = (await page.call("GET", f"/draft-orders/{id}"))["data"]
    await page.call("PUT", f"/draft-orders/{id}", body=build_edit(page, draft))
    return go_to(page.path(f"/draft-orders/{id}"))


@console.post("/{environment}/draft-orders/{id}/complete", roles=EVERYBODY, shown_by=show_draft, says="Order created")
async def complete_draft(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    order = await page.call("POST", f"/draft-orders/{id}/complete", body={})
    return go_to(page.path(f"/orders/{order['data']['id']}"))


@console.post("/{environment}/draft-orders/{id}/delete", roles=DEVELOPERS, shown_by=show_draft, says="Draft deleted")
async def delete_draft(page: PageRequest) -> Response:
    await page.call("DELETE", f"/draft-orders/{page.request.path_params['id']}")
    return go_to(page.path("/draft-orders"))


def _list_fields(page: PageRequest) -> list[tuple[str, ...]]:
    """Title, price and quantity of each line of the form, as they were typed."""
    typed = list(zip(*(page.form_values(name) for name in LINE), strict=False))
    return [*typed, *[("", "", "1")] * (NEW_LINES - len(typed))]


def _list_lines(page: PageRequest) -> list[dict[str, Any]]:
    lines = []
    for number, (title, price, quantity) in enumerate(_list_fields(page)):
        if not title.strip():
            continue
        amount = parse_money(page, f"lineItems[{number}].price", text=price.strip())
        if amount is None:
            raise Invalid.field(f"lineItems[{number}].price", "is required")
        units = parse_number(f"lineItems[{number}].quantity", quantity.strip()) or 1
        lines.append({"title": title.strip(), "price": amount, "quantity": units})
    return lines
