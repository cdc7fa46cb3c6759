"""How a carrier's event changes a shipment. Pure: no database."""

from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from sapa.shipping.carriers.interface import CarrierEvent, Driver
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.shipments.actions import encode_driver
from sapa.shipping.states import ACCEPTED, CANCELLED, FAILED, NOT_BOOKED_YET, STATUSES, Actor, is_allowed
from sapa.shipping.types import StoredShipment, choose_payment_status, read_driver
from sapa.values.instants import format_instant, truncate_to_milliseconds

MAX_AHEAD = timedelta(seconds=60)
"""How far a carrier's clock may be ahead of the company's."""
EXPLAINED = FAILED | {"on_hold", "delivery_failed", "returning"}


class StatusChange(Struct, frozen=True):
    """The shipment after an event, and whether the event moved it."""

    shipment: StoredShipment
    is_applied: bool


def cap_to_now(event: CarrierEvent, now: datetime) -> CarrierEvent:
    """An event dated in the future counts as now; otherwise every later event would seem late."""
    occurred_at = truncate_to_milliseconds(event.occurred_at)
    return msgspec.structs.replace(event, occurred_at=occurred_at if occurred_at <= now + MAX_AHEAD else now)


def is_from_the_future(shipment: StoredShipment, event: CarrierEvent, now: datetime) -> bool:
    """Whether the last event lies in the future because a test clock was set back: it must not make new events late."""
    last, latest = shipment.event_timestamp, now + MAX_AHEAD
    return last is not None and event.occurred_at <= latest < last


def date_event(shipment: StoredShipment, before: StoredShipment, event: CarrierEvent) -> CarrierEvent:
    """A present status is no older than the last event known when the carrier was asked, unless one arrived since."""
    if not event.is_present or shipment.event_timestamp != before.event_timestamp:
        return event
    occurred_at = max(event.occurred_at, shipment.event_timestamp or shipment.created_at)
    key = f"{event.dedupe_key}/{format_instant(occurred_at)}"
    return msgspec.structs.replace(event, occurred_at=occurred_at, dedupe_key=key)


def resolve_status(shipment: StoredShipment, event: CarrierEvent) -> CarrierEvent:
    """Carriers use one word for rejections before and after pickup; after pickup the parcel is returning."""
    if event.status == "rejected" and shipment.picked_up_at is not None:
        return msgspec.structs.replace(event, status="returning")
    return event


def build_change(shipment: StoredShipment, event: CarrierEvent, source: str) -> StatusChange:
    """The change that the event makes, if any."""
    occurred = truncate_to_milliseconds(event.occurred_at)
    filled = _fill(shipment, event)
    is_late = shipment.event_timestamp is not None and occurred < shipment.event_timestamp
    if event.status is None or event.status not in STATUSES or is_late:
        return StatusChange(filled, is_applied=False)
    to = _target(shipment, event)
    actor: Actor = "reassignment" if event.is_reassignment else "carrier"
    stamp = {"event_timestamp": occurred, "status_code": event.status_code}
    if to == shipment.shipping_status:
        return StatusChange(msgspec.structs.replace(_update_details(filled, event), **stamp), is_applied=True)
    if shipment.shipping_status == "cancelling" and (to in ACCEPTED or to == shipment.cancelling_from):
        return StatusChange(
            msgspec.structs.replace(_update_details(filled, event), **stamp, cancelling_from=to), is_applied=True
        )
    is_again = shipment.shipping_status == "delivered" and occurred == shipment.event_timestamp
    if is_again or not is_allowed(shipment.shipping_status, to, actor):
        return StatusChange(filled, is_applied=False)
    moved = msgspec.structs.replace(
        _update_details(filled, event), **stamp, shipping_status=to, **_consequences(shipment, event, to)
    )
    if to in CANCELLED:
        moved = _cancelled(shipment, moved, event, source)
    return StatusChange(moved, is_applied=True)


def _target(shipment: StoredShipment, event: CarrierEvent) -> str:
    """The status of a cancellation that we requested depends on the provider."""
    asked_for = PROVIDERS[shipment.provider].cancelled_status
    if event.status == "cancelled" and shipment.shipping_status in {"cancelling", asked_for}:
        return asked_for
    return str(event.status)


def _fill(shipment: StoredShipment, event: CarrierEvent) -> StoredShipment:
    """Missing numbers are filled in by any event, even a late one. A settled payment has no code any more."""
    payment_status = choose_payment_status(shipment.payment_status, event.payment_status)
    return msgspec.structs.replace(
        shipment,
        awb=shipment.awb or event.awb,
        order_no=shipment.order_no or event.order_no,
        tracking_url=shipment.tracking_url or event.tracking_url,
        sorting_code=shipment.sorting_code or event.sorting_code,
        payment_status=payment_status,
        payment_qr=shipment.payment_qr if payment_status == "pending" else None,
    )


def _update_details(shipment: StoredShipment, event: CarrierEvent) -> StoredShipment:
    """Newer values win; an event never clears a number by leaving it out."""
    return msgspec.structs.replace(
        shipment,
        awb=event.awb or shipment.awb,
        tracking_url=event.tracking_url or shipment.tracking_url,
        driver=encode_driver(_driver(shipment, event)),
    )


def _driver(shipment: StoredShipment, event: CarrierEvent) -> Driver | None:
    is_new = event.is_reassignment or event.status == "finding_driver"
    existing = None if shipment.driver is None or is_new else read_driver(shipment.driver)
    if existing is None:
        return event.driver
    reported = event.driver or Driver()
    return Driver(*(getattr(reported, name) or getattr(existing, name) for name in Driver.__struct_fields__))


def _consequences(shipment: StoredShipment, event: CarrierEvent, to: str) -> dict[str, object]:
    is_contradiction = shipment.shipping_status in CANCELLED
    is_over = shipment.shipping_status in FAILED | NOT_BOOKED_YET
    explained = (event.reason or event.text) if to in EXPLAINED else None
    open_problem = shipment.problem if shipment.needs_action and not is_over else None
    contradiction = "The carrier delivers the shipment although it was cancelled." if is_contradiction else None
    return {
        "needs_action": to in FAILED or is_contradiction or (shipment.needs_action and not is_over),
        "problem": contradiction or explained or open_problem,
        "cancelling_from": None,
        "cancel_due_at": None,
        "cancel_tries": 0,
    }


def _cancelled(shipment: StoredShipment, moved: StoredShipment, event: CarrierEvent, source: str) -> StoredShipment:
    """A cancellation that was requested keeps its requester and reason."""
    if shipment.shipping_status == "cancelling":
        return moved
    return msgspec.structs.replace(
        moved,
        cancelled_by=event.cancelled_by or "carrier",
        cancelled_source=source,
        cancellation_reason=event.reason or moved.cancellation_reason,
    )
