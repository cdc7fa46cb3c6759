"""How shipments change, by the hands of people and programs."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Struct

from sapa.db.pool import Tx
from sapa.events import emit
from sapa.http.errors import Invalid
from sapa.orders import actions as orders
from sapa.shipping.areas.actions import check_sub_district
from sapa.shipping.bookings import actions as bookings
from sapa.shipping.bookings.actions import BookingStart
from sapa.shipping.carriers.interface import Area
from sapa.shipping.connections.actions import find_adapter
from sapa.shipping.shipments import queries as shipments
from sapa.shipping.shipments.checks import (
    check_carriers_fields,
    check_schedule,
    check_shipment,
    count_days_ahead,
    with_pickup_city,
)
from sapa.shipping.shipments.document import (
    build_blank,
    read_party,
    revise,
    with_options,
)
from sapa.shipping.shipments.rules import GO_BY_AREA, check_service_type
from sapa.shipping.shipments.status_changes import remember, store
from sapa.shipping.states import EDITABLE, GONE, TERMINAL, is_allowed, list_next
from sapa.shipping.stores import actions as stores
from sapa.shipping.types import (
    BY_PEOPLE,
    LOCAL,
    BookingInProgress,
    InvalidMove,
    NotBookable,
    NotEditable,
    ShipmentBooked,
    ShipmentChange,
    ShipmentCreated,
    ShipmentIn,
    ShipmentPatch,
    StoredShipment,
)
from sapa.values.company import Company


class BookingContext(Struct, frozen=True):
    """What was found out before the transaction began, since carriers may have been asked for it."""

    cities: Sequence[Area] = ()
    """In which the EV courier fetches parcels."""
    adapter: str | None = None
    """Of the carrier that is to be booked with."""


async def create(tx: Tx, company: Company, given: ShipmentIn, around: BookingContext) -> BookingStart:
    """A new shipment, and the intent to book it when that was asked for."""
    if given.options is not None and given.service_type is not UNSET:
        check_service_type("options.serviceType", given.provider, given.options.service_type)
    given = with_options(given)
    blank = build_blank(company, given.provider)
    kept = with_pickup_city(await _revise(tx, company, blank, given), around.cities)
    check_shipment(kept)
    await _check_places(tx, company, kept, blank)
    if given.auto_book and kept.provider in LOCAL:
        kept = msgspec.structs.replace(kept, shipping_status="confirmed")
    elif given.auto_book and kept.provider in BY_PEOPLE:
        kept = msgspec.structs.replace(kept, shipping_status="awaiting")
    stored, attempt = await shipments.insert_shipment(tx, company.id, kept), None
    if given.auto_book and around.adapter is not None:
        started = await bookings.intend(tx, company, stored, around.adapter)
        stored, attempt = await shipments.save_shipment(tx, company.id, started.kept, True), started.attempt
    await emit(tx, company, ShipmentCreated(stored.shipment))
    if stored.shipping_status == "confirmed":
        await emit(tx, company, ShipmentBooked(stored.shipment))
        await remember(tx, company, stored)
    return BookingStart(stored, attempt)


async def update(tx: Tx, company: Company, id: str, given: ShipmentChange, around: BookingContext) -> BookingStart:
    """The edits first, then what is to be done with the shipment; all of it or nothing."""
    if given.resolve_booking is not None and given.trigger_booking:
        raise Invalid.field("triggerBooking", "is given besides resolveBooking; send one of them")
    before = await shipments.lock_shipment(tx, company.id, id)
    kept = await _edit(tx, company, before, given, around)
    if given.shipping_status is not UNSET:
        kept = _move_by_hand(kept, given.shipping_status)
    if given.needs_action is not UNSET:
        kept = _acknowledge(kept, given.needs_action)
    kept = await store(tx, company, before, kept)
    if given.resolve_booking is not None:
        return BookingStart(await bookings.resolve(tx, company, kept, given.resolve_booking), None)
    if given.trigger_booking:
        return await _book(tx, company, kept, around)
    return BookingStart(kept, None)


async def discard(tx: Tx, company: Company, id: str) -> None:
    """For good, and only what nobody has acted upon yet."""
    kept = await shipments.lock_shipment(tx, company.id, id)
    if kept.shipping_status != "draft":
        raise NotEditable(f"Only a draft can be discarded; the shipment is {kept.shipping_status}.")
    await shipments.delete_shipment(tx, company.id, id)


async def _edit(
    tx: Tx, company: Company, before: StoredShipment, given: ShipmentChange, around: BookingContext
) -> StoredShipment:
    kept = await _revise(tx, company, before, given)
    if kept == before:
        return before
    is_open = before.shipping_status not in TERMINAL if before.provider in LOCAL else before.shipping_status in EDITABLE
    if not is_open:
        raise NotEditable(f"The shipment is {before.shipping_status} and cannot be edited any more.")
    if kept.pickup_city != before.pickup_city:
        kept = with_pickup_city(kept, around.cities)
    check_shipment(kept)
    await _check_places(tx, company, kept, before)
    return kept


async def _revise(tx: Tx, company: Company, before: StoredShipment, given: ShipmentPatch) -> StoredShipment:
    """The shipment with what was given, once the order and the store that it names are found."""
    is_homeless = before.sender is None and given.sender is UNSET and before.provider not in LOCAL
    named = await stores.find_sender(tx, company, given.store_location_id, or_default=is_homeless)
    kept = revise(company, before, given, named and named[1])
    if named is not None:
        kept = msgspec.structs.replace(kept, store_location_id=named[0])
    if isinstance(given.order_id, str) and given.order_id != before.order_id:
        kept = msgspec.structs.replace(kept, order_id=await _order_id(tx, company, given.order_id))
    check_carriers_fields(kept, before)
    if kept.pickup_schedule != before.pickup_schedule:
        clock = await shipments.get_clock(tx, company.id, count_days_ahead(kept.provider) * 86_400)
        check_schedule(kept, before, clock.now, clock.later)
    return kept


async def _check_places(tx: Tx, company: Company, kept: StoredShipment, before: StoredShipment) -> None:
    """That both ends are places of the carrier's, as far as that is known."""
    ends = {"sender": (kept.sender, before.sender), "delivery": (kept.delivery, before.delivery)}
    changed = {field: now for field, (now, was) in ends.items() if now is not None and now != was}
    if kept.provider not in GO_BY_AREA or not changed:
        return
    adapter = await find_adapter(tx, company, kept.provider)
    for field, party in ((field, read_party(raw)) for field, raw in changed.items()):
        if adapter is not None:
            ids = party.kecamatan_id, party.kelurahan_id
            await check_sub_district(tx, company, adapter, f"{field}.kelurahanId", *ids)


