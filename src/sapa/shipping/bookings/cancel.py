"""Cancelling: at the carrier if it has the shipment, locally otherwise."""

from datetime import datetime, timedelta
from typing import Literal

import msgspec

from sapa.access import actions as access
from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted
from sapa.shipping.bookings import queries
from sapa.shipping.carriers.interface import (
    BadCredentials,
    Booked,
    BookedShipment,
    Cancelled,
    CancelPending,
    CancelRefused,
    CarrierAway,
)
from sapa.shipping.connections.actions import find_carrier, get_carrier
from sapa.shipping.connections.types import ConnectedCarrier, ProviderNotConnected
from sapa.shipping.errors import BookingInProgress, CarrierUnavailable, NotBooked, NotCancellable
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.shipments.requests import build_booked
from sapa.shipping.shipments.types import LONGEST_CANCEL, DueShipment
from sapa.shipping.states import ACCEPTED, CANCELLED, UNDER_WAY, is_allowed
from sapa.shipping.types import Shipment, StoredShipment
from sapa.values.company import Company

CancelMethod = Literal["nothing", "local", "carrier"]
CancelOutcome = Cancelled | CancelPending | CancelRefused | CarrierAway

PAUSES = (5, 30, 120, 600, LONGEST_CANCEL)
"""Seconds until a carrier without a clear response is asked again; the last value repeats."""
FIRST_PAUSE = 30
"""Seconds until the worker asks for the first time, if the process that asks now ends."""
FLAG_AFTER_TRIES = 50
DEFAULT_REASON = "Cancelled by the sender"
WITH_CARRIER = ACCEPTED | {"on_hold", "cancelling"}
"""Statuses in which the carrier has the shipment, even if its number is not known yet."""
LEASE_SECONDS = 60.0


async def cancel(call: OutboundCall, id: str, reason: str | None) -> Shipment | Accepted[Shipment]:
    """Stores the intent, asks the carrier if it has the shipment, and stores the outcome."""
    company = call.company
    async with call.context.database.connection() as db:
        before = await shipments.get_stored(db, company.id, id)
        needs_carrier = choose_method(before) == "carrier"
        connected = await get_carrier(call.context, db, company, before.provider) if needs_carrier else None
    if connected is not None and connected.carrier.name != before.adapter:
        raise ProviderNotConnected(f"{before.provider} now uses another carrier; {before.adapter} has this shipment.")
    stored, method = await call.intend(
        lambda tx: begin_cancel(tx, company, id, reason, "api"), present=lambda begun: begun[0].shipment
    )
    outcome: CancelOutcome | None = None
    if method == "carrier" and connected is not None:
        outcome = await ask_carrier(connected, stored, is_first=before.shipping_status != "cancelling")
    if isinstance(outcome, CarrierAway | CancelRefused):
        await call.transact(lambda tx: settle_cancel(tx, company, stored, outcome))
        if isinstance(outcome, CancelRefused):
            raise NotCancellable(f"The carrier refused the cancellation: {outcome.reason}")
        raise CarrierUnavailable(f"The carrier did not respond; the cancellation will be retried. {outcome}")

    async def conclude(tx: Tx) -> Shipment | Accepted[Shipment]:
        if outcome is None:
            return stored.shipment
        settled = await settle_cancel(tx, company, stored, outcome)
        is_pending = isinstance(outcome, CancelPending) and settled.shipping_status == "cancelling"
        return Accepted(settled.shipment) if is_pending else settled.shipment

    return await call.conclude(conclude)


def is_cancellable(stored: StoredShipment) -> bool:
    try:
        return choose_method(stored) != "nothing"
    except (NotBooked, NotCancellable, BookingInProgress):
        return False


def choose_method(stored: StoredShipment) -> CancelMethod:
    """How to cancel, by provider and status; raises if it cannot be cancelled."""
    status = stored.shipping_status
    if status in CANCELLED:
        return "nothing"
    if PROVIDERS[stored.provider].is_local:
        return _choose_local_method(stored)
    if PROVIDERS[stored.provider].cancel_needs_awb and stored.awb is None:
        raise NotBooked(_explain_not_booked(stored))
    if status == "booking":
        raise BookingInProgress
    if stored.picked_up_at is not None or status in UNDER_WAY:
        raise NotCancellable(f"The shipment was already picked up; it is {status}.")
    if stored.order_no is None and stored.awb is None and status not in WITH_CARRIER:
        return "local"
    if status == "cancelling" or is_allowed(status, "cancelling", "caller"):
        return "carrier"
    if is_allowed(status, "cancelled", "caller"):
        return "local"
    raise NotCancellable(f"The shipment is {status} and cannot be cancelled.")


def _choose_local_method(stored: StoredShipment) -> CancelMethod:
    status = stored.shipping_status
    if stored.picked_up_at is None and (
        is_allowed(status, "cancelled", "manual") or is_allowed(status, "cancelled", "caller")
    ):
        return "local"
    raise NotCancellable(f"The shipment is {status} and can no longer be cancelled.")


def _explain_not_booked(stored: StoredShipment) -> str:
    if stored.shipping_status == "draft":
        return "The shipment has no awb because it was never booked. Discard the draft with DELETE instead."
    return f"The shipment has no awb, so the carrier has nothing to cancel; it is {stored.shipping_status}."


