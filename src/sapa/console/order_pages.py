"""Orders: the list, one order with its money and history, and what people do with it."""

from asyncio import gather
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from starlette.responses import Response

from sapa.console.fields import parse_count, parse_money, parse_number, parse_units, rename_fields, show_at
from sapa.console.filter_pages import list_saved
from sapa.console.listing import NamedFilters, build_tabs, count_cells, read_cells, read_list, read_period
from sapa.console.member_names import read_member_names
from sapa.console.page_request import PageRequest
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console, go_to
from sapa.console.shown_fields import build_shown, put_shown
from sapa.console.suggestion_pages import choose_article
from sapa.http.errors import FieldError, Invalid
from sapa.orders.settlement.types import (
    FinancialStatus,
    FulfillmentStatus,
    InvalidTransition,
    PaymentExceedsOutstanding,
    PaymentReferenceUsed,
    RefundExceedsPaid,
)
from sapa.orders.transitions import NEXT, NEXT_PAYMENT
from sapa.orders.types import Status
from sapa.values.enum_names import words_of

FILTERS = {
    "status": words_of(Status),
    "fulfillmentStatus": words_of(FulfillmentStatus),
    "financialStatus": words_of(FinancialStatus),
}
UNPAYABLE = ("cancelled", "refunded", "archived")
"""An archived order may have been cancelled before."""
DONE = {
    ("financialStatus", "paid"): "Order #{number} marked as paid: {amount}",
    ("financialStatus", "pending"): "Order #{number} marked as unpaid",
    ("financialStatus", "refunded"): "Order #{number}: refund of {amount} recorded",
    ("fulfillmentStatus", "fulfilled"): "Order #{number} marked as shipped",
    ("fulfillmentStatus", "unfulfilled"): "Order #{number} marked as not shipped",
    ("status", "archived"): "Order #{number} archived",
    ("status", "cancelled"): "Order #{number} cancelled",
    ("status", "refunded"): "Order #{number}: refund of {amount} recorded",
    ("status", "active"): "Order #{number} is active again",
}
"""What is said of a status that was set."""
TABS: NamedFilters = (
    ("All", {}),
    ("To pay", {"status": "active", "financialStatus": "pending"}),
    ("To ship", {"status": "active", "financialStatus": "paid", "fulfillmentStatus": "unfulfilled"}),
    ("Shipped", {"status": "active", "fulfillmentStatus": "fulfilled"}),
    ("Cancelled", {"status": "cancelled"}),
)
SORTS = (
    ("createdAt:desc", "Newest first"),
    ("createdAt:asc", "Oldest first"),
    ("total:desc", "Highest total"),
    ("total:asc", "Lowest total"),
)
"""The first is the API's own."""
METHODS = ("bank_transfer", "cash", "cod", "qris", "e_wallet", "card", "other")
MAX_LINES = 50
"""Lines that a form shows; the API changes orders of more lines."""
HISTORY = "20"
ADDRESS = ("address1", "address2", "city", "province", "zip", "country")
AMOUNT_FIELDS = {
    "shippingLines[0].title": "shippingTitle",
    "shippingLines[0].price": "shippingPrice",
    **dict.fromkeys(("discounts", "discounts[0].amount", "discounts[0].percentage"), "discount"),
    "discounts[0].title": "discountTitle",
}
"""The API's names of fields, and those of the forms."""
DETAILS_SHOWN = "detailsShown"
SHIPPING_TITLE = "Ongkos kirim"
"""Of a shipping line that nobody named; customers read it."""


@console.get("/{environment}/orders", roles=EVERYBODY)
async def list_orders(page: PageRequest) -> Response:
    names = ("status", "fulfillmentStatus", "financialStatus", "customerId", "currency", "createdFrom", "createdTo")
    listed, saved, cells = await gather(
        read_list(page, "/orders", *names, "sort"),
        list_saved(page, "orders"),
        read_cells(page, "orders", "status", "fulfillmentStatus", "financialStatus"),
    )
    tabs = build_tabs(listed["query"], [(label, wanted, count_cells(cells, wanted)) for label, wanted in TABS])
    period = read_period(page, listed["query"])
    return page.show("orders.html", choices=FILTERS, tabs=tabs, sorts=SORTS, saved=saved, period=period, **listed)


