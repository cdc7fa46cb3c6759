"""Bookings with carriers: the intent is stored before the request is sent, the request is sent once, and the attempt is
tracked until its outcome is known."""

import secrets
from decimal import Decimal

import msgspec
import structlog

from sapa.access.actions import read_clock
from sapa.access.types import CompanyClock
from sapa.context import AppContext
from sapa.db.pool import Connection, Tx, announce_due
from sapa.db.retry import retry
from sapa.db.wakeups import DueQueue
from sapa.http.errors import Invalid
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted
from sapa.outbound.client import NotSent, Unclear
from sapa.shipping.bookings import queries
from sapa.shipping.bookings.types import BookingAttempt, BookingStart, Outcome, Unsure
from sapa.shipping.carriers import call_log
from sapa.shipping.carriers.interface import (
    BadCredentials,
    Booked,
    BookingNotFound,
    CarrierEvent,
    Rejected,
)
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.errors import BookingInProgress, InvalidMove, NotBookable
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.shipments.requests import build_request
from sapa.shipping.shipments.types import POLLED
from sapa.shipping.states import BOOKABLE, CANCELLED, FAILED, GROUP_OF, NOT_BOOKED_YET, is_allowed
from sapa.shipping.types import (
    NO_PACKAGE,
    BookingResolution,
    Shipment,
    StoredShipment,
    choose_payment_status,
    read_package,
)
from sapa.values.company import Company
from sapa.values.ids import ALPHABET

MAX_SENDS = 3
PAUSE_SECONDS = 0.2
LOOKUP_SECONDS = (5.0, 30.0, 120.0, 600.0, 3_600.0)
"""Seconds after sending at which the carrier is asked for a booking with an unknown outcome; hourly after that."""
WATCH_HOURS = 24
CONCLUSIVE_SECONDS = 120.0
"""How long a booking may take to become visible at the carrier."""
CONCLUSIVE_LOOKUPS = 2
OPEN = frozenset({"pending", "sent", "unknown"})
BOOKING_FIELDS = (
    "driver", "awb", "order_no", "booking_id", "pickup_number", "tracking_url", "status_code", "problem", "poll_at",
    "cancellation_reason", "cancelled_by", "cancelled_source", "event_timestamp", "carrier_fee", "payment_qr",
    "sorting_code",
)  # fmt: skip
"""Fields of a shipment that a finished booking leaves set."""
PROCEEDING = frozenset({"accepted", "in_delivery", "delivered"})
"""Status groups in which a carrier proceeds with a booking."""

QUEUE = DueQueue("bookings", queries.NEXT_BOOKINGS.text)
"""And cancellations."""

log = structlog.get_logger()


def is_booked(stored: StoredShipment) -> bool:
    return stored.shipping_status not in BOOKABLE | NOT_BOOKED_YET | {"cancelling"}


def check_bookable(stored: StoredShipment) -> None:
    """Raises if a new booking cannot begin now."""
    if stored.shipping_status in {"booking", "booking_unknown"}:
        raise BookingInProgress
    if stored.shipping_status not in BOOKABLE:
        raise NotBookable(f"The shipment is {stored.shipping_status} and cannot be booked.")
    if stored.picked_up_at is not None:
        raise NotBookable("The shipment was already picked up. Create a new one.")


async def begin(
    tx: Tx, company: Company, shipment: StoredShipment, connected: ConnectedCarrier, *, is_new: bool = False
) -> BookingStart:
    """Stores the intent to book: a new shipment is inserted with it, a stored one must be locked."""
    check_bookable(shipment)
    reference, adapter = new_reference(), connected.carrier.name
    after = msgspec.structs.replace(
        without_booking(shipment), shipping_status="booking", reference=reference, adapter=adapter
    )
    clock = await read_clock(tx, company.id)
    if shipment.pickup_schedule is not None and shipment.pickup_schedule < clock.now:
        raise Invalid.field("pickupSchedule", "is in the past; send a later one with triggerBooking, or null")
    if is_new:
        stored = await shipments.create(tx, company, after)
    else:
        stored = await shipments.store(tx, company, shipment, after)
    attempt = await queries.insert_attempt(tx, company.id, stored.id, reference, adapter)
    return BookingStart(stored, attempt, connected)


def new_reference() -> str:
    """Short and starting with letters, as the strictest carrier demands."""
    return "SP" + "".join(secrets.choice(ALPHABET.upper()) for _ in range(16))


def without_booking(stored: StoredShipment) -> StoredShipment:
    """The payment goes with the booking, unless it is one that the caller named."""
    is_of_booking = stored.pickup_number is not None and stored.payment_id == stored.pickup_number
    names = (*BOOKING_FIELDS, "payment_id", "payment_status") if is_of_booking else BOOKING_FIELDS
    return msgspec.structs.replace(stored, **dict.fromkeys(names), needs_action=False)


async def return_to_awaiting(tx: Tx, company: Company, stored: StoredShipment) -> StoredShipment:
    """Waits for a person to book it. Events of an earlier booking no longer apply."""
    await queries.close(tx, company.id, stored.id)
    after = msgspec.structs.replace(without_booking(stored), shipping_status="awaiting", reference=None, adapter=None)
    return await shipments.store(tx, company, stored, after)


