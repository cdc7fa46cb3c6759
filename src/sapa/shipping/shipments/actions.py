"""How a stored shipment changes: every change is saved and announced here."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import Raw

from sapa.access.actions import read_clock
from sapa.access.types import CompanyClock
from sapa.db.pool import Connection, Tx, notify_after_commit
from sapa.events import CHANNEL, EVENT_ID, Event, emit, emit_all, is_silent
from sapa.orders import actions as orders
from sapa.ports import publish
from sapa.shipping.carriers.interface import CarrierEvent, Driver
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.errors import NotEditable
from sapa.shipping.events import (
    CashCollected,
    CashParcelReturned,
    ShipmentBooked,
    ShipmentCancelled,
    ShipmentCreated,
    ShipmentStatusChanged,
    ShipmentStatusUpdated,
    ShipmentUpdated,
)
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.shipments import queries
from sapa.shipping.shipments.types import CALLED, LONGEST_POLL
from sapa.shipping.states import ACCEPTED, CANCELLED, FAILED, NOT_BOOKED_YET, STATUSES, TERMINAL, UNDER_WAY
from sapa.shipping.types import Shipment, ShownDriver, StoredShipment, new_tracking_page
from sapa.values.company import Company
from sapa.values.ids import new_id
from sapa.values.json import encode

DETACH_BATCH = 500
POLL_DAYS = 45
MAX_OF_ORDERS = 50
BETWEEN_ATTEMPTS = timedelta(hours=1)
PAYMENT_PERIOD = timedelta(hours=24)
"""For how long after its creation an unpaid booking is polled often."""
SOON, LATER = {"parcel": 3_600, "ride": 60}, LONGEST_POLL
"""Seconds until a carrier is polled; longer after a callback."""

SORTING_CODE_SECONDS = 5

_WITHOUT_INSTANTS = b'","updatedAt":""}'
"""How the document of a new shipment ends until the database has given it its instants."""

_UNBOOKED = {"draft", "awaiting", *NOT_BOOKED_YET, *CANCELLED, "cancelling"}


async def get_stored(db: Connection, company_id: int, id: str) -> StoredShipment:
    """Raises ShipmentNotFound."""
    return await queries.get_stored(db, company_id, id)


async def list_stored(db: Connection, company_id: int, ids: Sequence[str]) -> list[StoredShipment]:
    """In the order of the ids; unknown ones are left out."""
    found = {stored.id: stored for stored in await queries.list_stored(db, company_id, ids)}
    return [found[id] for id in ids if id in found]


async def find_by_tracking_page(db: Connection, path: str) -> tuple[int, StoredShipment] | None:
    """The company and the shipment of a public tracking page."""
    place = await queries.find_tracking_page(db, path)
    return None if place is None else (place.company_id, await queries.get_stored(db, place.company_id, place.id))


async def lock_shipment(tx: Tx, company_id: int, id: str) -> StoredShipment:
    """Every change starts here, so that the worker, callbacks and calls change a shipment one after the other."""
    return await queries.lock_shipment(tx, company_id, id)


async def lock_parcels(
    tx: Tx, company_id: int, numbers: Sequence[str], provider: str, currency: str
) -> dict[str, StoredShipment]:
    """The shipments by the carrier's numbers of them; of several with one number, the newest that collects cash."""
    matches = await queries.match_parcels(tx, company_id, numbers, provider, currency)
    locked = await queries.lock_shipments(tx, company_id, sorted({match.id for match in matches}))
    by_id = {shipment.id: shipment for shipment in locked}
    found = [(match.number, by_id[match.id]) for match in matches if match.id in by_id]
    return dict(sorted(found, key=lambda pair: (pair[1].cod_amount is not None, pair[1].id)))


async def list_remitted(db: Connection, company_id: int, references: Sequence[str]) -> set[str]:
    """Our references of the bookings whose cash the carrier has paid out."""
    return set(await queries.list_remitted(db, company_id, references))


async def list_newest(db: Connection, company_id: int, status: str | None, most: int) -> list[Shipment]:
    """The newest shipments, or the newest with this status."""
    filters = {"cells": [f"{provider}/{status}" for provider in PROVIDERS]} if status else {}
    shipments, _ = await queries.list_shipments(db, company_id, filters, most, 0)
    return shipments


async def list_of_orders(db: Connection, company: Company, order_ids: Sequence[str]) -> list[Shipment]:
    """The newest shipments of some orders."""
    found, _ = await queries.list_shipments(db, company.id, {"order_ids": list(order_ids)}, MAX_OF_ORDERS, 0)
    return found