@console.get("/{environment}/orders/{id}", roles=EVERYBODY)
async def show_order(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    found, history, shipments, names = await gather(
        page.call("GET", f"/orders/{id}"),
        page.call("GET", f"/orders/{id}/history", {"limit": HISTORY}),
        page.call("GET", "/shipping/shipments", {"orderId": id, "limit": "10"}),
        read_member_names(page),
    )
    order = found["data"]
    return page.show(
        "order.html",
        order=order,
        error_currency=order["currency"],
        moves=list_moves(order),
        methods=METHODS,
        shipments=shipments["data"],
        history=history,
        names=names,
        max_lines=MAX_LINES,
        sent=page.request.url.path.rpartition("/")[2],
        shown=build_shown(page, list_edited(page, order)),
        details_shown=build_shown(page, list_details(order), DETAILS_SHOWN),
    )


def list_moves(order: dict[str, Any]) -> list[tuple[str, str]]:
    """The statuses that can be set now: a field and its value. A refund has a form of its own."""
    has_shipped = any(line["fulfilledQuantity"] for line in order["lineItems"])
    status = order["status"]
    moves: list[tuple[str, str]] = []
    if status not in UNPAYABLE:
        payments = NEXT_PAYMENT[order["financialStatus"]]
        moves += [("financialStatus", value) for value in payments if value != "refunded"]
    if status == "active":
        is_done = order["fulfillmentStatus"] == "fulfilled"
        moves.append(("fulfillmentStatus", "unfulfilled" if is_done else "fulfilled"))
    is_possible = {"cancelled": not has_shipped, "refunded": order["totalPaid"] > order["totalRefunded"]}
    after = NEXT.get(status, ("active", "cancelled", "refunded"))
    return moves + [("status", value) for value in after if is_possible.get(value, True)]


@console.get("/{environment}/orders/{id}/history", roles=EVERYBODY)
async def show_history(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    order = (await page.call("GET", f"/orders/{id}"))["data"]
    listed, names = await gather(read_list(page, f"/orders/{id}/history"), read_member_names(page))
    return page.show("order_history.html", order=order, names=names, **listed)


@console.post("/{environment}/orders/{id}", roles=EVERYBODY, shown_by=show_order)
async def change_order(page: PageRequest) -> Response:
    id = page.request.path_params["id"]
    order = (await page.call("GET", f"/orders/{id}"))["data"]
    body = {name: value for name in FILTERS if (value := page.form_value(name)) and value != order[name]}
    if "financialStatus" in body and order["status"] in UNPAYABLE:
        raise InvalidTransition
    changed = (await page.call("PUT", f"/orders/{id}", body=body))["data"]
    if not body:
        page.say("Nothing changed: the order was like that already")
    for move in body.items():
        refunded = changed["totalRefunded"] - order["totalRefunded"]
        amount = _show(page, refunded if move[1] == "refunded" else changed["total"], order["currency"])
        page.say(DONE[move], number=order["orderNumber"], amount=amount)
    return _go_back(page)


@console.post("/{environment}/orders/{id}/payments", roles=EVERYBODY, shown_by=show_order)
async def record_payment(page: PageRequest) -> Response:
    currency = await _get_currency(page)
    body = {
        "amount": _parse_required(page, "amount", currency),
        "method": page.form_value("method"),
        "reference": page.form_value("reference") or None,
    }
    with show_at("amount", PaymentExceedsOutstanding), show_at("reference", PaymentReferenceUsed):
        payment = await _post(page, "payments", body)
    page.say("Payment of {amount} recorded", amount=_show(page, payment["amount"], currency))
    return _go_back(page)


@console.post("/{environment}/orders/{id}/refunds", roles=EVERYBODY, shown_by=show_order)
async def refund(page: PageRequest) -> Response:
    """Units line by line, shipping and an amount; what is left empty is not sent."""
    restock = bool(page.form_value("restock"))
    currency, units = await _get_currency(page), list(_list_units(page, "refund"))
    body = {
        "lineItems": [{**line, "restock": restock} for line in units] or None,
        "shipping": parse_money(page, "shipping", currency),
        "amount": parse_money(page, "amount", currency),
        "reason": page.form_value("reason") or None,
    }
    with show_at("amount", RefundExceedsPaid), show_at_lines("refund", units):
        refunded = await _post(page, "refunds", body)
    page.say("Refund of {amount} recorded", amount=_show(page, refunded["amount"], currency))
    return _go_back(page)


@console.post("/{environment}/orders/{id}/fulfillments", roles=EVERYBODY, shown_by=show_order, says="Marked as shipped")
async def fulfil(page: PageRequest) -> Response:
    """The given units, or all open ones."""
    units = list(_list_units(page, "fulfil"))
    with show_at_lines("fulfil", units):
        await _post(page, "fulfillments", {"lineItems": units or None})
    return _go_back(page)


@console.post(
    "/{environment}/orders/{id}/edit", roles=EVERYBODY, shown_by=show_order, says="Items, shipping and discount saved"
)
async def edit_order(page: PageRequest) -> Response:
    """New quantities (0 removes a line), one more line, the shipping and the discount."""
    id = page.request.path_params["id"]
    order = (await page.call("GET", f"/orders/{id}"))["data"]
    await put_edit(page, f"/orders/{id}", order)
    return _go_back(page)


def list_edited(page: PageRequest, of: dict[str, Any]) -> dict[str, str]:
    """What the form of an order or a draft shows of its lines and amounts."""
    fields = {f"quantity-{line['id']}": str(line["quantity"]) for line in of["lineItems"][:MAX_LINES]}
    if len(of["shippingLines"]) <= 1:
        shipping: dict[str, Any] = next(iter(of["shippingLines"]), {"title": "", "price": None})
        fields |= {"shippingTitle": shipping["title"], "shippingPrice": _show(page, shipping["price"], of["currency"])}
    if len(of["discounts"]) <= 1:
        discount: dict[str, Any] = next(iter(of["discounts"]), {"title": "", "percentage": None, "amount": None})
        is_percentage = discount["percentage"] is not None
        amount = f"{discount['percentage']}%" if is_percentage else _show(page, discount["amount"], of["currency"])
        fields |= {"discount": amount, "discountTitle": discount["title"] or ""}
    return fields


def _show(page: PageRequest, amount: float | None, currency: str) -> str:
    return "" if amount is None else page.formats.money(amount, currency).striptags()


def list_details(of: dict[str, Any]) -> dict[str, str]:
    """What the form of an order or a draft shows of its address, notes and tags."""
    address = of["shippingAddress"] or {}
    fields = {f"to.{name}": address.get(name) or "" for name in ADDRESS}
    return fields | {"notes": of["notes"] or "", "tags": ", ".join(of["tags"])}


async def _gather_edit(page: PageRequest, order: dict[str, Any]) -> dict[str, Any]:
    """The changes that a form asks for; an order or a draft."""
    lines = [
        {"id": line["id"], "quantity": quantity}
        for line in order["lineItems"]
        if (quantity := _parse_quantity(page, line))
    ]
    if title := page.form_value("title"):
        line: dict[str, Any] = {"quantity": parse_units("quantity", page.form_value("quantity"))}
        if (price := parse_money(page, "price", order["currency"])) is not None:
            line |= {"title": title, "price": price}
        else:
            line["productVariantId"] = page.form_value("productVariantId") or await choose_article(page, "title", title)
        lines.append(line)
    if not lines:
        raise Invalid.field("lineItems", "must have at least one line; cancel the order to remove all")
    body: dict[str, Any] = {"lineItems": lines}
    if len(order["shippingLines"]) <= 1:
        body["shippingLines"] = _build_shipping(page, order)
    if len(order["discounts"]) <= 1:
        body["discounts"] = _build_discount(page, order)
    return body


async def put_edit(page: PageRequest, path: str, of: dict[str, Any]) -> None:
    """Changes what the form changes of an order or a draft."""
    body = await _gather_edit(page, of)
    stored = [line for line in body["lineItems"] if "id" in line]
    added = {f"lineItems[{len(stored)}].{name}": name for name in ("title", "price", "quantity")}
    with show_at_lines("quantity", stored, AMOUNT_FIELDS | added):
        await put_shown(page, path, body, list_edited(page, of))


@contextmanager
def show_at_lines(prefix: str, lines: list[dict[str, Any]], names: Mapping[str, str] | None = None) -> Iterator[None]:
    """What a line does not allow is said at its field, named by the prefix and its id."""
    fields = {f"lineItems[{number}].quantity": f"{prefix}-{line['id']}" for number, line in enumerate(lines)}
    try:
        with rename_fields(fields | dict(names or {})):
            yield
    except InvalidTransition as error:
        error.details = [
            FieldError(f"{prefix}-{line['id']}", error.message) for line in lines if line["id"] in error.message
        ]
        raise


def _build_shipping(page: PageRequest, order: dict[str, Any]) -> list[dict[str, Any]]:
    """The form has the title and the price; the line keeps its code and its discount."""
    price = parse_money(page, "shippingPrice", order["currency"])
    if price is None:
        return []
    line: dict[str, Any] = {"title": page.form_value("shippingTitle") or SHIPPING_TITLE, "price": price}
    for stored in order["shippingLines"]:
        line |= {"code": stored["code"], "discount": _build_same_discount(stored["discount"])}
    return [line]


def _build_same_discount(discount: dict[str, Any] | None) -> dict[str, Any] | None:
    """As it was given: a percentage, or an amount."""
    if discount is None:
        return None
    name = "amount" if discount["percentage"] is None else "percentage"
    return {name: discount[name], "title": discount["title"]}


def _build_discount(page: PageRequest, order: dict[str, Any]) -> list[dict[str, Any]]:
    code = order["discounts"][0]["code"] if order["discounts"] else None
    given = parse_discount(page, order["currency"])
    return [{**given, "title": page.form_value("discountTitle") or None, "code": code}] if given else []


def parse_discount(page: PageRequest, currency: str) -> dict[str, Any] | None:
    """An amount, or a percentage: as chosen beside it, or with its sign."""
    text = page.form_value("discount")
    if not text:
        return None
    if text.endswith("%") or page.form_value("discountKind") == "percentage":
        return {"percentage": parse_number("discount", text.rstrip("% ").replace(",", "."))}
    return {"amount": parse_money(page, "discount", currency)}


def _parse_quantity(page: PageRequest, line: dict[str, Any]) -> int | float | None:
    """Unchanged where the form has no field for the line."""
    name = f"quantity-{line['id']}"
    return parse_count(name, page.form_value(name)) if name in page.form else line["quantity"]


def _list_units(page: PageRequest, prefix: str) -> Iterator[dict[str, Any]]:
    for name in page.form:
        action, _, id = name.partition("-")
        if action == prefix and (quantity := parse_count(name, page.form_value(name))):
            yield {"id": id, "quantity": quantity}


def _parse_required(page: PageRequest, name: str, currency: str) -> int | float:
    amount = parse_money(page, name, currency)
    if amount is None:
        raise Invalid.field(name, "is required")
    return amount


async def _get_currency(page: PageRequest) -> str:
    return str((await page.call("GET", f"/orders/{page.request.path_params['id']}"))["data"]["currency"])


async def _post(page: PageRequest, what: str, body: dict[str, Any]) -> dict[str, Any]:
    id = page.request.path_params["id"]
    made: dict[str, Any] = (await page.call("POST", f"/orders/{id}/{what}", body=body))["data"]
    return made


def _go_back(page: PageRequest) -> Response:
    return go_to(page.path(f"/orders/{page.request.path_params['id']}"))
