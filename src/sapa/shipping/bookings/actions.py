"""Bookings with carriers: intended before the first byte leaves, sent once, and looked after until the outcome is
known."""

import asyncio
import secrets

import msgspec
import structlog
from msgspec import Struct

from sapa.context import Kit
from sapa.db.pool import Tx
from sapa.http.errors import Invalid
from sapa.outbound.client import NotSent, Unclear
from sapa.shipping.bookings import queries as booking_queries
from sapa.shipping.bookings.queries import BookingAttempt
from sapa.shipping.carriers import call_log, circuit
from sapa.shipping.carriers.interface import BadCredentials, Booked, NotFound, Rejected
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.connections.actions import Opened, get_carrier
from sapa.shipping.shipments import queries as shipments
from sapa.shipping.shipments.document import build_journey, encode_driver
from sapa.shipping.shipments.queries import Clock
from sapa.shipping.shipments.status_changes import (
    NOT_BOOKED_YET,
    POLLED,
    TROUBLED,
    build_poll_at,
    store,
)
from sapa.shipping.states import BOOKABLE, GONE, is_allowed
from sapa.shipping.types import (
    LOCAL,
    BookingInProgress,
    BookingResolution,
    CarrierUnavailable,
    InvalidMove,
    NotBookable,
    StoredShipment,
)
from sapa.values.company import Company
from sapa.values.ids import ALPHABET

MOST_SENDS = 3
PAUSE_SECONDS = 0.2
LOOKS = (5.0, 30.0, 120.0, 600.0, 3_600.0)
"""Seconds after sending at which the carrier is asked for a booking whose outcome is not known; hourly after that."""
WATCH_HOURS = 24
CERTAIN_SECONDS = 120.0
"""So long a booking may take to show up at the carrier."""
CERTAIN_LOOKS = 2
OPEN = frozenset({"pending", "sent", "unknown"})
LEFT_BEHIND = (
    "driver", "awb", "order_no", "booking_id", "pickup_number", "tracking_url", "status_code", "problem", "poll_at",
    "cancellation_reason", "cancelled_by", "cancelled_source", "event_timestamp",
)  # fmt: skip
"""What a booking that is over leaves behind on its shipment."""

log = structlog.get_logger()


class Unsure(Struct, frozen=True):
    """Nobody can tell whether the carrier took it."""

    reason: str


Outcome = Booked | Rejected | NotFound | Unsure


class BookingStart(Struct, frozen=True):
    """A shipment, and the booking that is about to be sent for it, if any."""

    kept: StoredShipment
    attempt: BookingAttempt | None


def new_reference() -> str:
    """Ours, for the carrier to know it by: letters first and short, as the strictest of them demands."""
    return "SP" + "".join(secrets.choice(ALPHABET.upper()) for _ in range(16))


def is_booked(kept: StoredShipment) -> bool:
    return kept.shipping_status not in BOOKABLE | NOT_BOOKED_YET | {"cancelling"}


def check_bookable(kept: StoredShipment) -> None:
    """Raises when a new booking cannot begin now."""
    if kept.shipping_status in {"booking", "booking_unknown"}:
        raise BookingInProgress
    if kept.shipping_status not in BOOKABLE:
        raise NotBookable(f"The shipment is {kept.shipping_status} and cannot be booked.")
    if kept.picked_up_at is not None:
        raise NotBookable("The shipment was picked up before; make a new one.")


def check_pickup(kept: StoredShipment, now: str) -> None:
    """What was to be picked up before now cannot be any more."""
    if kept.pickup_schedule is not None and kept.pickup_schedule < now:
        raise Invalid.field("pickupSchedule", "is in the past by now; send another with triggerBooking, or null")


def check_reachable(opened: Opened) -> None:
    """Before anything is written down: a carrier that is left alone for the moment is not booked with."""
    if reason := circuit.find_rest(opened.connection):
        raise CarrierUnavailable(f"Nothing was booked. {opened.carrier.label} is not called for the moment: {reason}.")


async def begin(tx: Tx, company: Company, kept: StoredShipment, adapter: str) -> BookingStart:
    """The intent, in the transaction that holds the shipment's lock."""
    started = await intend(tx, company, kept, adapter)
    return BookingStart(await store(tx, company, kept, started.kept), started.attempt)