async def begin_cancel(
    tx: Tx, company: Company, id: str, reason: str | None, source: str
) -> tuple[StoredShipment, CancelMethod]:
    """Cancels locally where possible; otherwise stores the intent before the carrier is called."""
    stored = await shipments.lock_shipment(tx, company.id, id)
    method = choose_method(stored)
    if method == "nothing" or (method == "carrier" and stored.shipping_status == "cancelling"):
        return stored, method
    request = {"cancellation_reason": reason, "cancelled_by": "user", "cancelled_source": source}
    if method == "local":
        after = msgspec.structs.replace(
            stored, **request, shipping_status="cancelled", needs_action=False, poll_at=None
        )
        return await shipments.store(tx, company, stored, after), method
    clock = await read_clock(tx, company.id)
    after = msgspec.structs.replace(
        stored,
        **request,
        shipping_status="cancelling",
        cancelling_from=stored.shipping_status,
        cancel_due_at=clock.now + timedelta(seconds=FIRST_PAUSE),
    )
    return await shipments.store(tx, company, stored, after), method


async def ask_carrier(connected: ConnectedCarrier, stored: StoredShipment, *, is_first: bool) -> CancelOutcome:
    """Safe to repeat. On a retry, a refusal may mean that the first call succeeded."""
    reason = stored.cancellation_reason or DEFAULT_REASON
    try:
        shipment = await _with_number(connected, stored)
        outcome = await connected.carrier.cancel(connected.connection, shipment, reason)
    except CarrierAway as error:
        return error
    except BadCredentials as error:
        return CarrierAway(str(error))
    if isinstance(outcome, CancelRefused) and not outcome.is_sure and not is_first:
        return CarrierAway(outcome.reason)
    return outcome


async def _with_number(connected: ConnectedCarrier, stored: StoredShipment) -> BookedShipment:
    """Adds a number that the carrier knows: a person may have resolved the booking without one."""
    shipment = build_booked(stored)
    if shipment.order_no or shipment.awb:
        return shipment
    found = await connected.carrier.find(connected.connection, shipment.reference, stored.service_type)
    if not isinstance(found, Booked):
        raise CarrierAway("it did not report the number of the booking")
    return msgspec.structs.replace(shipment, order_no=found.order_no, awb=found.awb, booking_id=found.booking_id)


async def list_due(context: AppContext, most: int) -> list[DueShipment]:
    """Cancellations that wait for the carrier; with more than `most`, companies take turns."""
    async with context.database.connection() as db:
        return await queries.list_cancelling(db, most)


async def settle_due(context: AppContext, due: DueShipment) -> None:
    """Asks the carrier again about one due cancellation, unless another worker holds it."""
    async with context.database.connection() as db:
        if not await queries.lease_cancelling(db, due, LEASE_SECONDS):
            return
        company = await access.get_company(db, due.company_id)
        stored = await shipments.get_stored(db, company.id, due.id)
        connected = await find_carrier(context, db, company, stored.provider)
    if connected is None or connected.carrier.name != stored.adapter:
        outcome: CancelOutcome = CarrierAway("The carrier is no longer connected.")
    else:
        outcome = await ask_carrier(connected, stored, is_first=False)
    async with context.database.transaction() as tx:
        await settle_cancel(tx, company, stored, outcome, is_watched=False)


async def settle_cancel(
    tx: Tx, company: Company, before: StoredShipment, outcome: CancelOutcome, *, is_watched: bool = True
) -> StoredShipment:
    """Applies the carrier's response, unless the shipment was settled or booked again in the meantime."""
    stored = await shipments.lock_shipment(tx, company.id, before.id)
    if stored.shipping_status != "cancelling" or stored.reference != before.reference:
        return stored
    clock = await read_clock(tx, company.id)
    after = build_settled(stored, outcome, clock.now)
    if isinstance(outcome, CancelRefused) and not is_watched:
        message = f"The carrier refused the cancellation: {outcome.reason}"
        after = msgspec.structs.replace(after, needs_action=True, problem=message)
    return await shipments.store(tx, company, stored, after)


def build_settled(stored: StoredShipment, outcome: CancelOutcome, now: datetime) -> StoredShipment:
    cleared = {"cancelling_from": None, "cancel_due_at": None, "cancel_tries": 0}
    if isinstance(outcome, Cancelled):
        status = PROVIDERS[stored.provider].cancelled_status
        return msgspec.structs.replace(stored, **cleared, shipping_status=status, needs_action=False, poll_at=None)
    if isinstance(outcome, CancelRefused):
        request = {"cancellation_reason": None, "cancelled_by": None, "cancelled_source": None}
        return msgspec.structs.replace(
            stored, **cleared, **request, shipping_status=stored.cancelling_from or "confirmed"
        )
    tries = stored.cancel_tries + 1
    due = now + timedelta(seconds=PAUSES[min(tries, len(PAUSES)) - 1])
    stored = msgspec.structs.replace(stored, cancel_tries=tries, cancel_due_at=due)
    if tries != FLAG_AFTER_TRIES:
        return stored
    reason = "it has not decided yet" if isinstance(outcome, CancelPending) else str(outcome)
    message = f"The carrier has not confirmed the cancellation: {reason}"
    return msgspec.structs.replace(stored, needs_action=True, problem=message)
