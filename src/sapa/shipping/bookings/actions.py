"""Bookings with carriers: the intent is stored before the request is sent, the request is sent once, and the attempt is
tracked until its outcome is known."""

import secrets

import msgspec
import structlog

from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.db.retry import retry
from sapa.http.errors import Invalid
from sapa.outbound.client import NotSent, Unclear
from sapa.shipping.bookings import queries
from sapa.shipping.bookings.types import BookingAttempt, BookingStart, Outcome, Unsure
from sapa.shipping.carriers import call_log
from sapa.shipping.carriers.interface import (
    BadCredentials,
    Booked,
    BookingNotFound,
    Rejected,
)
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.connections.actions import get_carrier
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.shipments.actions import build_poll_at, encode_driver, store
from sapa.shipping.shipments.requests import build_request
from sapa.shipping.shipments.types import POLLED, CompanyClock
from sapa.shipping.states import BOOKABLE, GONE, NOT_BOOKED_YET, TROUBLED, is_allowed
from sapa.shipping.types import (
    BookingInProgress,
    BookingResolution,
    InvalidMove,
    NotBookable,
    StoredShipment,
)
from sapa.values.company import Company
from sapa.values.ids import ALPHABET

MOST_SENDS = 3
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
    "cancellation_reason", "cancelled_by", "cancelled_source", "event_timestamp",
)  # fmt: skip
"""Fields of a shipment that a finished booking leaves set."""

log = structlog.get_logger()

find_by_reference = queries.find_by_reference
find_by_order_no = queries.find_by_order_no
reopen = queries.reopen
make_due = queries.make_due
list_rewound = queries.list_rewound
reschedule = queries.reschedule


def new_reference() -> str:
    """Short and starting with letters, as the strictest carrier demands."""
    return "SP" + "".join(secrets.choice(ALPHABET.upper()) for _ in range(16))


def is_booked(stored: StoredShipment) -> bool:
    return stored.shipping_status not in BOOKABLE | NOT_BOOKED_YET | {"cancelling"}


def check_bookable(stored: StoredShipment) -> None:
    """Raises if a new booking cannot begin now."""
    if stored.shipping_status in {"booking", "booking_unknown"}:
        raise BookingInProgress
    if stored.shipping_status not in BOOKABLE:
        raise NotBookable(f"The shipment is {stored.shipping_status} and cannot be booked.")
    if stored.picked_up_at is not None:
        raise NotBookable("The shipment was picked up before; make a new one.")


def check_pickup(stored: StoredShipment, now: str) -> None:
    """Raises if the scheduled pickup time has passed."""
    if stored.pickup_schedule is not None and stored.pickup_schedule < now:
        raise Invalid.field("pickupSchedule", "is in the past by now; send another with triggerBooking, or null")


async def begin(tx: Tx, company: Company, stored: StoredShipment, adapter: str) -> BookingStart:
    """Stores the intent, in the transaction that holds the shipment's lock."""
    start = await intend(tx, company, stored, adapter)
    return BookingStart(await store(tx, company, stored, start.stored), start.attempt)


async def intend(tx: Tx, company: Company, stored: StoredShipment, adapter: str) -> BookingStart:
    """The shipment with the intent applied, not saved yet. Fields of an earlier booking are cleared."""
    check_bookable(stored)
    check_pickup(stored, (await shipments.get_clock(tx, company.id)).now)
    attempt = await queries.insert_attempt(tx, company.id, stored.id, new_reference(), adapter)
    after = msgspec.structs.replace(
        without_booking(stored), shipping_status="booking", reference=attempt.reference, adapter=adapter
    )
    return BookingStart(after, attempt)


def without_booking(stored: StoredShipment) -> StoredShipment:
    return msgspec.structs.replace(stored, **dict.fromkeys(BOOKING_FIELDS), needs_action=False)


async def return_to_awaiting(tx: Tx, company: Company, stored: StoredShipment) -> StoredShipment:
    """Waits for a person to book it. Events of an earlier booking no longer apply."""
    await queries.close(tx, company.id, stored.id)
    after = msgspec.structs.replace(without_booking(stored), shipping_status="awaiting", reference=None, adapter=None)
    return await store(tx, company, stored, after)


async def send(
    context: AppContext, connected: ConnectedCarrier, stored: StoredShipment, attempt: BookingAttempt
) -> Outcome | None:
    """Sends the booking once. None if another process is sending it."""

    async def claim_and_ask() -> Outcome | None:
        async with context.database.connection() as db:
            if not await queries.claim(db, attempt):
                return None
        return await _ask(context, connected, stored, attempt)

    async def unclaim() -> None:
        async with context.database.connection() as db:
            await queries.unclaim(db, attempt)

    try:
        return await retry(claim_and_ask, NotSent, tries=MOST_SENDS, pause=PAUSE_SECONDS, between=unclaim)
    except NotSent as error:
        return Rejected("CARRIER_UNREACHABLE", f"The carrier could not be reached: {error}")