async def send_and_settle(call: OutboundCall, start: BookingStart) -> Shipment | Accepted[Shipment]:
    """Sends the booking, if one was begun, and stores its outcome."""
    outcome = await send(call.context, start)

    async def conclude(tx: Tx) -> Shipment | Accepted[Shipment]:
        if start.attempt is None:
            return start.stored.shipment
        stored = await settle(tx, call.company, start.attempt, outcome, "api")
        is_open = stored.shipping_status in {"booking", "booking_unknown"}
        return Accepted(stored.shipment) if is_open else stored.shipment

    return await call.conclude(conclude)


async def send(context: AppContext, start: BookingStart) -> Outcome | None:
    """Sends the booking once. None if there is nothing to send, or another process sends it."""
    attempt, connected = start.attempt, start.connected
    if attempt is None or connected is None:
        return None

    async def claim_and_book() -> Outcome | None:
        async with context.database.connection() as db:
            if not await queries.claim(db, attempt):
                return None
        return await _book(context, connected, start.stored, attempt)

    async def unclaim() -> None:
        async with context.database.connection() as db:
            await queries.unclaim(db, attempt)

    try:
        return await retry(claim_and_book, NotSent, tries=MAX_SENDS, pause=PAUSE_SECONDS, between=unclaim)
    except NotSent as error:
        return Rejected("CARRIER_UNREACHABLE", f"The carrier could not be reached: {error}")


async def _book(
    context: AppContext, connected: ConnectedCarrier, stored: StoredShipment, attempt: BookingAttempt
) -> Outcome:
    try:
        outcome: Outcome = await connected.carrier.book(connected.connection, build_request(stored), attempt.reference)
    except NotSent:
        raise
    except BadCredentials as error:
        outcome = Rejected("BAD_CREDENTIALS", str(error) or "The carrier refuses the account's credentials.")
    except Unclear as error:
        outcome = Unsure(str(error) or "The carrier did not respond.")
    except Exception:
        log.exception("booking failed", company_id=attempt.company_id, shipment_id=stored.id)
        outcome = Unsure("The carrier's response could not be read.")
    await call_log.record(context.database, connected.connection, "book", attempt.reference, outcome)
    if isinstance(outcome, Booked):
        async with context.database.connection() as db:
            await queries.record_response(db, attempt, outcome)
    return outcome


async def settle(tx: Tx, company: Company, attempt: BookingAttempt, outcome: Outcome | None, by: str) -> StoredShipment:
    """Applies the outcome of an attempt; an outcome settled before by another process or a callback stays."""
    stored = await shipments.lock_shipment(tx, company.id, attempt.shipment_id)
    attempt = await queries.get_attempt(tx, company.id, attempt.shipment_id, attempt.number)
    is_current = stored.reference == attempt.reference and stored.shipping_status in NOT_BOOKED_YET
    if isinstance(outcome, Booked):
        return await _settle_booked(tx, company, stored, attempt, outcome, is_current, by)
    if outcome is None or attempt.state not in OPEN:
        return stored
    return await _settle_unbooked(tx, company, stored, attempt, outcome, is_current, by)


async def _settle_booked(
    tx: Tx, company: Company, stored: StoredShipment, attempt: BookingAttempt, booked: Booked, is_current: bool, by: str
) -> StoredShipment:
    await queries.record_response(tx, attempt, booked)
    if attempt.state == "succeeded":  # a callback or a person settled it first
        await queries.settle_attempt(tx, attempt, "succeeded", by=by)
        return await shipments.store(tx, company, stored, with_numbers(stored, booked))
    if is_current:
        # The booking may be confirmed without a number: the carrier is asked for it.
        due_in = None if booked.order_no or booked.awb or attempt.order_no else 0.0
        await queries.settle_attempt(tx, attempt, "succeeded", by=by, due_in=due_in)
        clock = await read_clock(tx, company.id)
        return await shipments.store(tx, company, stored, _with_booking(stored, booked, clock))
    await queries.settle_attempt(tx, attempt, "unwanted", by=by, due_in=0)
    return await flag_unwanted(tx, company, stored, attempt, "it is being cancelled there.")


async def flag_unwanted(
    tx: Tx, company: Company, stored: StoredShipment, attempt: BookingAttempt, what_follows: str
) -> StoredShipment:
    message = f"The carrier proceeds with an earlier booking ({attempt.reference}); {what_follows}"
    return await shipments.store(
        tx, company, stored, msgspec.structs.replace(stored, needs_action=True, problem=message)
    )


