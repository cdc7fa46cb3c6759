"""Reads and discards shipments. `shipping/api.py` creates, updates and books them."""

import re
from collections.abc import Iterable
from datetime import datetime
from itertools import product
from typing import Annotated, Any, Literal

from msgspec import Meta

from sapa.access.types import Scope
from sapa.db.listing import contains
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Invalid, Unauthorized
from sapa.http.query_string import PageQuery, SearchText, check_period
from sapa.http.responses import Page, build_page
from sapa.shipping.errors import NotEditable, ShipmentNotFound
from sapa.shipping.providers import PROVIDERS, Provider
from sapa.shipping.shipments import actions, queries
from sapa.shipping.states import GROUPS, STATUSES, Group, Status
from sapa.shipping.types import LOCATION_ID, SHIPMENT_ID, Shipment, ShipmentId
from sapa.values.enum_names import EnumName
from sapa.values.text_folding import fold

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipments", product="CRM", refusal=Unauthorized)

_THREE_LETTERS = re.compile(r"[^\W_]{3}").search
_BEHIND = "\U0010ffff"


class ShipmentsQuery(PageQuery, frozen=True, kw_only=True):
    """Which shipments to list."""

    search: (
        Annotated[SearchText, Meta(description="Part of a name, an awb, an orderNo, or the beginning of an id.")] | None
    ) = None
    status: Annotated[Status, Meta(description="Shipments with this shippingStatus.")] | None = None
    shipping_status: Annotated[Status, Meta(description="The same as status.")] | None = None
    provider: Annotated[Provider, Meta(description="Shipments of this provider.")] | None = None
    order_id: Annotated[str, Meta(max_length=255, description="Shipments of this order.")] | None = None
    awb: Annotated[str, Meta(max_length=100, description="The shipment with this waybill number.")] | None = None
    store_location_id: (
        Annotated[str, Meta(pattern=LOCATION_ID.pattern, description="Shipments from this store location.")] | None
    ) = None
    needs_action: Annotated[Literal["true", "false"], Meta(description="Whether to check by hand.")] | None = None
    cod_state: (
        Annotated[
            Literal["expected", "collected", "remitted"],
            EnumName("CodState"),
            Meta(description="Cash on delivery that is still to be collected, to be remitted, or was remitted."),
        ]
        | None
    ) = None
    return_of: Annotated[str, Meta(pattern=SHIPMENT_ID.pattern, description="The returns of this shipment.")] | None = (
        None
    )
    status_group: Annotated[Group, Meta(description="Those with one of the group's statuses.")] | None = None
    created_from: Annotated[datetime, Meta(description="Created at this instant or later.")] | None = None
    created_to: Annotated[datetime, Meta(description="Created at this instant or earlier.")] | None = None


@routes.get("/shipments", scope=Scope.ORDERS_READ)
async def list_shipments(call: Call, query: ShipmentsQuery) -> Page[Shipment]:
    """List shipments.

    Newest first. `search` finds shipments by part of the sender's, receiver's or service's name, by awb or orderNo, or
    by the beginning of the id.
    """
    found, total = await queries.list_shipments(call.db, call.company.id, _filters(query), query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


@routes.get("/shipments/{id}", scope=Scope.ORDERS_READ, raises=[ShipmentNotFound])
async def get_shipment(call: Call, id: ShipmentId) -> Shipment:
    """Get one shipment."""
    return await queries.get_shipment(call.db, call.company.id, id)


@routes.delete("/shipments/{id}", scope=Scope.ORDERS_DELETE, raises=[ShipmentNotFound, NotEditable])
async def delete_shipment(call: Call, id: ShipmentId) -> None:
    """Delete a shipment that is a draft."""
    await actions.discard(call.db, call.company, id)


def _filters(query: ShipmentsQuery) -> dict[str, Any]:
    check_period("createdFrom", query.created_from, "createdTo", query.created_to)
    filters = {
        **(_search(query.search) if query.search else {}),
        "order_id": query.order_id,
        "awb": query.awb,
        "store_location_id": query.store_location_id,
        "needing_action": True if query.needs_action == "true" else None,
        "no_action_needed": True if query.needs_action == "false" else None,
        **({f"cod_{query.cod_state}": True} if query.cod_state else {}),
        "return_of": query.return_of,
        "created_from": query.created_from,
        "created_to": query.created_to,
        "cells": _cells(query),
    }
    return {name: value for name, value in filters.items() if value is not None}


def _cells(query: ShipmentsQuery) -> list[str] | None:
    """The counter's cells of the requested provider and status."""
    named = [[status] for status in (query.status, query.shipping_status) if status]
    groups = [GROUPS[query.status_group]] if query.status_group else []
    if not (named or groups) and query.provider is None:
        return None
    choices: list[Iterable[str]] = [
        [query.provider] if query.provider else PROVIDERS,
        [status for status in STATUSES if all(status in one for one in (*named, *groups))],
    ]
    return ["/".join(cell) for cell in product(*choices)]


def _search(text: str) -> dict[str, list[str]]:
    start = text.strip()
    if not start:
        raise Invalid.field("search", "must not be blank")
    folded, ids = fold(text), [start, start + _BEHIND]
    if not _THREE_LETTERS(folded):
        return {"short_search": [folded or start, *ids]}
    return {"search": [contains(folded), *ids]}