async def intend(tx: Tx, company: Company, kept: StoredShipment, adapter: str) -> BookingStart:
    """The shipment as it is to be stored with its intent. What an earlier booking left behind is over."""
    check_bookable(kept)
    check_pickup(kept, (await shipments.get_clock(tx, company.id)).now)
    attempt = await booking_queries.insert_attempt(tx, company.id, kept.id, new_reference(), adapter)
    after = msgspec.structs.replace(
        without_booking(kept), shipping_status="booking", reference=attempt.reference, adapter=adapter
    )
    return BookingStart(after, attempt)


def without_booking(kept: StoredShipment) -> StoredShipment:
    """As if no carrier had ever heard of it."""
    return msgspec.structs.replace(kept, **dict.fromkeys(LEFT_BEHIND), needs_action=False)


async def put_back(tx: Tx, company: Company, kept: StoredShipment) -> StoredShipment:
    """Waiting for a person to book it. What the carrier still says of an earlier booking is not about this."""
    await booking_queries.close(tx, company.id, kept.id)
    after = msgspec.structs.replace(without_booking(kept), shipping_status="awaiting", reference=None, adapter=None)
    return await store(tx, company, kept, after)


async def send(kit: Kit, opened: Opened, kept: StoredShipment, attempt: BookingAttempt) -> Outcome | None:
    """Asks the carrier, once. None when another process is at it."""
    for tries_left in range(MOST_SENDS - 1, -1, -1):
        async with kit.database.connection() as db:
            if not await booking_queries.claim(db, attempt):
                return None
        outcome = await _ask(kit, opened, kept, attempt)
        if not isinstance(outcome, NotSent):
            return outcome
        if tries_left:
            async with kit.database.connection() as db:
                await booking_queries.unclaim(db, attempt)
            await asyncio.sleep(PAUSE_SECONDS)
    return Rejected("CARRIER_UNREACHABLE", f"The carrier could not be reached: {outcome}")


async def _ask(kit: Kit, opened: Opened, kept: StoredShipment, attempt: BookingAttempt) -> Outcome | NotSent:
    try:
        outcome: Outcome = await opened.carrier.book(opened.connection, build_journey(kept), attempt.reference)
    except NotSent as error:
        return error
    except BadCredentials as error:
        outcome = Rejected("BAD_CREDENTIALS", str(error) or "The carrier refuses the account's credentials.")
    except Unclear as error:
        outcome = Unsure(str(error) or "There was no answer.")
    except Exception:
        log.exception("booking broke off", shipment=kept.id, reference=attempt.reference)
        outcome = Unsure("The answer could not be read.")
    await _keep(kit, opened, attempt, outcome)
    return outcome


async def _keep(kit: Kit, opened: Opened, attempt: BookingAttempt, outcome: Outcome) -> None:
    """Before anything else happens with it."""
    await call_log.record(kit.database, opened.connection, "book", attempt.reference, outcome)
    if isinstance(outcome, Booked):
        async with kit.database.connection() as db:
            await booking_queries.note_answer(db, attempt, outcome)


async def settle(
    tx: Tx, company: Company, shipment_id: str, number: int, outcome: Outcome | None, by: str
) -> StoredShipment:
    """What came of an attempt; what another process or a callback settled before stays so."""
    kept = await shipments.lock_shipment(tx, company.id, shipment_id)
    attempt = await booking_queries.get_attempt(tx, company.id, shipment_id, number)
    is_wanted = kept.reference == attempt.reference and kept.shipping_status in NOT_BOOKED_YET
    if isinstance(outcome, Booked):
        return await _settle_booked(tx, company, kept, attempt, outcome, is_wanted, by)
    if outcome is None or attempt.state not in OPEN:
        return kept
    return await _settle_otherwise(tx, company, kept, attempt, outcome, is_wanted, by)


async def _settle_booked(
    tx: Tx, company: Company, kept: StoredShipment, attempt: BookingAttempt, booked: Booked, is_wanted: bool, by: str
) -> StoredShipment:
    await booking_queries.note_answer(tx, attempt, booked)
    if attempt.state == "succeeded":  # a callback was faster, or a person
        await booking_queries.settle_attempt(tx, attempt, "succeeded", by=by)
        return await store(tx, company, kept, with_numbers(kept, booked))
    if is_wanted:
        # Whoever told that it was booked may not have told its number: the carrier is asked for it.
        due_in = None if booked.order_no or booked.awb or attempt.order_no else 0.0
        await booking_queries.settle_attempt(tx, attempt, "succeeded", by=by, due_in=due_in)
        clock = await shipments.get_clock(tx, company.id)
        return await store(tx, company, kept, _with_booking(kept, booked, clock))
    await booking_queries.settle_attempt(tx, attempt, "unwanted", by=by, due_in=0)
    return await flag_unwanted(tx, company, kept, attempt, "it is being cancelled there.")


