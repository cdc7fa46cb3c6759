"""How a stored shipment changes: every change is saved and announced here.

Functions that only read or write are the room's queries, exported for the other rooms of shipping.
"""

from datetime import datetime, timedelta

import msgspec
from msgspec import Raw

from sapa.db.pool import Tx
from sapa.events import Event, emit, emit_all
from sapa.orders import actions as orders
from sapa.shipping.carriers.interface import CarrierEvent, Driver
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.shipments import queries
from sapa.shipping.shipments.types import CALLED, LONGEST_POLL, CompanyClock
from sapa.shipping.states import GONE, NOT_BOOKED_YET, STATUSES, TERMINAL, TROUBLED, UNDER_WAY
from sapa.shipping.types import (
    NotEditable,
    Shipment,
    ShipmentBooked,
    ShipmentCancelled,
    ShipmentStatusUpdated,
    ShipmentUpdated,
    ShownDriver,
    StoredShipment,
    build_instant,
)
from sapa.values.company import Company
from sapa.values.ids import new_id
from sapa.values.json import encode

DETACH_BATCH = 1_000
POLL_DAYS = 45
SOON, LATER = {"parcel": 3_600, "ride": 60}, LONGEST_POLL
"""Seconds until a carrier is polled; longer after a callback."""

_UNBOOKED = {"draft", "awaiting", *NOT_BOOKED_YET, *GONE, "cancelling"}

get_shipment = queries.get_shipment
get_stored = queries.get_stored
lock_shipment = queries.lock_shipment
insert_shipment = queries.insert_shipment
save_shipment = queries.save_shipment
list_shipments = queries.list_shipments
find_by_numbers = queries.find_by_numbers
get_clock = queries.get_clock
insert_event = queries.insert_event
has_event = queries.has_event
list_events = queries.list_events
list_rewound = queries.list_rewound
reschedule = queries.reschedule


async def store(tx: Tx, company: Company, before: StoredShipment, after: StoredShipment) -> StoredShipment:
    """Saves a locked shipment, and announces the visible part of the change."""
    if after == before:
        return before
    is_visible = after.shipment != before.shipment
    if after.shipping_status in UNDER_WAY and after.picked_up_at is None:
        now = (await queries.get_clock(tx, company.id)).now
        after = msgspec.structs.replace(after, picked_up_at=now)
    stored = await queries.save_shipment(tx, company.id, after, is_visible)
    for event in build_events(before, stored) if is_visible else ():
        await emit(tx, company, event)
    if PROVIDERS[stored.provider].is_local and stored.shipping_status != before.shipping_status:
        await record_step(tx, company, stored)
    await _fulfil_order(tx, company, before, stored)
    return stored


def build_events(before: Shipment, after: StoredShipment) -> list[Event]:
    """One event per status change, and a second one for changes with an event of their own."""
    shown, was, now = after.shipment, before.shipping_status, after.shipping_status
    if was == now:
        return [ShipmentUpdated(shown)]
    events: list[Event] = [ShipmentStatusUpdated(shown)]
    if was in {"draft", "awaiting", *NOT_BOOKED_YET} and now in set(STATUSES) - _UNBOOKED:
        events.append(ShipmentBooked(shown))
    if now in GONE:
        events.append(ShipmentCancelled(shown))
    return events


async def record_step(tx: Tx, company: Company, stored: StoredShipment) -> None:
    """Adds a manual status change to the tracking history."""
    now = datetime.fromisoformat((await queries.get_clock(tx, company.id)).now)
    text = stored.shipping_status.replace("_", " ")
    event = CarrierEvent(dedupe_key=new_id("step_"), occurred_at=now, status=stored.shipping_status, text=text)
    await queries.insert_event(tx, company.id, stored.id, event, "api", applied=True)


async def _fulfil_order(tx: Tx, company: Company, before: StoredShipment, after: StoredShipment) -> None:
    """A picked-up shipment fulfils its order."""
    if after.order_id is None or after.shipping_status == before.shipping_status:
        return
    if after.shipping_status == "delivered" or (after.picked_up_at and not before.picked_up_at):
        await orders.fulfil(tx, company, after.order_id)


async def discard(tx: Tx, company: Company, id: str) -> None:
    stored = await queries.lock_shipment(tx, company.id, id)
    if stored.shipping_status != "draft":
        raise NotEditable(f"Only a draft can be discarded; the shipment is {stored.shipping_status}.")
    await queries.delete_shipment(tx, company.id, id)


async def detach_store(tx: Tx, company: Company, store_id: str) -> None:
    """Clears the store of its shipments; they keep their sender."""
    while left := await queries.detach_store(tx, company.id, store_id, DETACH_BATCH):
        await emit_all(tx, company, [ShipmentUpdated(shipment) for shipment in left])


def encode_driver(driver: Driver | None) -> Raw | None:
    if driver is None:
        return None
    return Raw(encode(ShownDriver(driver.name, driver.phone, driver.photo, driver.license_plate)))


def build_poll_at(shipment: StoredShipment, clock: CompanyClock, source: str | None = None) -> str | None:
    """When to poll the carrier next if no callback arrives, by the company's clock."""
    if shipment.reference is None or shipment.shipping_status in TERMINAL | TROUBLED | NOT_BOOKED_YET:
        return None
    real = datetime.fromisoformat(clock.real)
    if shipment.created_at and real - datetime.fromisoformat(shipment.created_at) > timedelta(days=POLL_DAYS):
        return None
    seconds = (LATER if source == CALLED else SOON)[PROVIDERS[shipment.provider].pace]
    return build_instant(datetime.fromisoformat(clock.now) + timedelta(seconds=seconds))
