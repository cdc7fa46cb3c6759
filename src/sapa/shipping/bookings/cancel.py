"""Cancelling: at the carrier where it has the shipment, locally where it has not."""

from datetime import datetime, timedelta
from typing import Literal

import msgspec

from sapa.db.pool import Tx
from sapa.shipping.carriers.interface import (
    BadCredentials,
    Booked,
    Cancelled,
    CancelPending,
    CancelRefused,
    CarrierAway,
    Shipped,
)
from sapa.shipping.connections.actions import Opened
from sapa.shipping.shipments import queries as shipments
from sapa.shipping.shipments.document import build_instant, build_shipped
from sapa.shipping.shipments.due_queries import LONGEST_CANCEL
from sapa.shipping.shipments.status_changes import store
from sapa.shipping.states import ACCEPTED, GONE, UNDER_WAY, is_allowed
from sapa.shipping.types import (
    LOCAL,
    BookingInProgress,
    NotBooked,
    NotCancellable,
    StoredShipment,
)
from sapa.values.company import Company

Way = Literal["nothing", "local", "carrier"]
CancelOutcome = Cancelled | CancelPending | CancelRefused | CarrierAway

PAUSES = (5, 30, 120, 600, LONGEST_CANCEL)
"""Seconds until a carrier that could not say is asked again; the last one from then on."""
HELP_AFTER_TRIES = 50
DEFAULT_REASON = "Cancelled by the sender"
TAKEN = ACCEPTED | {"on_hold", "cancelling"}
"""The carrier has it, also where its number is not known yet."""


def choose_way(kept: StoredShipment) -> Way:
    """How to cancel it, by its provider and how far it has come; raises when it cannot be."""
    status = kept.shipping_status
    if status in GONE:
        return "nothing"
    if kept.provider in LOCAL:
        return _choose_local_way(kept)
    if kept.provider != "instant_carrier" and kept.awb is None:
        raise NotBooked(_explain_not_booked(kept))
    if status == "booking":
        raise BookingInProgress
    if kept.picked_up_at is not None or status in UNDER_WAY:
        raise NotCancellable(f"The shipment was picked up already; it is {status}.")
    if kept.order_no is None and kept.awb is None and status not in TAKEN:
        return "local"
    if status == "cancelling" or is_allowed(status, "cancelling", "A"):
        return "carrier"
    if is_allowed(status, "cancelled", "A"):
        return "local"
    raise NotCancellable(f"The shipment is {status} and cannot be cancelled.")


def _choose_local_way(kept: StoredShipment) -> Way:
    status = kept.shipping_status
    if kept.picked_up_at is None and (is_allowed(status, "cancelled", "L") or is_allowed(status, "cancelled", "A")):
        return "local"
    raise NotCancellable(f"The shipment is {status} and cannot be cancelled any more.")


def _explain_not_booked(kept: StoredShipment) -> str:
    if kept.shipping_status == "draft":
        return "The shipment has no awb: it was never booked. Discard the draft with DELETE instead."
    return f"The shipment has no awb, so the carrier has nothing to cancel; it is {kept.shipping_status}."


async def begin_cancel(
    tx: Tx, company: Company, id: str, reason: str | None, source: str
) -> tuple[StoredShipment, Way]:
    """What can be cancelled here is cancelled; for the rest the wish is noted, before the carrier is told of it."""
    kept = await shipments.lock_shipment(tx, company.id, id)
    way = choose_way(kept)
    if way == "nothing" or (way == "carrier" and kept.shipping_status == "cancelling"):
        return kept, way
    wish = {"cancellation_reason": reason, "cancelled_by": "user", "cancelled_source": source}
    if way == "local":
        after = msgspec.structs.replace(kept, **wish, shipping_status="cancelled", needs_action=False, poll_at=None)
        return await store(tx, company, kept, after), way
    clock = await shipments.get_clock(tx, company.id, PAUSES[0] * 6)
    after = msgspec.structs.replace(
        kept, **wish, shipping_status="cancelling", cancelling_from=kept.shipping_status, cancel_due_at=clock.later
    )
    return await store(tx, company, kept, after), way


async def ask_carrier(opened: Opened, kept: StoredShipment, *, is_first: bool) -> CancelOutcome:
    """Safe to repeat. Asked again, a carrier may refuse because it was done the first time."""
    reason = kept.cancellation_reason or DEFAULT_REASON
    try:
        shipped = await _get_shipped(opened, kept)
        outcome = await opened.carrier.cancel(opened.connection, shipped, reason)
    except CarrierAway as error:
        return error
    except BadCredentials as error:
        return CarrierAway(str(error))
    if isinstance(outcome, CancelRefused) and not outcome.is_sure and not is_first:
        return CarrierAway(outcome.reason)
    return outcome


async def _get_shipped(opened: Opened, kept: StoredShipment) -> Shipped:
    """With a number that the carrier knows it by: a person may have told that it was booked, and not its number."""
    shipped = build_shipped(kept)
    if shipped.order_no or shipped.awb:
        return shipped
    found = await opened.carrier.find(opened.connection, shipped.reference, kept.service_type)
    if not isinstance(found, Booked):
        raise CarrierAway("it could not say which number the booking has")
    return msgspec.structs.replace(shipped, order_no=found.order_no, awb=found.awb, booking_id=found.booking_id)


async def settle_cancel(
    tx: Tx, company: Company, asked: StoredShipment, outcome: CancelOutcome, *, is_watched: bool = True
) -> StoredShipment:
    """What the carrier said of it, unless it was settled otherwise or booked anew meanwhile."""
    kept = await shipments.lock_shipment(tx, company.id, asked.id)
    if kept.shipping_status != "cancelling" or kept.reference != asked.reference:
        return kept
    clock = await shipments.get_clock(tx, company.id)
    after = build_settled(kept, outcome, clock.now)
    if isinstance(outcome, CancelRefused) and not is_watched:
        words = f"The carrier refused the cancellation: {outcome.reason}"
        after = msgspec.structs.replace(after, needs_action=True, problem=words)
    return await store(tx, company, kept, after)


def build_settled(kept: StoredShipment, outcome: CancelOutcome, now: str) -> StoredShipment:
    over = {"cancelling_from": None, "cancel_due_at": None, "cancel_tries": 0}
    if isinstance(outcome, Cancelled):
        status = "cancelled_by_business" if kept.provider == "ev_courier" else "cancelled"
        return msgspec.structs.replace(kept, **over, shipping_status=status, needs_action=False, poll_at=None)
    if isinstance(outcome, CancelRefused):
        wish = {"cancellation_reason": None, "cancelled_by": None, "cancelled_source": None}
        return msgspec.structs.replace(kept, **over, **wish, shipping_status=kept.cancelling_from or "confirmed")
    tries = kept.cancel_tries + 1
    pause = PAUSES[min(tries, len(PAUSES)) - 1]
    due = build_instant(datetime.fromisoformat(now) + timedelta(seconds=pause))
    kept = msgspec.structs.replace(kept, cancel_tries=tries, cancel_due_at=due)
    if tries != HELP_AFTER_TRIES:
        return kept
    reason = "it has not decided yet" if isinstance(outcome, CancelPending) else str(outcome)
    words = f"It is still open whether the carrier cancels it: {reason}"
    return msgspec.structs.replace(kept, needs_action=True, problem=words)
