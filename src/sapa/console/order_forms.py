"""Orders and draft orders made by form, and what surrounds an order's lines: address, notes and tags."""

from itertools import zip_longest
from typing import Any

import asyncpg
from starlette.responses import Response

from sapa.console.draft_pages import show_draft
from sapa.console.fields import gather, parse_money, parse_units, rename_fields, split_labels
from sapa.console.order_pages import (
    ADDRESS,
    AMOUNT_FIELDS,
    DETAILS_SHOWN,
    SHIPPING_TITLE,
    list_details,
    parse_discount,
    show_order,
)
from sapa.console.page_request import PageRequest
from sapa.console.rendering import show_person
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console, go_to
from sapa.console.shown_fields import put_shown
from sapa.console.suggestion_pages import choose_article, choose_customer
from sapa.db.connection import DatabaseAway
from sapa.http.errors import ApiError, Invalid, NotFound
from sapa.values.ids import CUSTOMER_ID

CONTACT = ("firstName", "lastName", "email", "phoneNumber")
LINE = ("title", "productVariantId", "price", "quantity")
NEW_LINES = 5
MAX_NEW_LINES = 30

Json = dict[str, Any]


@console.get("/{environment}/orders/new", roles=EVERYBODY)
async def show_new_order(page: PageRequest) -> Response:
    return await _show_form(page)


@console.get("/{environment}/draft-orders/new", roles=EVERYBODY)
async def show_new_draft(page: PageRequest) -> Response:
    return await _show_form(page)


@console.post("/{environment}/orders/new", roles=EVERYBODY, shown_by=show_new_order, says="Order created")
async def create_order(page: PageRequest) -> Response:
    if page.form_value("step") == "lines":
        return await show_new_order(page)
    body = await _gather_body(page)
    with rename_fields(AMOUNT_FIELDS):
        response = await page.call("POST", "/orders", body=body)
    order = response["data"]
    try:
        if page.form_value("isPaid"):
            await page.call("PUT", f"/orders/{order['id']}", body={"financialStatus": "paid"})
        _say_created(page, order)
    except (
        ApiError,
        DatabaseAway,
        asyncpg.PostgresError,
    ):  # the form must not offer to create it again
        page.say(
            "Order #{number} created, but not marked as paid. Record the payment here.", number=order["orderNumber"]
        )
    return go_to(page.path(f"/orders/{order['id']}"))


def _say_created(page: PageRequest, order: Json) -> None:
    """A phone number or email that was entered for a new customer can be a stored one's."""
    customer, number = order["customer"], order["orderNumber"]
    is_chosen = page.form_value("customer") or page.form_value("customerId")
    typed = [page.form_value(name) for name in ("firstName", "lastName")]
    if customer and not is_chosen and [customer["firstName"] or "", customer["lastName"] or ""] != typed:
        message = "Order #{number} created for {customer}, who has this phone number or email"
        page.say(message, number=number, customer=show_person(customer))
    else:
        page.say("Order #{number} created", number=number)


@console.post("/{environment}/draft-orders/new", roles=EVERYBODY, shown_by=show_new_draft, says="Draft created")
async def create_draft(page: PageRequest) -> Response:
    body = await _gather_body(page)
    with rename_fields(AMOUNT_FIELDS):
        draft = await page.call("POST", "/draft-orders", body=body)
    return go_to(page.path(f"/draft-orders/{draft['data']['id']}"))


@console.post(
    "/{environment}/orders/{id}/details", roles=EVERYBODY, shown_by=show_order, says="Address, notes and labels saved"
)
async def change_details(page: PageRequest) -> Response:
    """The address, with what the form does not show of it; the notes and the tags."""
    id = page.request.path_params["id"]
    order = (await page.call("GET", f"/orders/{id}"))["data"]
    body: Json = {"notes": page.form_value("notes") or None, "tags": split_labels(page, "tags")}
    body["shippingAddress"] = _gather_address(page, order["shippingAddress"])
    await put_shown(page, f"/orders/{id}", body, list_details(order), DETAILS_SHOWN)
    return go_to(page.path(f"/orders/{id}"))