async def flag_unwanted(
    tx: Tx, company: Company, kept: StoredShipment, attempt: BookingAttempt, fate: str
) -> StoredShipment:
    words = f"The carrier goes on with an earlier booking ({attempt.reference}); {fate}"
    return await store(tx, company, kept, msgspec.structs.replace(kept, needs_action=True, problem=words))


async def _settle_otherwise(
    tx: Tx,
    company: Company,
    kept: StoredShipment,
    attempt: BookingAttempt,
    outcome: Rejected | NotFound | Unsure,
    is_wanted: bool,
    by: str,
) -> StoredShipment:
    if isinstance(outcome, Unsure):
        status, state, error, due_in = "booking_unknown", "unknown", outcome.reason, max(0.0, LOOKS[0] - attempt.age)
    elif isinstance(outcome, NotFound):
        status, state, error = "booking_failed", "failed", "The carrier knows nothing of the booking."
        due_in = LOOKS[-1]
    else:
        status, state, error, due_in = "booking_failed", "failed", outcome.reason, None
    await booking_queries.settle_attempt(tx, attempt, state, error=error, by=by, due_in=due_in)
    if not is_wanted or kept.shipping_status == status:
        return kept
    needs_action = status == "booking_failed"
    after = msgspec.structs.replace(kept, shipping_status=status, problem=error, needs_action=needs_action)
    return await store(tx, company, kept, after)


def _with_booking(kept: StoredShipment, booked: Booked, clock: Clock) -> StoredShipment:
    status = booked.status if is_allowed(kept.shipping_status, booked.status, "S") else "confirmed"
    is_troubled = status in TROUBLED
    problem = f"The carrier had taken it, and it is {status} by now." if is_troubled else None
    gone = {"cancelled_by": "carrier", "cancelled_source": POLLED} if status in GONE else {}
    after = msgspec.structs.replace(
        with_numbers(kept, booked), shipping_status=status, problem=problem, needs_action=is_troubled, **gone
    )
    return msgspec.structs.replace(after, poll_at=build_poll_at(after, clock))


def with_numbers(kept: StoredShipment, booked: Booked) -> StoredShipment:
    """What the carrier's answer told, where nothing newer is known."""
    names = ("order_no", "booking_id", "awb", "pickup_number", "payment_id", "tracking_url", "status_code", "distance")
    known = {name: getattr(kept, name) for name in names}
    news = {name: getattr(booked, name) if value is None else value for name, value in known.items()}
    return msgspec.structs.replace(kept, **news, driver=kept.driver or encode_driver(booked.driver))


async def resolve(tx: Tx, company: Company, kept: StoredShipment, given: BookingResolution) -> StoredShipment:
    """What a person found out at the carrier."""
    if kept.shipping_status != "booking_unknown":
        raise InvalidMove(f"Only a booking_unknown shipment can be resolved; it is {kept.shipping_status}.")
    attempt = await booking_queries.find_by_reference(tx, company.id, kept.reference)
    if attempt is None:
        raise InvalidMove("There is no booking to resolve.")
    outcome: Booked | NotFound = NotFound()
    if given.outcome == "booked":
        is_named = given.order_no or attempt.order_no
        if not is_named and not CARRIERS[attempt.adapter].finds_by_reference:
            words = "is required: the carrier can be asked by its own order number only"
            raise Invalid.field("resolveBooking.orderNo", words)
        outcome = Booked("confirmed", order_no=given.order_no)
    return await settle(tx, company, kept.id, attempt.number, outcome, "user")


async def book(kit: Kit, company: Company, id: str) -> StoredShipment:
    """From the intent to the outcome, for people who book at the console or by a command. What is booked stays so."""
    async with kit.database.connection() as db:
        kept = await shipments.get_kept(db, company.id, id)
        if kept.provider in LOCAL:
            raise NotBookable(f"{kept.provider} has no carrier to book with; triggerBooking confirms it.")
        opened = await get_carrier(kit, db, company, kept.provider)
    async with kit.database.transaction() as tx:
        kept = await shipments.lock_shipment(tx, company.id, id)
        if is_booked(kept):
            return kept
        check_reachable(opened)
        started = await begin(tx, company, kept, opened.carrier.name)
    if started.attempt is None:
        return started.kept
    outcome = await send(kit, opened, started.kept, started.attempt)
    async with kit.database.transaction() as tx:
        return await settle(tx, company, id, started.attempt.number, outcome, "user")
