"""Booking attempts that the worker follows up: not sent yet, with an unknown outcome, or no longer wanted."""

import msgspec
from msgspec import Struct

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.shipping.bookings import actions, queries
from sapa.shipping.bookings.actions import CONCLUSIVE_LOOKUPS, CONCLUSIVE_SECONDS, LOOKUP_SECONDS, WATCH_HOURS
from sapa.shipping.bookings.types import BookingAttempt, BookingStart, DueAttempt, Outcome, Unsure
from sapa.shipping.carriers.interface import (
    BadCredentials,
    Booked,
    BookedShipment,
    BookingNotFound,
    Cancelled,
    CancelRefused,
    CannotTell,
    CarrierAway,
    Rejected,
)
from sapa.shipping.connections.actions import find_carrier
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.states import CANCELLED
from sapa.shipping.types import StoredShipment
from sapa.values.company import Company

LEASE_SECONDS = 60.0
HOUR = 3_600.0
PAUSE_SECONDS = 60.0
SCHEDULE = (*LOOKUP_SECONDS, *(hours * HOUR for hours in range(2, WATCH_HOURS + 1)))
MAX_CANCELS = 1_500
"""How often a carrier is asked to cancel an unwanted booking, once a minute: at least a day."""


class AlreadyCancelled(Struct, frozen=True):
    """The carrier had cancelled it before; the event about it was old."""


async def list_due(context: AppContext, most: int) -> list[DueAttempt]:
    """The longest due first; with more than `most`, companies take turns."""
    async with context.database.connection() as db:
        return await queries.list_due(db, most)


async def process(context: AppContext, due: DueAttempt) -> None:
    """Processes one due attempt, unless another worker holds it."""
    async with context.database.connection() as db:
        attempt = await queries.lease(db, due, LEASE_SECONDS)
        if attempt is None:
            return
        company = await access.get_company(db, due.company_id)
        stored = await shipments.get_stored(db, company.id, due.shipment_id)
        connected = await find_carrier(context, db, company, stored.provider)
    if connected is not None and connected.carrier.name != attempt.adapter:
        connected = None
    if attempt.state == "pending":
        await _send(context, company, connected, stored, attempt)
    elif attempt.state == "sent":
        await _settle(context, company, attempt, Unsure("The process that sent it ended before the carrier responded."))
    elif attempt.state == "unwanted":
        await _cancel(context, company, connected, stored, attempt)
    else:
        await _find(context, company, connected, stored, attempt)


async def _settle(context: AppContext, company: Company, attempt: BookingAttempt, outcome: Outcome | None) -> None:
    async with context.database.transaction() as tx:
        await actions.settle(tx, company, attempt, outcome, "worker")


async def _send(
    context: AppContext,
    company: Company,
    connected: ConnectedCarrier | None,
    stored: StoredShipment,
    attempt: BookingAttempt,
) -> None:
    """The process that stored the intent ended before sending it."""
    if connected is None:
        outcome: Outcome | None = Rejected("PROVIDER_NOT_CONNECTED", "The provider is no longer connected.")
    else:
        outcome = await actions.send(context, BookingStart(stored, attempt, connected))
    await _settle(context, company, attempt, outcome)


async def _find(
    context: AppContext,
    company: Company,
    connected: ConnectedCarrier | None,
    stored: StoredShipment,
    attempt: BookingAttempt,
) -> None:
    """Asks the carrier for the booking by our reference."""
    result = await _look_up(connected, stored, attempt)
    if isinstance(result, Booked):
        await _settle(context, company, attempt, result)
        return
    is_not_found = isinstance(result, BookingNotFound)
    seen = attempt.not_found + is_not_found
    if is_not_found and attempt.state == "unknown" and seen >= CONCLUSIVE_LOOKUPS and attempt.age >= CONCLUSIVE_SECONDS:
        await _settle(context, company, attempt, BookingNotFound())
        return
    error = result.reason if isinstance(result, CannotTell) else None
    async with context.database.connection() as db:
        next_at = build_next_lookup(attempt)
        await queries.record_lookup(db, attempt, not_found=is_not_found, error=error, next_at=next_at)
    if attempt.state == "unknown" and attempt.age >= HOUR and not stored.needs_action:
        await _flag_for_action(context, company, attempt)