@console.post("/{environment}/draft-orders/{id}/details", roles=EVERYBODY, shown_by=show_draft, says="Draft saved")
async def change_draft_details(page: PageRequest) -> Response:
    """Who it is for, the address, the notes and the tags."""
    id = page.request.path_params["id"]
    draft = (await page.call("GET", f"/draft-orders/{id}"))["data"]
    body: Json = {
        "notes": page.form_value("notes") or None,
        "tags": split_labels(page, "tags"),
        "shippingAddress": _gather_address(page, draft["shippingAddress"]),
    }
    customer_id = page.form_value("customerId")
    if not customer_id and (words := page.form_value("customer")):
        customer_id = await choose_customer(page, "customer", words)
    if customer_id and customer_id != draft["customerId"]:
        body |= {"customerId": customer_id, "customer": None}
    await put_shown(page, f"/draft-orders/{id}", body, list_details(draft), DETAILS_SHOWN)
    return go_to(page.path(f"/draft-orders/{id}"))


async def _show_form(page: PageRequest) -> Response:
    names = (
        "customer",
        "customerId",
        *CONTACT,
        "shippingTitle",
        "shippingPrice",
        "discount",
        "discountKind",
        "notes",
        "tags",
        "isPaid",
    )
    values = {name: page.form_value(name) for name in (*names, *(f"to.{name}" for name in ADDRESS))}
    if not page.form:
        values |= await _read_customer(page, page.request.query_params.get("customerId", ""))
    is_draft = page.request.url.path == page.path("/draft-orders/new")
    currency = page.company.currency if page.company else None
    return page.show(
        "order_new.html", error_currency=currency, values=values, lines=_list_fields(page), is_draft=is_draft
    )


async def _read_customer(page: PageRequest, id: str) -> dict[str, str]:
    """A customer whose order is begun, with the main address."""
    if not id:
        return {}
    if not CUSTOMER_ID.matches(id):
        raise NotFound
    customer = (await page.call("GET", f"/customers/{id}"))["data"]
    address: Json = next((one for one in customer["addresses"] if one["mainAddress"]), {})
    return {"customer": show_person(customer), "customerId": customer["id"]} | {
        f"to.{name}": address.get(name) or "" for name in ADDRESS
    }


async def _gather_body(page: PageRequest) -> Json:
    contact = {name: page.form_value(name) or None for name in CONTACT}
    customer_id = page.form_value("customerId")
    if not customer_id and (words := page.form_value("customer")):
        customer_id = await choose_customer(page, "customer", words)
    price = parse_money(page, "shippingPrice")
    discount = parse_discount(page, "")
    return {
        "lineItems": await _list_lines(page),
        "customerId": customer_id or None,
        "customer": contact if any(contact.values()) and not customer_id else None,
        "shippingAddress": _gather_address(page),
        "shippingLines": [{"title": page.form_value("shippingTitle") or SHIPPING_TITLE, "price": price}]
        if price is not None
        else None,
        "discounts": [discount] if discount else None,
        "notes": page.form_value("notes") or None,
        "tags": split_labels(page, "tags"),
    }


def _gather_address(page: PageRequest, stored: Json | None = None) -> Json | None:
    """The form's address, with what the form does not show of the stored one."""
    address: Json | None = gather(page, [f"to.{name}" for name in ADDRESS]).get("to")
    if address is None:
        return None
    if not address["address1"]:
        raise Invalid.field("to.address1", "is required")
    return (stored or {}) | address


def _list_fields(page: PageRequest) -> list[tuple[str, ...]]:
    """Article, variant, price and quantity of each line of the form, as they were typed."""
    typed = list(zip_longest(*(page.form_values(name) for name in LINE), fillvalue=""))
    more = NEW_LINES if page.form_value("step") == "lines" else NEW_LINES - len(typed)
    return [*typed, *[("", "", "", "1")] * more][:MAX_NEW_LINES]


async def _list_lines(page: PageRequest) -> list[Json]:
    lines = []
    for number, (title, variant, price, quantity) in enumerate(_list_fields(page)):
        if not title.strip():
            continue
        at = f"lineItems[{number}]"
        line: Json = {"quantity": parse_units(f"{at}.quantity", quantity.strip())}
        amount = parse_money(page, f"{at}.price", text=price.strip())
        if amount is not None:
            line |= {"title": title.strip(), "price": amount}
        else:
            line["productVariantId"] = variant or await choose_article(page, f"{at}.title", title.strip())
        lines.append(line)
    if not lines:
        raise Invalid.field("lineItems[0].title", "is required")
    return lines