async def _order_id(tx: Tx, company: Company, given: str) -> str:
    order = await orders.find(tx, company, given)
    if order is None:
        raise Invalid.field("orderId", "is not the id of an order")
    if order.status == "cancelled":
        raise Invalid.field("orderId", "is the id of a cancelled order, which cannot be shipped")
    return order.id


def _move_by_hand(kept: StoredShipment, to: str) -> StoredShipment:
    is_back = to == "returned" and kept.shipping_status in {"returning", "returned"}
    if kept.provider not in LOCAL and not is_back:
        raise Invalid.field(
            "shippingStatus",
            "is the carrier's to tell; by hand go custom and parcel_carrier, and what is returning to returned",
        )
    if to == kept.shipping_status:
        return kept
    if not is_allowed(kept.shipping_status, to, "A" if is_back else "L"):
        allowed = ", ".join(list_next(kept.shipping_status, "L")) or "nothing else"
        raise InvalidMove(f"shippingStatus cannot change from {kept.shipping_status} to {to}; it can be {allowed}.")
    gone = {"cancelled_by": "user", "cancelled_source": "api"} if to in GONE else {}
    return msgspec.structs.replace(kept, shipping_status=to, poll_at=None if is_back else kept.poll_at, **gone)


def _acknowledge(kept: StoredShipment, needs_action: bool) -> StoredShipment:
    """A person has looked at it. What went wrong stays there to be read."""
    if needs_action:
        raise Invalid.field("needsAction", "can be set to false only, which says that a person has looked at it")
    if kept.needs_action and kept.shipping_status == "booking_unknown":
        raise InvalidMove("It is still open whether the carrier took the booking; tell it with resolveBooking.")
    return msgspec.structs.replace(kept, needs_action=False)


async def _book(tx: Tx, company: Company, kept: StoredShipment, around: BookingContext) -> BookingStart:
    """What is booked already stays as it is; the instant carrier waits for a person."""
    if bookings.is_booked(kept):
        return BookingStart(kept, None)
    if around.adapter is not None:
        return await bookings.begin(tx, company, kept, around.adapter)
    if kept.shipping_status == "awaiting":
        return BookingStart(kept, None)
    bookings.check_bookable(kept)
    if kept.provider in LOCAL:
        if not is_allowed(kept.shipping_status, "confirmed", "L"):
            raise NotBookable(f"The shipment is {kept.shipping_status} and cannot be booked; make a new one.")
        after = msgspec.structs.replace(kept, shipping_status="confirmed")
        return BookingStart(await store(tx, company, kept, after), None)
    if kept.provider not in BY_PEOPLE:
        raise BookingInProgress("A booking of this shipment ended just now; look at it, then try again.")
    return BookingStart(await bookings.put_back(tx, company, kept), None)