async def _look_up(
    connected: ConnectedCarrier | None, stored: StoredShipment, attempt: BookingAttempt
) -> Booked | BookingNotFound | CannotTell:
    if attempt.state == "unknown" and (attempt.order_no or attempt.awb):
        # The response was stored; only the following steps did not happen.
        return Booked("confirmed", order_no=attempt.order_no, awb=attempt.awb, booking_id=attempt.booking_id)
    if connected is None:
        return CannotTell("The carrier is no longer connected.")
    try:
        return await connected.carrier.find(connected.connection, attempt.reference, stored.service_type)
    except (CarrierAway, BadCredentials) as error:
        return CannotTell(str(error))


def build_next_lookup(attempt: BookingAttempt) -> float | None:
    """In seconds after sending; None if it was watched long enough.

    Missed lookups are made up for at once; extra ones delay nothing.
    """
    in_turn = SCHEDULE[attempt.looks + 1 : attempt.looks + 2]
    coming = [seconds for seconds in SCHEDULE if seconds > attempt.age][:1]
    return min((*in_turn, *coming), default=None)


async def _flag_for_action(context: AppContext, company: Company, attempt: BookingAttempt) -> None:
    async with context.database.transaction() as tx:
        stored = await shipments.lock_shipment(tx, company.id, attempt.shipment_id)
        if stored.shipping_status == "booking_unknown" and stored.reference == attempt.reference:
            message = "The carrier cannot say whether it has the booking. Check there, then send resolveBooking."
            await shipments.store(
                tx, company, stored, msgspec.structs.replace(stored, needs_action=True, problem=message)
            )


async def _cancel(
    context: AppContext,
    company: Company,
    connected: ConnectedCarrier | None,
    stored: StoredShipment,
    attempt: BookingAttempt,
) -> None:
    """Cancels a booking that the carrier accepted although it is no longer wanted."""
    outcome = await _ask_to_cancel(connected, stored, attempt)
    async with context.database.transaction() as tx:
        locked = await shipments.lock_shipment(tx, company.id, attempt.shipment_id)
        if isinstance(outcome, CarrierAway) and attempt.looks < MAX_CANCELS:
            next_at = attempt.age + PAUSE_SECONDS
            await queries.record_lookup(tx, attempt, not_found=False, error=str(outcome), next_at=next_at)
            if attempt.reference not in (locked.problem or ""):
                await actions.flag_unwanted(tx, company, locked, attempt, "it is being cancelled there.")
            return
        error = None if isinstance(outcome, Cancelled | AlreadyCancelled) else str(outcome)
        await queries.settle_attempt(tx, attempt, "closed", error=error, by="worker")
        if not isinstance(outcome, AlreadyCancelled) or attempt.reference in (locked.problem or ""):
            what_follows = f"it could not be cancelled there: {error}" if error else "it was cancelled there."
            await actions.flag_unwanted(tx, company, locked, attempt, what_follows)


async def _ask_to_cancel(
    connected: ConnectedCarrier | None, stored: StoredShipment, attempt: BookingAttempt
) -> Cancelled | AlreadyCancelled | str | CarrierAway:
    """A reason if it cannot be cancelled; CarrierAway if it may be asked again."""
    if connected is None:
        return "The carrier is no longer connected."
    shipment = _build_booked(stored, attempt)
    try:
        if shipment.awb is None:  # some carriers cancel by awb and assign it later
            found = await connected.carrier.find(connected.connection, attempt.reference, stored.service_type)
            numbers = (found.order_no, found.awb, found.booking_id) if isinstance(found, Booked) else (None,) * 3
            shipment = _build_booked(stored, attempt, *numbers)
        events = (await connected.carrier.track(connected.connection, shipment)).events
        if events and events[-1].status in CANCELLED:
            return AlreadyCancelled()
        result = await connected.carrier.cancel(connected.connection, shipment, "Duplicate booking")
    except (CarrierAway, BadCredentials) as error:
        return CarrierAway(str(error))
    if isinstance(result, CancelRefused):
        number = shipment.awb if PROVIDERS[stored.provider].cancels_by_awb_only else shipment.awb or shipment.order_no
        return result.reason if number else CarrierAway(result.reason)
    return Cancelled()


def _build_booked(
    stored: StoredShipment,
    attempt: BookingAttempt,
    order_no: str | None = None,
    awb: str | None = None,
    id: str | None = None,
) -> BookedShipment:
    return BookedShipment(
        reference=attempt.reference,
        order_no=attempt.order_no or order_no,
        awb=attempt.awb or awb,
        booking_id=attempt.booking_id or id,
        service_type=stored.service_type,
        was_picked_up=False,
    )
