"""How shipments are reached."""

import re
from collections.abc import Iterable
from datetime import datetime
from itertools import product
from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, Struct

from sapa.access.types import Scope
from sapa.db.listing import contains
from sapa.db.pool import Tx
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Invalid, Unauthorized
from sapa.http.outbound_call import Errand
from sapa.http.query_string import PageQuery, SearchText
from sapa.http.responses import Accepted, Page, build_page
from sapa.sandbox.carriers.advance import advance
from sapa.shipping import actions
from sapa.shipping.actions import BookingContext
from sapa.shipping.areas import actions as areas
from sapa.shipping.bookings import actions as bookings
from sapa.shipping.bookings import cancel
from sapa.shipping.bookings.actions import BookingStart
from sapa.shipping.carriers.interface import CancelPending, CancelRefused, CarrierAway, Tracked
from sapa.shipping.connections.actions import (
    Opened,
    ProviderNotConnected,
    find_carrier,
    get_carrier,
)
from sapa.shipping.shipments import queries as shipments
from sapa.shipping.shipments.status_changes import POLLED, apply_events
from sapa.shipping.states import BOOKABLE, Status
from sapa.shipping.tracking import actions as tracking
from sapa.shipping.tracking.actions import Tracking
from sapa.shipping.types import (
    BY_PEOPLE,
    LOCAL,
    LOCATION_ID,
    BookingInProgress,
    CancelIn,
    CarrierUnavailable,
    InvalidMove,
    NotBookable,
    NotBooked,
    NotCancellable,
    NotEditable,
    Provider,
    Shipment,
    ShipmentChange,
    ShipmentId,
    ShipmentIn,
    ShipmentNotFound,
)
from sapa.values.text_folding import fold

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipping", product="CRM", refusal=Unauthorized)

_THREE_LETTERS = re.compile(r"[^\W_]{3}").search
_BEHIND = "\U0010ffff"


class ShipmentsQuery(PageQuery, frozen=True, kw_only=True):
    """Which shipments to list."""

    search: (
        Annotated[SearchText, Meta(description="A part of a name, an awb, an orderNo, or the beginning of an id.")]
        | None
    ) = None
    status: Annotated[Status, Meta(description="Shipments with this shippingStatus.")] | None = None
    shipping_status: Annotated[Status, Meta(description="The same as status.")] | None = None
    provider: Annotated[Provider, Meta(description="Shipments of this provider.")] | None = None
    order_id: Annotated[str, Meta(max_length=255, description="Shipments of this order.")] | None = None
    awb: Annotated[str, Meta(max_length=100, description="The shipment with this waybill number.")] | None = None
    store_location_id: (
        Annotated[str, Meta(pattern=LOCATION_ID.pattern, description="Shipments from this store location.")] | None
    ) = None
    needs_action: Annotated[Literal["true", "false"], Meta(description="Whether a person should look.")] | None = None
    created_from: Annotated[datetime, Meta(description="Created at this instant or later.")] | None = None
    created_to: Annotated[datetime, Meta(description="Created at this instant or earlier.")] | None = None


