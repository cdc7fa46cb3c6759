"""What carriers call back with: checked and stored when it comes, applied by the worker, each event once."""

from hashlib import sha256

import asyncpg
import msgspec
import structlog
from msgspec import Raw, Struct

from sapa.access import actions as access
from sapa.context import Kit
from sapa.db.pool import AWAY, BUSY, RETRYABLE, Connection, Database, Tx
from sapa.db.sql import sql
from sapa.http.errors import MethodNotAllowed, NotFound, PayloadTooLarge, Unauthorized
from sapa.http.hooks import HookAnswer, HookCall
from sapa.shipping.bookings import queries as bookings
from sapa.shipping.bookings.queries import BookingAttempt
from sapa.shipping.carriers.interface import CarrierEvent, Unsigned
from sapa.shipping.connections.actions import HOOKS, Opened, find_by_token
from sapa.shipping.shipments import queries as shipments
from sapa.shipping.shipments.due_queries import NOW, build_in_turn
from sapa.shipping.shipments.status_changes import CALLED, apply_events
from sapa.shipping.states import GROUP_OF
from sapa.values.company import Company

MOST_BYTES = 256 * 1024
WAITS = (1, 2, 5, 15, 60, 300, 900, 3_600)
"""Seconds until a callback is looked at again whose shipment nobody knows yet, or that failed; then no more."""
KEPT_DAYS = 30
ALIVE = frozenset({"accepted", "in_delivery", "delivered"})
"""Groups of states in which a carrier goes on with a booking."""

_read_events = msgspec.json.Decoder(list[CarrierEvent]).decode

log = structlog.get_logger()

# The same again is no news, unless it was given up: what was not known then may be known now.
INSERT = sql(
    """
    INSERT INTO carrier_callbacks AS known (company_id, adapter, digest, body, events)
    VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (company_id, adapter, digest) DO UPDATE
       SET events = excluded.events, due_at = now(), tries = 0, processed_at = NULL, note = NULL
     WHERE known.processed_at IS NOT NULL AND known.note IS NOT NULL"""
)


class DueCallback(Struct, frozen=True):
    company_id: int
    id: int


class StoredCallback(Struct, frozen=True):
    adapter: str
    events: Raw
    tries: int


LIST_DUE = sql(
    "SELECT company_id, id FROM carrier_callbacks WHERE due_at <= statement_timestamp() ORDER BY due_at, id LIMIT $1",
    row=DueCallback,
    crosses="the worker looks for callbacks over all companies, then applies them one by one",
)

LIST_DUE_IN_TURN = sql(
    build_in_turn("carrier_callbacks", "id", "due_at", NOW),
    row=DueCallback,
    crosses="the worker takes callbacks from every company in turn, then applies them one by one",
)

LOCK = sql(
    """
    SELECT adapter, events, tries FROM carrier_callbacks
     WHERE company_id = $1 AND id = $2 AND due_at <= clock_timestamp()
       FOR UPDATE SKIP LOCKED""",
    row=StoredCallback,
)

SETTLE = sql(
    """
    UPDATE carrier_callbacks SET processed_at = clock_timestamp(), due_at = NULL, tries = tries + 1, note = $3
     WHERE company_id = $1 AND id = $2"""
)

POSTPONE = sql(
    """
    UPDATE carrier_callbacks
       SET tries = tries + 1, due_at = clock_timestamp() + make_interval(secs => $3), note = $4
     WHERE company_id = $1 AND id = $2"""
)

COMPANIES_TO_FORGET = sql(
    "SELECT DISTINCT company_id FROM carrier_callbacks WHERE received_at < now() - make_interval(days => $1)",
    crosses="the worker looks for old callbacks over all companies, then forgets them company by company",
)

FORGET = sql(
    """
    DELETE FROM carrier_callbacks
     WHERE company_id = $1 AND processed_at IS NOT NULL AND received_at < now() - make_interval(days => $2)"""
)


async def answer(kit: Kit, call: HookCall) -> HookAnswer:
    """Whatever is properly signed is stored and thanked for, also what cannot be read yet."""
    if call.method != "POST":
        raise MethodNotAllowed(headers={"allow": "POST"})
    if len(call.body) > MOST_BYTES:
        raise PayloadTooLarge("The callback is larger than 256 KiB.")
    async with kit.database.connection() as db:
        opened = await find_by_token(kit, db, call.path.removeprefix(HOOKS))
        if opened is None:
            raise NotFound
        events = _read(opened, call)
        if call.body:
            await _keep(db, opened, call.body, events)
    return HookAnswer(200, b'{"received":true}')


def _read(opened: Opened, call: HookCall) -> list[CarrierEvent]:
    try:
        return list(opened.carrier.read_callback(opened.connection.credentials, call.headers, call.body))
    except Unsigned as error:
        raise Unauthorized(str(error) or "The callback's signature or token is not the carrier's.") from None
    except Exception as error:
        log.warning("a carrier's callback cannot be read", adapter=opened.carrier.name, reason=type(error).__name__)
        return []


