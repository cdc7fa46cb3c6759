"""How orders are reached."""

import re
from collections.abc import Iterable
from datetime import datetime
from itertools import product
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw

from sapa.access.types import Scope
from sapa.customers.types import IdentityConflict
from sapa.db.listing import contains
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.errors import Invalid, NotFound
from sapa.http.query_string import PageQuery, SearchText, check_period
from sapa.http.responses import Created, Page, StoredJson, build_page
from sapa.orders import actions, queries
from sapa.orders.settlement.types import (
    FinancialStatus,
    Fulfillment,
    FulfillmentIn,
    FulfillmentStatus,
    InvalidTransition,
    OrderFull,
    Payment,
    PaymentExceedsOutstanding,
    PaymentIn,
    PaymentReferenceUsed,
    Refund,
    RefundExceedsPaid,
    RefundIn,
)
from sapa.orders.types import ORDER_ID, Order, OrderExists, OrderId, OrderIn, OrderPatch, Status
from sapa.products.types import InsufficientStock
from sapa.values.enum_names import EnumName, words_of
from sapa.values.ids import CUSTOMER_ID
from sapa.values.money import Currency
from sapa.values.text_folding import fold

routes = Routes("/orders", base=Base.CUSTOMER, tag="Orders", about="What customers bought: lines, totals and statuses.")

_THREE_LETTERS = re.compile(r"[^\W_]{3}").search
_ONE_OR_TWO_LETTERS = re.compile(r"[a-z0-9]{1,2}").fullmatch

ALL_OPEN_UNITS = FulfillmentIn()

OrderSort = Annotated[Literal["createdAt:desc", "createdAt:asc", "total:desc", "total:asc"], EnumName("OrderSort")]

LAST_CHARACTER = "\U0010ffff"
LAST_TEXT = LAST_CHARACTER * 256
"""Sorts after every id that an order can have."""


class OrdersQuery(PageQuery, frozen=True, kw_only=True):
    """Which orders to list."""

    search: (
        Annotated[
            SearchText,
            Meta(
                description="The start of an id, orderId or orderNumber, or part of the customer's name. One or two "
                "Latin letters or digits: the start of an id or of a word of the name."
            ),
        ]
        | None
    ) = None
    status: Annotated[Status, Meta(description="Orders with this status.")] | None = None
    fulfillment_status: Annotated[FulfillmentStatus, Meta(description="Fulfilled or not.")] | None = None
    financial_status: Annotated[FinancialStatus, Meta(description="Paid or not.")] | None = None
    customer_id: Annotated[str, Meta(pattern=CUSTOMER_ID.pattern, description="Orders of this customer.")] | None = None
    currency: Annotated[Currency, Meta(description="Orders in this currency.")] | None = None
    created_from: Annotated[datetime, Meta(description="Created at this instant or later.")] | None = None
    created_to: Annotated[datetime, Meta(description="Created at this instant or earlier.")] | None = None
    sort: Annotated[OrderSort, Meta(description="A field and a direction.")] = "createdAt:desc"


@routes.get("", scope=Scope.ORDERS_READ)
async def list_orders(call: Call, query: OrdersQuery) -> Page[Annotated[Raw, StoredJson(Order)]]:
    """List orders.

    Newest first, unless you set `sort`. `search` matches the start of the id, orderId or orderNumber, or part of the
    customer's name, ignoring case and accents. One or two Latin letters or digits match the start of these ids and of
    the first four words of the name only.
    """
    orders, total = await queries.list_orders(
        call.db, call.company.id, _filters(query), query.sort, query.limit, query.offset
    )
    return build_page([order.to_json() for order in orders], query.page, query.limit, total)


@routes.post("", scope=Scope.ORDERS_WRITE, raises=[OrderExists, IdentityConflict, InsufficientStock])
async def create_order(call: Call, body: OrderIn) -> Order:
    """Create an order.

    A line is a product variant, or a title and a price of your own. Send the customer as `customerId`, or as
    `customer`, who is found by phone number or e-mail address, or created. The order takes its units from the stock of
    the variants; if the stock does not cover all of them, the order is refused.

    Discounts of the order are spread over its lines in proportion to what they cost. Percentages and tax rates are
    computed for each line and rounded half up to the currency's decimal places.
    """
    return await actions.place(call.db, call.company, body, actor=call.actor)


@routes.get("/{id}", scope=Scope.ORDERS_READ, raises=[NotFound])
async def get_order(call: Call, id: OrderId) -> Order:
    """Get one order with its line items and shipping address."""
    return await queries.get_order(call.db, call.company.id, id)


