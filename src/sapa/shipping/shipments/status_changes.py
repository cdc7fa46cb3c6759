"""How a shipment's state changes by what its carrier says, and how every change of one is stored and announced."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from sapa.db.pool import Tx
from sapa.events import Event, emit
from sapa.orders import actions as orders
from sapa.shipping.bookings import queries as bookings
from sapa.shipping.carriers.interface import CarrierEvent, Driver
from sapa.shipping.shipments import queries
from sapa.shipping.shipments.document import build_instant, encode_driver, read_driver
from sapa.shipping.shipments.due_queries import LONGEST_PARCEL, LONGEST_RIDE
from sapa.shipping.shipments.queries import Clock
from sapa.shipping.states import ACCEPTED, GONE, STATUSES, TERMINAL, UNDER_WAY, Who, is_allowed
from sapa.shipping.types import (
    LOCAL,
    Shipment,
    ShipmentBooked,
    ShipmentCancelled,
    ShipmentStatusUpdated,
    ShipmentUpdated,
    StoredShipment,
)
from sapa.values.company import Company
from sapa.values.ids import new_id

NOT_BOOKED_YET = frozenset({"booking", "booking_unknown", "booking_failed"})
TROUBLED = frozenset({"no_driver", "rejected", "lost"})
EXPLAINED = TROUBLED | {"on_hold", "delivery_failed", "returning"}

CALLED, POLLED = "carrier_webhook", "carrier_poll"
"""How an event came to us."""

AHEAD_SECONDS = 60
"""So far a carrier's words may be ahead of the company's clock."""

POLL_DAYS = 45
SOON, LATER = {"EXPRESS": 3_600, "INSTANT": 60}, {"EXPRESS": LONGEST_PARCEL, "INSTANT": LONGEST_RIDE}
"""Seconds until a carrier is asked how it goes; later where it calls back by itself."""


class Verdict(Struct, frozen=True):
    """What an event makes of a shipment."""

    kept: StoredShipment
    is_applied: bool


async def store(tx: Tx, company: Company, before: StoredShipment, after: StoredShipment) -> StoredShipment:
    """Saves a shipment that is locked, and announces what others can see of the change."""
    if after == before:
        return before
    is_visible = after.shipment != before.shipment
    if after.shipping_status in UNDER_WAY and after.picked_up_at is None:
        now = (await queries.get_clock(tx, company.id)).now
        after = msgspec.structs.replace(after, picked_up_at=now)
    stored = await queries.save_shipment(tx, company.id, after, is_visible)
    for event in list_tidings(before, stored) if is_visible else ():
        await emit(tx, company, event)
    if stored.provider in LOCAL and stored.shipping_status != before.shipping_status:
        await remember(tx, company, stored)
    await _fulfil(tx, company, before, stored)
    return stored


async def remember(tx: Tx, company: Company, kept: StoredShipment) -> None:
    """A step by hand, in the history that a carrier would have told otherwise."""
    now = datetime.fromisoformat((await queries.get_clock(tx, company.id)).now)
    words = kept.shipping_status.replace("_", " ")
    event = CarrierEvent(dedupe_key=new_id("step_"), occurred_at=now, status=kept.shipping_status, text=words)
    await queries.insert_event(tx, company.id, kept.id, event, "api", applied=True)


def list_tidings(before: Shipment, after: StoredShipment) -> list[Event]:
    """Every change of state is one, and those that matter most have a name of their own besides."""
    shown, was, now = after.shipment, before.shipping_status, after.shipping_status
    if was == now:
        return [ShipmentUpdated(shown)]
    tidings: list[Event] = [ShipmentStatusUpdated(shown)]
    if was in {"draft", "awaiting", *NOT_BOOKED_YET} and now in set(STATUSES) - _UNBOOKED:
        tidings.append(ShipmentBooked(shown))
    if now in GONE:
        tidings.append(ShipmentCancelled(shown))
    return tidings


_UNBOOKED = {"draft", "awaiting", *NOT_BOOKED_YET, *GONE, "cancelling"}


async def _fulfil(tx: Tx, company: Company, before: StoredShipment, after: StoredShipment) -> None:
    """Goods that were picked up have left: their order is fulfilled."""
    if after.order_id is None or after.shipping_status == before.shipping_status:
        return
    if after.shipping_status == "delivered" or (after.picked_up_at and not before.picked_up_at):
        await orders.fulfil(tx, company, after.order_id)


async def apply_events(
    tx: Tx, company: Company, asked: StoredShipment, events: Sequence[CarrierEvent], source: str
) -> StoredShipment:
    """Each event once, oldest first; what is late or impossible is kept and moves nothing.

    `asked` is the shipment as it was when the carrier was asked: of a booking that was replaced since, nothing counts.
    """
    kept = await queries.lock_shipment(tx, company.id, asked.id)
    if kept.reference != asked.reference:
        return kept
    clock = await queries.get_clock(tx, company.id, AHEAD_SECONDS)
    for event in [date(kept, asked, event) for event in events]:
        if not await queries.has_event(tx, company.id, kept.id, event.dedupe_key):
            kept = await _apply(tx, company, kept, event, source, clock)
    if source == POLLED:
        after = msgspec.structs.replace(kept, poll_at=build_poll_at(kept, clock, source))
        kept = await store(tx, company, kept, after)
    return kept


async def _apply(
    tx: Tx, company: Company, kept: StoredShipment, event: CarrierEvent, source: str, clock: Clock
) -> StoredShipment:
    event = read_with(kept, cap(event, clock))
    is_turned_back = company.environment == "test" and is_from_the_future(kept, event, clock.later)
    verdict = judge(msgspec.structs.replace(kept, event_timestamp=None) if is_turned_back else kept, event, source)
    await queries.insert_event(tx, company.id, kept.id, event, source, verdict.is_applied)
    after = verdict.kept
    if not verdict.is_applied:
        after = msgspec.structs.replace(after, event_timestamp=kept.event_timestamp)
    if kept.shipping_status in NOT_BOOKED_YET and after.shipping_status not in NOT_BOOKED_YET:
        attempt = await bookings.find_by_reference(tx, company.id, kept.reference)
        if attempt is not None:
            await bookings.settle_attempt(tx, attempt, "succeeded", by=source)
    after = msgspec.structs.replace(after, poll_at=build_poll_at(after, clock, source))
    return await store(tx, company, kept, after)


def cap(event: CarrierEvent, clock: Clock) -> CarrierEvent:
    """What is said to happen later counts as happening now: else all that really comes would be late."""
    if build_instant(event.occurred_at) <= clock.later:
        return event
    return msgspec.structs.replace(event, occurred_at=datetime.fromisoformat(clock.now))


def is_from_the_future(kept: StoredShipment, event: CarrierEvent, later: str) -> bool:
    """A test clock was turned back: what was said at a time that has not come yet does not make news late."""
    return kept.event_timestamp is not None and build_instant(event.occurred_at) <= later < kept.event_timestamp


def date(kept: StoredShipment, asked: StoredShipment, event: CarrierEvent) -> CarrierEvent:
    """A present state is no older than what was known when the carrier was asked, unless there was news meanwhile."""
    if not event.is_present or kept.event_timestamp != asked.event_timestamp:
        return event
    known = datetime.fromisoformat(kept.event_timestamp or kept.created_at)
    occurred_at = max(event.occurred_at, known)
    key = f"{event.dedupe_key}/{build_instant(occurred_at)}"
    return msgspec.structs.replace(event, occurred_at=occurred_at, dedupe_key=key)


def read_with(kept: StoredShipment, event: CarrierEvent) -> CarrierEvent:
    """Carriers use one word for giving up before the pick-up and after it; after it the goods are on their way back."""
    if event.status == "rejected" and kept.picked_up_at is not None:
        return msgspec.structs.replace(event, status="returning")
    return event


def judge(kept: StoredShipment, event: CarrierEvent, source: str) -> Verdict:
    """Pure: where the event leads, if it leads anywhere."""
    occurred = build_instant(event.occurred_at)
    filled = _fill(kept, event)
    is_late = kept.event_timestamp is not None and occurred < kept.event_timestamp
    if event.status is None or event.status not in STATUSES or is_late:
        return Verdict(filled, is_applied=False)
    to = _target(kept, event)
    who: Who = "R" if event.is_reassignment else "C"
    told = {"event_timestamp": occurred, "status_code": event.status_code}
    if to == kept.shipping_status:
        return Verdict(msgspec.structs.replace(_tell(filled, event), **told), is_applied=True)
    if kept.shipping_status == "cancelling" and (to in ACCEPTED or to == kept.cancelling_from):
        return Verdict(msgspec.structs.replace(_tell(filled, event), **told, cancelling_from=to), is_applied=True)
    is_again = kept.shipping_status == "delivered" and occurred == kept.event_timestamp
    if is_again or not is_allowed(kept.shipping_status, to, who):
        return Verdict(filled, is_applied=False)
    moved = msgspec.structs.replace(_tell(filled, event), **told, shipping_status=to, **_consequences(kept, event, to))
    if to in GONE:
        moved = _cancelled(kept, moved, event, source)
    return Verdict(moved, is_applied=True)


def _target(kept: StoredShipment, event: CarrierEvent) -> str:
    """A cancellation that we asked the EV courier for has a name of its own."""
    if event.status == "cancelled" and kept.provider == "ev_courier" and kept.shipping_status != "cancelled":
        return (
            "cancelled_by_business" if kept.shipping_status in {"cancelling", "cancelled_by_business"} else "cancelled"
        )
    return str(event.status)


def _fill(kept: StoredShipment, event: CarrierEvent) -> StoredShipment:
    """Numbers that were not known yet are good news at any time."""
    return msgspec.structs.replace(
        kept,
        awb=kept.awb or event.awb,
        order_no=kept.order_no or event.order_no,
        tracking_url=kept.tracking_url or event.tracking_url,
    )


def _tell(kept: StoredShipment, event: CarrierEvent) -> StoredShipment:
    """What the carrier knows better than before; it never takes back a number by leaving it out."""
    return msgspec.structs.replace(
        kept,
        awb=event.awb or kept.awb,
        tracking_url=event.tracking_url or kept.tracking_url,
        driver=encode_driver(_driver(kept, event)),
    )


def _driver(kept: StoredShipment, event: CarrierEvent) -> Driver | None:
    is_new = event.is_reassignment or event.status == "finding_driver"
    known = None if kept.driver is None or is_new else read_driver(kept.driver)
    if known is None:
        return event.driver
    said = event.driver or Driver()
    return Driver(*(getattr(said, name) or getattr(known, name) for name in Driver.__struct_fields__))


def _consequences(kept: StoredShipment, event: CarrierEvent, to: str) -> dict[str, object]:
    is_contradiction = kept.shipping_status in GONE
    is_over = kept.shipping_status in TROUBLED | NOT_BOOKED_YET
    explained = (event.reason or event.text) if to in EXPLAINED else None
    kept_problem = kept.problem if kept.needs_action and not is_over else None
    contradiction = "The carrier carries it although it was cancelled." if is_contradiction else None
    return {
        "needs_action": to in TROUBLED or is_contradiction or (kept.needs_action and not is_over),
        "problem": contradiction or explained or kept_problem,
        "cancelling_from": None,
        "cancel_due_at": None,
        "cancel_tries": 0,
    }


def _cancelled(kept: StoredShipment, moved: StoredShipment, event: CarrierEvent, source: str) -> StoredShipment:
    """Who asked for it first, and why, stays as it was said then."""
    if kept.shipping_status == "cancelling":
        return moved
    return msgspec.structs.replace(
        moved,
        cancelled_by=event.cancelled_by or "carrier",
        cancelled_source=source,
        cancellation_reason=event.reason or moved.cancellation_reason,
    )


def build_poll_at(kept: StoredShipment, clock: Clock, source: str | None = None) -> str | None:
    """When to ask the carrier next, if it says nothing before; by the company's clock."""
    if kept.reference is None or kept.shipping_status in TERMINAL | TROUBLED | NOT_BOOKED_YET:
        return None
    real = datetime.fromisoformat(clock.real)
    if kept.created_at and real - datetime.fromisoformat(kept.created_at) > timedelta(days=POLL_DAYS):
        return None
    pace = "EXPRESS" if kept.provider == "aggregator_carrier" else "INSTANT"
    seconds = (LATER if source == CALLED else SOON)[pace]
    return build_instant(datetime.fromisoformat(clock.now) + timedelta(seconds=seconds))