async def _ask(
    context: AppContext, connected: ConnectedCarrier, stored: StoredShipment, attempt: BookingAttempt
) -> Outcome:
    try:
        outcome: Outcome = await connected.carrier.book(connected.connection, build_request(stored), attempt.reference)
    except NotSent:
        raise
    except BadCredentials as error:
        outcome = Rejected("BAD_CREDENTIALS", str(error) or "The carrier refuses the account's credentials.")
    except Unclear as error:
        outcome = Unsure(str(error) or "There was no answer.")
    except Exception:
        log.exception("booking broke off", shipment=stored.id, reference=attempt.reference)
        outcome = Unsure("The answer could not be read.")
    await call_log.record(context.database, connected.connection, "book", attempt.reference, outcome)
    if isinstance(outcome, Booked):
        async with context.database.connection() as db:
            await queries.record_response(db, attempt, outcome)
    return outcome


async def settle(
    tx: Tx, company: Company, shipment_id: str, number: int, outcome: Outcome | None, by: str
) -> StoredShipment:
    """Applies the outcome of an attempt; an outcome settled before by another process or a callback stays."""
    stored = await shipments.lock_shipment(tx, company.id, shipment_id)
    attempt = await queries.get_attempt(tx, company.id, shipment_id, number)
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
        return await store(tx, company, stored, with_numbers(stored, booked))
    if is_current:
        # The booking may be confirmed without a number: the carrier is asked for it.
        due_in = None if booked.order_no or booked.awb or attempt.order_no else 0.0
        await queries.settle_attempt(tx, attempt, "succeeded", by=by, due_in=due_in)
        clock = await shipments.get_clock(tx, company.id)
        return await store(tx, company, stored, _with_booking(stored, booked, clock))
    await queries.settle_attempt(tx, attempt, "unwanted", by=by, due_in=0)
    return await flag_unwanted(tx, company, stored, attempt, "it is being cancelled there.")


async def flag_unwanted(
    tx: Tx, company: Company, stored: StoredShipment, attempt: BookingAttempt, fate: str
) -> StoredShipment:
    message = f"The carrier goes on with an earlier booking ({attempt.reference}); {fate}"
    return await store(tx, company, stored, msgspec.structs.replace(stored, needs_action=True, problem=message))


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
        status, state, error = "booking_failed", "failed", "The carrier knows nothing of the booking."
        due_in = LOOKUP_SECONDS[-1]
    else:
        status, state, error, due_in = "booking_failed", "failed", outcome.reason, None
    await queries.settle_attempt(tx, attempt, state, error=error, by=by, due_in=due_in)
    if not is_current or stored.shipping_status == status:
        return stored
    needs_action = status == "booking_failed"
    after = msgspec.structs.replace(stored, shipping_status=status, problem=error, needs_action=needs_action)
    return await store(tx, company, stored, after)


def _with_booking(stored: StoredShipment, booked: Booked, clock: CompanyClock) -> StoredShipment:
    status = booked.status if is_allowed(stored.shipping_status, booked.status, "S") else "confirmed"
    is_troubled = status in TROUBLED
    problem = f"The carrier had taken it, and it is {status} by now." if is_troubled else None
    gone = {"cancelled_by": "carrier", "cancelled_source": POLLED} if status in GONE else {}
    after = msgspec.structs.replace(
        with_numbers(stored, booked), shipping_status=status, problem=problem, needs_action=is_troubled, **gone
    )
    return msgspec.structs.replace(after, poll_at=build_poll_at(after, clock))


def with_numbers(stored: StoredShipment, booked: Booked) -> StoredShipment:
    """Fills in the numbers of the response where the shipment has none yet."""
    names = ("order_no", "booking_id", "awb", "pickup_number", "payment_id", "tracking_url", "status_code", "distance")
    values = {name: getattr(stored, name) for name in names}
    changes = {name: getattr(booked, name) if value is None else value for name, value in values.items()}
    return msgspec.structs.replace(stored, **changes, driver=stored.driver or encode_driver(booked.driver))


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
            message = "is required: the carrier can be asked by its own order number only"
            raise Invalid.field("resolveBooking.orderNo", message)
        outcome = Booked("confirmed", order_no=resolution.order_no)
    return await settle(tx, company, stored.id, attempt.number, outcome, "user")


async def book(context: AppContext, company: Company, id: str) -> StoredShipment:
    """Books from start to end, for the console and the command line. A booked shipment stays as it is."""
    async with context.database.connection() as db:
        stored = await shipments.get_stored(db, company.id, id)
        if PROVIDERS[stored.provider].is_local:
            raise NotBookable(f"{stored.provider} has no carrier to book with; triggerBooking confirms it.")
        connected = await get_carrier(context, db, company, stored.provider)
    async with context.database.transaction() as tx:
        stored = await shipments.lock_shipment(tx, company.id, id)
        if is_booked(stored):
            return stored
        connected.check_reachable()
        start = await begin(tx, company, stored, connected.carrier.name)
    if start.attempt is None:
        return start.stored
    outcome = await send(context, connected, start.stored, start.attempt)
    async with context.database.transaction() as tx:
        return await settle(tx, company, id, start.attempt.number, outcome, "user")