@routes.put("/{id}", scope=Scope.ORDERS_WRITE, raises=[NotFound, InvalidTransition, InsufficientStock, OrderFull])
async def update_order(call: Call, id: OrderId, body: OrderPatch) -> Order:
    """Update an order.

    A field that you leave out keeps its value; null clears it. You can archive or refund an active order, or cancel it
    while no unit is fulfilled. An archived order can return to its previous status. When the status becomes cancelled
    or refunded, the units return to the stock, once; financialStatus alone does not change the stock.

    Setting financialStatus to paid records a payment of the outstanding amount, which pending voids again; refunded
    refunds what was paid and not refunded yet. Setting fulfillmentStatus fulfils all units or none.

    `lineItems` is the whole list: a line that you leave out is removed, a line with its id is kept. Lines, discounts,
    shipping lines, fees and taxes change while the order is active. The stock changes by the difference, and
    `outstanding` shows what is to be paid or, if it is negative, to be refunded.
    """
    return await actions.update(call.db, call.company, id, body, actor=call.actor)


@routes.post(
    "/{id}/payments",
    scope=Scope.ORDERS_WRITE,
    status=200,
    raises=[NotFound, PaymentExceedsOutstanding, PaymentReferenceUsed, InvalidTransition, OrderFull],
)
async def record_order_payment(call: Call, id: OrderId, body: PaymentIn) -> Payment | Created[Payment]:
    """Record a payment of an order.

    At most the outstanding amount. A payment with the same reference, amount and method is recorded once: the response
    is then 200 with the existing payment.
    """
    payment, is_new = await actions.record_payment(call.db, call.company, id, body, actor=call.actor)
    return Created(payment) if is_new else payment


@routes.post(
    "/{id}/refunds",
    scope=Scope.ORDERS_WRITE,
    raises=[NotFound, RefundExceedsPaid, InvalidTransition, OrderFull],
    tool=ToolTraits(is_destructive=True),
)
async def refund_order(call: Call, id: OrderId, body: RefundIn) -> Refund:
    """Refund an order, in parts or in full.

    Units of lines are refunded at what they were charged: after discounts, with the taxes that are not included. Send
    an `amount` to refund another sum; it is at most what was paid and not refunded yet. Units with `restock` go back
    into the stock. Refunding everything does not change the order's status.
    """
    return await actions.refund(call.db, call.company, id, body, actor=call.actor)


@routes.post(
    "/{id}/fulfillments",
    scope=Scope.ORDERS_WRITE,
    raises=[NotFound, InvalidTransition, OrderFull],
)
async def fulfill_order(call: Call, id: OrderId, body: FulfillmentIn = ALL_OPEN_UNITS) -> Fulfillment:
    """Fulfil units of an order.

    Without `lineItems`, all open units. The order is fulfilled when every line is. A shipment that is picked up fulfils
    all open units of its order, unless you named it here.
    """
    return await actions.fulfil(call.db, call.company, id, body, actor=call.actor)


def _filters(query: OrdersQuery) -> dict[str, Any]:
    check_period("createdFrom", query.created_from, "createdTo", query.created_to)
    filters = {
        **(build_search(query.search) if query.search else {}),
        "customer_id": query.customer_id,
        "currency": query.currency,
        "created_from": query.created_from,
        "created_to": query.created_to,
        "cells": _cells(query),
    }
    return {name: value for name, value in filters.items() if value is not None}


def _cells(query: OrdersQuery) -> list[str] | None:
    """The counter cells of the requested statuses."""
    statuses = {
        Status: query.status,
        FulfillmentStatus: query.fulfillment_status,
        FinancialStatus: query.financial_status,
    }
    if not any(statuses.values()):
        return None
    choices: list[Iterable[str]] = [[value] if value else words_of(kind) for kind, value in statuses.items()]
    return ["/".join(cell) for cell in product(*choices)]


def build_search(text: str) -> dict[str, list[str | None]]:
    """The pattern for the customer's name, and the range of ids that start with the text."""
    start = lower_ascii(text.strip())
    if not start:
        raise Invalid.field("search", "must not be blank")
    if ORDER_ID.prefix.startswith(start):
        return {}  # every id starts with it
    name, ids = fold(text), [start, build_end(start)]
    if _ONE_OR_TWO_LETTERS(name):
        return {"beginning": [name, build_end(name), *ids]}
    if name and not _THREE_LETTERS(name):
        return {"short_search": [name, *ids]}
    return {"search": [contains(name) if name else None, *ids]}


def lower_ascii(text: str) -> str:
    """As PostgreSQL's lower() does in the collation of ids."""
    return text.encode().lower().decode()


def build_end(start: str) -> str:
    """The first text, by code points, after all texts with this prefix."""
    prefix = start.rstrip(LAST_CHARACTER)
    if not prefix:
        return LAST_TEXT
    following = ord(prefix[-1]) + 1
    # Surrogates are not characters and cannot be sent.
    return prefix[:-1] + chr(0xE000 if following == 0xD800 else following)