async def create(tx: Tx, company: Company, shipment: StoredShipment) -> StoredShipment:
    """Inserts a new shipment and announces it. A local one may be confirmed from the start."""
    shown = encode(msgspec.structs.replace(shipment.shipment, created_at="", updated_at=""))
    event_id = None if is_silent(tx) else EVENT_ID.new()
    body_start = shown.removesuffix(_WITHOUT_INSTANTS)
    inserted = await queries.insert_shipment(tx, company.id, shipment, event_id, ShipmentCreated.kind, body_start)
    if inserted.has_deliveries:
        notify_after_commit(tx, CHANNEL)
    stored = msgspec.structs.replace(
        shipment, created_at=inserted.created_at, updated_at=inserted.updated_at, cell=inserted.cell
    )
    if stored.shipping_status == "confirmed":
        await emit(tx, company, ShipmentBooked(stored.shipment))
        await _record_step(tx, company, stored, (await read_clock(tx, company.id)).now)
        draft = msgspec.structs.replace(stored, shipping_status="draft")
        await publish(tx, company, ShipmentStatusChanged(draft, stored))
    return stored


async def store(tx: Tx, company: Company, before: StoredShipment, after: StoredShipment) -> StoredShipment:
    """Saves a locked shipment, and announces the visible part of the change."""
    if after == before:
        return before
    after = await _with_milestones(tx, company, before, after)
    is_visible = after.shipment != before.shipment
    if after.tracking_page is None:  # it is older than the pages are
        after = msgspec.structs.replace(after, tracking_page=new_tracking_page())
    stored = await queries.save_shipment(tx, company.id, after, is_visible)
    for event in build_events(before, stored) if is_visible else ():
        await emit(tx, company, event)
    if PROVIDERS[stored.provider].is_local and stored.shipping_status != before.shipping_status:
        await _record_step(tx, company, stored, await _get_time(tx, company, before, stored))
    await _fulfil_order(tx, company, before, stored)
    await _announce_arrival(tx, company, before, stored)
    if stored.shipping_status != before.shipping_status:
        await publish(tx, company, ShipmentStatusChanged(before, stored))
    return stored


async def _with_milestones(tx: Tx, company: Company, before: StoredShipment, after: StoredShipment) -> StoredShipment:
    """When it was picked up and delivered, when its cash was collected, and how many deliveries failed."""
    is_moved = after.shipping_status != before.shipping_status
    is_picked_up = after.shipping_status in UNDER_WAY and after.picked_up_at is None
    is_delivered = after.shipping_status == "delivered" and is_moved
    changes: dict[str, object] = {}
    if is_failed_attempt(before, after):
        changes["failed_attempts"] = before.failed_attempts + 1
    has_cash = after.shipping_status == "delivered" and after.cod_amount is not None and after.cod_collected_at is None
    if is_picked_up or is_delivered or has_cash:
        now = await _get_time(tx, company, before, after)
        changes |= {"picked_up_at": now} if is_picked_up else {}
        changes |= {"delivered_at": now} if is_delivered else {}
        changes |= {"cod_collected_at": now} if has_cash else {}
    return msgspec.structs.replace(after, **changes) if changes else after


async def _get_time(tx: Tx, company: Company, before: StoredShipment, after: StoredShipment) -> datetime:
    """When a status changed: as the carrier reported it, or now if a person set it."""
    is_by_hand = PROVIDERS[after.provider].is_local and after.event_timestamp == before.event_timestamp
    if after.event_timestamp is None or is_by_hand:
        return (await read_clock(tx, company.id)).now
    return after.event_timestamp


def is_failed_attempt(before: StoredShipment, after: StoredShipment) -> bool:
    """Carriers report one attempt several times, but never two attempts within an hour."""
    if after.shipping_status != "delivery_failed":
        return False
    if before.shipping_status != "delivery_failed":
        return True
    last, this = before.event_timestamp, after.event_timestamp
    return last is not None and this is not None and this - last >= BETWEEN_ATTEMPTS


async def _announce_arrival(tx: Tx, company: Company, before: StoredShipment, after: StoredShipment) -> None:
    if after.cod_collected_at is not None and before.cod_collected_at is None:
        await publish(tx, company, CashCollected(after))
    if after.shipping_status == "returned" != before.shipping_status and after.cod_collected_at is not None:
        await publish(tx, company, CashParcelReturned(after))