async def _keep(db: Connection, opened: Opened, body: bytes, events: list[CarrierEvent]) -> None:
    """Without its headers, in which carriers send tokens."""
    company_id, adapter = opened.connection.company.id, opened.carrier.name
    await INSERT.run(db, company_id, adapter, sha256(body).digest(), body, msgspec.json.encode(events))


async def list_due(db: Connection, most: int) -> list[DueCallback]:
    """Of each company in the order in which they came."""
    found = await LIST_DUE.all(db, most)
    return found if len(found) < most else await LIST_DUE_IN_TURN.all(db, most)


async def process(kit: Kit, due: DueCallback) -> None:
    """In one transaction with the mark that it is done."""
    stored = None
    try:
        async with kit.database.transaction() as tx:
            stored = await LOCK.find(tx, due.company_id, due.id)
            if stored is not None:
                await _process(tx, due, stored)
    except (*RETRYABLE, asyncpg.LockNotAvailableError):
        return  # the next round tries again
    except Exception as error:
        log.exception("a carrier's callback failed", company=due.company_id, callback=due.id)
        async with kit.database.connection() as db:
            await _put_off(db, due, stored.tries if stored else 0, type(error).__name__)


async def _process(tx: Tx, due: DueCallback, stored: StoredCallback) -> None:
    company = await access.get_company(tx, due.company_id)
    by_shipment: dict[str, list[tuple[BookingAttempt, CarrierEvent]]] = {}
    missing = 0
    for event in _read_events(stored.events):
        attempt = await _find_attempt(tx, company, stored.adapter, event)
        if attempt is not None:
            by_shipment.setdefault(attempt.shipment_id, []).append((attempt, event))
        missing += attempt is None
    in_order = sorted(by_shipment)  # always the same one, so that two never wait for one another
    failures = [await _try_to_apply(tx, company, id, by_shipment[id]) for id in in_order]
    notes = [f"{missing} not known" if missing else None, *failures]
    if any(notes):
        await _put_off(tx, due, stored.tries, ", ".join(filter(None, notes)))
    else:
        await SETTLE.run(tx, due.company_id, due.id, None)


async def _put_off(db: Connection, due: DueCallback, tries: int, note: str) -> None:
    """Until later, or for good once it was tried often enough."""
    if tries < len(WAITS):
        await POSTPONE.run(db, due.company_id, due.id, float(WAITS[tries]), note)
    else:
        await SETTLE.run(db, due.company_id, due.id, note)


async def _try_to_apply(
    tx: Tx, company: Company, shipment_id: str, told: list[tuple[BookingAttempt, CarrierEvent]]
) -> str | None:
    """What went wrong, if anything did: what is told of other shipments counts all the same."""
    try:
        async with tx.transaction():
            await _apply(tx, company, shipment_id, told)
    except (*RETRYABLE, *BUSY):
        raise
    except Exception as error:
        if isinstance(error, AWAY) and not isinstance(error, ValueError):  # a value that the database refuses is both
            raise
        log.exception("a carrier's word on a shipment failed", company=company.id, shipment=shipment_id)
        return f"{shipment_id}: {type(error).__name__}"
    return None


async def _find_attempt(tx: Tx, company: Company, adapter: str, event: CarrierEvent) -> BookingAttempt | None:
    """The booking that it is about; an awb may be known of the shipment only."""
    attempt = await bookings.find_by_reference(tx, company.id, event.reference)
    if attempt is None:
        attempt = await bookings.find_by_order_no(tx, company.id, adapter, event.order_no)
    if attempt is None and (id := await shipments.find_by_numbers(tx, company.id, adapter, event.order_no, event.awb)):
        kept = await shipments.get_kept(tx, company.id, id)
        attempt = await bookings.find_by_reference(tx, company.id, kept.reference)
    return attempt


async def _apply(tx: Tx, company: Company, shipment_id: str, told: list[tuple[BookingAttempt, CarrierEvent]]) -> None:
    """What is told of an earlier booking says nothing of the present one, but may be a sign that it is not over."""
    kept = await shipments.lock_shipment(tx, company.id, shipment_id)
    present = [event for attempt, event in told if attempt.reference == kept.reference]
    await apply_events(tx, company, kept, present, CALLED)
    for attempt, event in told:
        if attempt.reference == kept.reference:
            continue
        if GROUP_OF.get(event.status or "") in ALIVE:
            await bookings.revive(tx, attempt, event.order_no, event.awb)
        else:
            await bookings.wake(tx, attempt)


async def forget_old(database: Database) -> None:
    """The worker's job: callbacks that were applied long ago."""
    async with database.connection() as db:
        for (company_id,) in await db.fetch(COMPANIES_TO_FORGET.text, KEPT_DAYS):
            await FORGET.run(db, company_id, KEPT_DAYS)