async def _settle_unbooked(
    tx: Tx,
    company: Company,
    stored: StoredShipment,
    attempt: BookingAttempt,
    outcome: Rejected | BookingNotFound | Unsure,
    is_current: bool,
    by: str,
) -> StoredShipment:
    if isinstance(outcome, Unsure):
        status, state, error = "booking_unknown", "unknown", outcome.reason
        due_in: float | None = max(0.0, LOOKUP_SECONDS[0] - attempt.age)
    elif isinstance(outcome, BookingNotFound):
        status, state, error = "booking_failed", "failed", "The carrier does not have the booking."
        due_in = LOOKUP_SECONDS[-1]
    else:
        status, state, error, due_in = "booking_failed", "failed", outcome.reason, None
    await queries.settle_attempt(tx, attempt, state, error=error, by=by, due_in=due_in)
    if not is_current or stored.shipping_status == status:
        return stored
    needs_action = status == "booking_failed"
    after = msgspec.structs.replace(stored, shipping_status=status, problem=error, needs_action=needs_action)
    return await shipments.store(tx, company, stored, after)


def _with_booking(stored: StoredShipment, booked: Booked, clock: CompanyClock) -> StoredShipment:
    status = booked.status if is_allowed(stored.shipping_status, booked.status, "sapa") else "confirmed"
    has_failed = status in FAILED
    problem = f"The carrier accepted the booking; the shipment is now {status}." if has_failed else None
    cancellation = {"cancelled_by": "carrier", "cancelled_source": POLLED} if status in CANCELLED else {}
    after = msgspec.structs.replace(
        with_numbers(stored, booked), shipping_status=status, problem=problem, needs_action=has_failed, **cancellation
    )
    return msgspec.structs.replace(after, poll_at=shipments.build_poll_at(after, clock))


def with_numbers(stored: StoredShipment, booked: Booked) -> StoredShipment:
    """Fills in the numbers of the response where the shipment has none yet."""
    names = (
        "order_no", "booking_id", "awb", "pickup_number", "payment_id", "payment_qr", "tracking_url", "status_code",
        "service_code", "estimate", "distance", "sorting_code",
    )  # fmt: skip
    values = {name: getattr(stored, name) for name in names}
    changes = {name: getattr(booked, name) if value is None else value for name, value in values.items()}
    changes["payment_status"] = choose_payment_status(stored.payment_status, booked.payment_status)
    changes |= _build_fees(stored, booked)
    return msgspec.structs.replace(stored, **changes, driver=stored.driver or shipments.encode_driver(booked.driver))


def _build_fees(stored: StoredShipment, booked: Booked) -> dict[str, Decimal | None]:
    """What the carrier charges; its fees replace those that the caller sent."""
    package = NO_PACKAGE if stored.package is None else read_package(stored.package)
    is_insured = stored.insurance or booked.insurance_fee is not None
    return {
        "carrier_fee": booked.price if stored.carrier_fee is None else stored.carrier_fee,
        "insurance_fee": stored.insurance_fee if booked.insurance_fee is None else booked.insurance_fee,
        "insurance_amount": stored.insurance_amount or (package.item_value if is_insured else None),
        "cod_fee": stored.cod_fee if booked.cod_fee is None else booked.cod_fee,
    }


async def settle_by_event(tx: Tx, company: Company, reference: str | None, source: str) -> None:
    """A carrier event proves that the booking was accepted."""
    attempt = await queries.find_by_reference(tx, company.id, reference)
    if attempt is not None:
        await queries.settle_attempt(tx, attempt, "succeeded", by=source)


async def resolve(tx: Tx, company: Company, stored: StoredShipment, resolution: BookingResolution) -> StoredShipment:
    """Applies what a person learned from the carrier."""
    if stored.shipping_status != "booking_unknown":
        raise InvalidMove(f"Only a booking_unknown shipment can be resolved; it is {stored.shipping_status}.")
    attempt = await queries.find_by_reference(tx, company.id, stored.reference)
    if attempt is None:
        raise InvalidMove("There is no booking to resolve.")
    outcome: Booked | BookingNotFound = BookingNotFound()
    if resolution.outcome == "booked":
        is_named = resolution.order_no or attempt.order_no
        if not is_named and not CARRIERS[attempt.adapter].finds_by_reference:
            message = "is required: the carrier finds bookings by its own order number only"
            raise Invalid.field("resolveBooking.orderNo", message)
        outcome = Booked("confirmed", order_no=resolution.order_no)
    return await settle(tx, company, attempt, outcome, "user")


async def find_attempt(tx: Tx, company: Company, adapter: str, event: CarrierEvent) -> BookingAttempt | None:
    """The booking that an event is about: by our reference, else by the carrier's numbers."""
    return (
        await queries.find_by_reference(tx, company.id, event.reference)
        or await queries.find_by_order_no(tx, company.id, adapter, event.order_no)
        or await queries.find_by_shipment_numbers(tx, company.id, adapter, event.order_no, event.awb)
    )


async def follow_up(tx: Tx, attempt: BookingAttempt, event: CarrierEvent) -> None:
    """Acts on an event of an earlier booking: cancels it if the carrier proceeds with it, else looks it up."""
    if GROUP_OF.get(event.status or "") in PROCEEDING:
        await queries.reopen(tx, attempt, event.order_no, event.awb)
    else:
        await queries.make_due(tx, attempt)
    announce_due(tx, QUEUE)


async def reschedule_rewound(db: Connection) -> None:
    """Makes bookings due that wait for a time from which a test clock was set back."""
    for company_id in await queries.list_rewound(db):
        await queries.reschedule(db, company_id)