def build_events(before: StoredShipment, after: StoredShipment) -> list[Event]:
    """One event per status change, and a second one for changes with an event of their own."""
    shown, was, now = after.shipment, before.shipping_status, after.shipping_status
    if was == now:
        return [ShipmentUpdated(shown)]
    events: list[Event] = [ShipmentStatusUpdated(shown)]
    if was in {"draft", "awaiting", *NOT_BOOKED_YET} and now in set(STATUSES) - _UNBOOKED:
        events.append(ShipmentBooked(shown))
    if now in CANCELLED:
        events.append(ShipmentCancelled(shown))
    return events


async def _record_step(tx: Tx, company: Company, stored: StoredShipment, now: datetime) -> None:
    """Adds a manual status change to the tracking history."""
    text = stored.shipping_status.replace("_", " ")
    event = CarrierEvent(dedupe_key=new_id("step_"), occurred_at=now, status=stored.shipping_status, text=text)
    await record_event(tx, company, stored.id, event, "api", applied=True)


async def record_event(
    tx: Tx, company: Company, shipment_id: str, event: CarrierEvent, source: str, *, applied: bool
) -> bool:
    """Adds an event to the tracking history. False if it is there already."""
    return await queries.insert_event(tx, company.id, shipment_id, event, source, applied)


async def _fulfil_order(tx: Tx, company: Company, before: StoredShipment, after: StoredShipment) -> None:
    """A picked-up shipment fulfils its order; a return fulfils nothing."""
    if after.order_id is None or after.return_of is not None or after.shipping_status == before.shipping_status:
        return
    if after.shipping_status == "delivered" or (after.picked_up_at and not before.picked_up_at):
        await orders.fulfil_by_shipment(tx, company, after.order_id, after.id)


async def find_order_id(tx: Tx, company: Company, shipment_id: str) -> str | None:
    """The order that a shipment carries; None for a shipment without an order, and for an unknown one."""
    return await queries.find_order_id(tx, company.id, shipment_id)


async def discard(tx: Tx, company: Company, id: str) -> None:
    stored = await queries.lock_shipment(tx, company.id, id)
    if stored.shipping_status != "draft":
        raise NotEditable(f"Only a draft can be discarded; the shipment is {stored.shipping_status}.")
    await queries.delete_shipment(tx, company.id, id)


async def detach_store(tx: Tx, company: Company, store_id: str) -> int:
    """Clears the store of up to `DETACH_BATCH` shipments and returns of how many; they keep their sender."""
    left = await queries.detach_store(tx, company.id, store_id, DETACH_BATCH)
    await emit_all(tx, company, [ShipmentUpdated(shipment) for shipment in left])
    return len(left)


def name_courier(shipment: StoredShipment) -> str:
    """The courier that carries it: an aggregator's service code starts with it."""
    if shipment.selected_expedition:
        return shipment.selected_expedition
    courier, colon, _ = (shipment.service_code or "").partition(":")
    if colon:
        return courier.upper()
    adapter = CARRIERS.get(shipment.adapter or "")
    return adapter.label if adapter else shipment.provider_label


def encode_driver(driver: Driver | None) -> Raw | None:
    if driver is None:
        return None
    return Raw(encode(ShownDriver(driver.name, driver.phone, driver.photo, driver.license_plate)))


def build_poll_at(shipment: StoredShipment, clock: CompanyClock, source: str | None = None) -> datetime | None:
    """When to poll the carrier next if no callback arrives, by the company's clock."""
    if shipment.reference is None or shipment.shipping_status in TERMINAL | FAILED | NOT_BOOKED_YET:
        return None
    if clock.real - shipment.created_at > timedelta(days=POLL_DAYS):
        return None
    is_unpaid = shipment.payment_status == "pending" and clock.real - shipment.created_at < PAYMENT_PERIOD
    pace = "ride" if is_unpaid else PROVIDERS[shipment.provider].pace
    seconds = (LATER if source == CALLED else SOON)[pace]
    if source == CALLED and _lacks_sorting_code(shipment):
        seconds = SORTING_CODE_SECONDS
    return clock.now + timedelta(seconds=seconds)


def _lacks_sorting_code(shipment: StoredShipment) -> bool:
    """Callbacks bring the awb; the code for the label is in the carrier's tracking only."""
    is_to_be_printed = shipment.awb is not None and shipment.shipping_status in ACCEPTED
    return is_to_be_printed and shipment.sorting_code is None and PROVIDERS[shipment.provider].pace == "parcel"


async def reschedule_rewound(db: Connection) -> None:
    """Makes shipments due that wait for a time from which a test clock was set back."""
    for company_id in await queries.list_rewound(db):
        await queries.reschedule(db, company_id)