class AdvanceIn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far the simulated carrier is to go."""

    to: Annotated[str, Meta(max_length=50, description="A state to go to; the next one unless given.")] | None = None


@routes.get("/shipments", scope=Scope.ORDERS_READ)
async def list_shipments(call: Call, query: ShipmentsQuery) -> Page[Shipment]:
    """List shipments.

    Newest first. `search` finds shipments by a part of the sender's, receiver's or service's name, by awb or orderNo,
    or by how the id begins.
    """
    found, total = await shipments.list_shipments(call.db, call.company.id, _filters(query), query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


@routes.post("/shipments", scope=Scope.ORDERS_WRITE, raises=[ProviderNotConnected, CarrierUnavailable])
async def create_shipment(errand: Errand, body: ShipmentIn) -> Shipment | Accepted[Shipment]:
    """Create a shipment.

    With `autoBook` the pick-up is requested at once: the answer shows what the carrier made of it, or is a 202 with
    `booking_unknown` when the carrier's answer did not come; that is settled by itself, and the booking is never sent
    twice. `instant_carrier` shipments become `awaiting` instead, without a call to the carrier. Without `autoBook` the
    shipment is a `draft`. `storeLocationId` fills `sender`; fields of `sender` itself win.
    """
    opened, around = await _look_around(errand, body.provider, body.auto_book, needs_cities=True)
    return await _carry_out(errand, opened, lambda tx: actions.create(tx, errand.company, body, around))


@routes.get("/shipments/{id}", scope=Scope.ORDERS_READ, raises=[ShipmentNotFound])
async def get_shipment(call: Call, id: ShipmentId) -> Shipment:
    """Get one shipment."""
    return await shipments.get_shipment(call.db, call.company.id, id)


@routes.patch(
    "/shipments/{id}",
    scope=Scope.ORDERS_WRITE,
    raises=[
        ShipmentNotFound, NotEditable, BookingInProgress, NotBookable, InvalidMove, ProviderNotConnected,
        CarrierUnavailable,
    ],
)  # fmt: skip
async def update_shipment(errand: Errand, id: ShipmentId, body: ShipmentChange) -> Shipment | Accepted[Shipment]:
    """Update a shipment, and book it.

    A field that is absent keeps its value, null clears it. A shipment can be edited until a carrier has it; one of
    `custom` or `parcel_carrier` until it has arrived, and its `shippingStatus` is set here. With `triggerBooking` the
    pick-up is requested, after the edits, as `autoBook` does on creation; what is booked already stays as it is. What
    a person found out about a `booking_unknown` shipment is told with `resolveBooking`.
    """
    async with errand.kit.database.connection() as db:
        now = await shipments.get_shipment(db, errand.company.id, id)
    is_booking = body.trigger_booking and now.shipping_status in BOOKABLE
    needs_cities = body.pickup_city is not UNSET
    opened, around = await _look_around(errand, now.provider, is_booking, needs_cities)
    return await _carry_out(errand, opened, lambda tx: actions.update(tx, errand.company, id, body, around))


@routes.delete("/shipments/{id}", scope=Scope.ORDERS_DELETE, raises=[ShipmentNotFound, NotEditable])
async def discard_shipment(call: Call, id: ShipmentId) -> None:
    """Discard a draft."""
    await actions.discard(call.db, call.company, id)


@routes.post(
    "/shipments/{id}/cancel",
    scope=Scope.ORDERS_WRITE,
    status=200,
    raises=[
        ShipmentNotFound, NotBooked, NotCancellable, BookingInProgress, ProviderNotConnected, CarrierUnavailable,
    ],
)  # fmt: skip
async def cancel_shipment(errand: Errand, id: ShipmentId, body: CancelIn = CancelIn()) -> Shipment | Accepted[Shipment]:
    """Cancel a shipment.

    The carrier is told at once, where it has the shipment. `aggregator_carrier` and `ev_courier` need an awb;
    `instant_carrier` is cancelled at the carrier once it has an orderNo, and locally before; `custom` and
    `parcel_carrier` are cancelled locally. After the pick-up it is refused. When the carrier's answer does not come,
    the answer is a 502 and the shipment is `cancelling` until it is settled; when the carrier takes its time to decide,
    a 202. Cancelling again changes nothing.
    """
    company = errand.company
    async with errand.kit.database.connection() as db:
        now = await shipments.get_kept(db, company.id, id)
        needs_carrier = cancel.choose_way(now) == "carrier"
        opened = await get_carrier(errand.kit, db, company, now.provider) if needs_carrier else None
    if opened is not None and opened.carrier.name != now.adapter:
        raise ProviderNotConnected(f"{now.provider} is served by another carrier now; {now.adapter} has this shipment.")
    kept, way = await errand.intend(
        lambda tx: cancel.begin_cancel(tx, company, id, body.reason, "api"), shown=lambda begun: begun[0].shipment
    )
    if way != "carrier" or opened is None:
        return await errand.conclude(lambda tx: _same(kept.shipment))
    outcome = await cancel.ask_carrier(opened, kept, is_first=now.shipping_status != "cancelling")
    if isinstance(outcome, CarrierAway | CancelRefused):
        await errand.transact(lambda tx: cancel.settle_cancel(tx, company, kept, outcome))
        if isinstance(outcome, CancelRefused):
            raise NotCancellable(f"The carrier refused the cancellation: {outcome.reason}")
        raise CarrierUnavailable(f"The carrier did not answer; the cancellation is being settled. {outcome}")

    async def conclude(tx: Tx) -> Shipment | Accepted[Shipment]:
        settled = await cancel.settle_cancel(tx, company, kept, outcome)
        is_pending = isinstance(outcome, CancelPending) and settled.shipping_status == "cancelling"
        return Accepted(settled.shipment) if is_pending else settled.shipment

    return await errand.conclude(conclude)


@routes.get("/shipments/{id}/tracking", scope=Scope.ORDERS_READ, raises=[ShipmentNotFound])
async def track_shipment(errand: Errand, id: ShipmentId) -> Tracking:
    """Track a shipment.

    The carrier is asked now, and its answer put to the history that is known. When it is away the last known state is
    answered, with `stale` true and the reason in `error`.
    """
    company, kit = errand.company, errand.kit
    async with kit.database.connection() as db:
        kept = await shipments.get_kept(db, company.id, id)
        is_tracked = tracking.is_tracked(kept)
        opened = await find_carrier(kit, db, company, kept.provider) if is_tracked else None
    told = await tracking.ask_carrier(opened, kept) if is_tracked else None
    if isinstance(told, Tracked):
        events = told.events
        asked = kept
        kept = await errand.transact(lambda tx: apply_events(tx, company, asked, events, POLLED))
    async with kit.database.connection() as db:
        return await tracking.build_tracking(db, kept, company.id, told)


@routes.post(
    "/shipments/{id}/sandbox/advance", scope=Scope.ORDERS_WRITE, status=200, raises=[ShipmentNotFound, NotBookable]
)
async def advance_shipment(call: Call, id: ShipmentId, body: AdvanceIn = AdvanceIn()) -> Shipment:
    """Move a simulated shipment on.

    For test keys only: the simulated carrier goes to its next state at once, or to the one that is named, and calls
    back. The shipment follows within a second or two.
    """
    kept = await shipments.get_kept(call.db, call.company.id, id)
    if call.company.environment != "test":
        raise NotBookable("Only shipments of a test environment can be moved on.")
    if kept.adapter is None or kept.reference is None:
        raise NotBookable(f"No simulated carrier has the shipment; it is {kept.shipping_status}.")
    await advance(call.kit, call.db, call.company.id, kept.adapter, kept.reference, body.to)
    return kept.shipment


async def _look_around(
    errand: Errand, provider: str, is_booking: bool, needs_cities: bool
) -> tuple[Opened | None, BookingContext]:
    """What has to be known before the transaction; whoever is not connected cannot be booked with."""
    company, kit = errand.company, errand.kit
    books = is_booking and provider not in LOCAL | BY_PEOPLE
    if not books and provider != "ev_courier":
        return None, BookingContext()
    async with kit.database.connection() as db:
        opened = await get_carrier(kit, db, company, provider) if books else None
        if opened is not None:
            bookings.check_reachable(opened)
        has_list = provider == "ev_courier" and needs_cities
        cities = await areas.list_pickup_cities(kit, db, company) if has_list else ()
    return opened, BookingContext(cities, opened.carrier.name if opened else None)


async def _carry_out(errand: Errand, opened: Opened | None, work: Any) -> Shipment | Accepted[Shipment]:
    """The intent, the call to the carrier where there is one, and the outcome."""
    started: BookingStart = await errand.intend(work, shown=lambda begun: begun.kept.shipment)
    attempt = started.attempt
    if attempt is None or opened is None:
        return await errand.conclude(lambda tx: _same(started.kept.shipment))
    outcome = await bookings.send(errand.kit, opened, started.kept, attempt)

    async def conclude(tx: Tx) -> Shipment | Accepted[Shipment]:
        kept = await bookings.settle(tx, errand.company, attempt.shipment_id, attempt.number, outcome, "api")
        is_open = kept.shipping_status in {"booking", "booking_unknown"}
        return Accepted(kept.shipment) if is_open else kept.shipment

    return await errand.conclude(conclude)


async def _same(shipment: Shipment) -> Shipment:
    return shipment


def _filters(query: ShipmentsQuery) -> dict[str, Any]:
    given = {
        **(_search(query.search) if query.search else {}),
        "order_id": query.order_id,
        "awb": query.awb,
        "store_location_id": query.store_location_id,
        "needing_action": True if query.needs_action == "true" else None,
        "at_ease": True if query.needs_action == "false" else None,
        "created_from": query.created_from,
        "created_to": query.created_to,
        "cells": _cells(query),
    }
    return {name: value for name, value in given.items() if value is not None}


def _cells(query: ShipmentsQuery) -> list[str] | None:
    """The counter's cells that the provider and the state asked for stand for."""
    statuses = {status for status in (query.status, query.shipping_status) if status}
    if not statuses and query.provider is None:
        return None
    choices: list[Iterable[str]] = [
        [query.provider] if query.provider else get_args(Provider),
        [] if len(statuses) > 1 else statuses or get_args(Status),
    ]
    return ["/".join(cell) for cell in product(*choices)]


def _search(text: str) -> dict[str, list[str]]:
    start = text.strip()
    if not start:
        raise Invalid.field("search", "must hold more than blanks")
    words, ids = fold(text), [start, start + _BEHIND]
    if not _THREE_LETTERS(words):
        return {"short_search": [words or start, *ids]}
    return {"search": [contains(words), *ids]}
