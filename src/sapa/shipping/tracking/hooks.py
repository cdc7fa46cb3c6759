"""Carriers' callbacks: verified and stored on arrival, applied by the worker, each event once."""

import asyncpg
import msgspec
import structlog

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import BUSY, RETRYABLE, Connection, Database, Tx
from sapa.db.wakeups import DueQueue
from sapa.http.errors import MethodNotAllowed, NotFound, Unauthorized
from sapa.http.hooks import HookTarget
from sapa.shipping.bookings import actions as bookings
from sapa.shipping.bookings.types import BookingAttempt
from sapa.shipping.carriers.interface import CarrierEvent
from sapa.shipping.connections.actions import HOOKS, find_by_token
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.shipments.types import CALLED
from sapa.shipping.tracking import queries
from sapa.shipping.tracking.actions import apply_events
from sapa.shipping.tracking.types import DueCallback, StoredCarrierCallback
from sapa.values.company import Company
from sapa.values.hook_calls import HookAnswer, HookCall
from sapa.values.provider_accounts import BadSignature

MAX_BYTES = 256 * 1024
RETRY_SECONDS = (1, 2, 5, 15, 60, 300, 900, 3_600)
"""Seconds until a callback that failed, or whose shipment is unknown, is retried; then it is given up."""
RETENTION_DAYS = 30

_read_events = msgspec.json.Decoder(list[CarrierEvent]).decode

QUEUE = DueQueue("carrier callbacks", queries.NEXT_CALLBACKS.text)

log = structlog.get_logger()


async def find_target(context: AppContext, path: str) -> HookTarget | None:
    async with context.database.connection() as db:
        connected = await find_by_token(context, db, path.removeprefix(HOOKS))
    return HookTarget(connected, MAX_BYTES) if connected else None


async def receive_callback(context: AppContext, call: HookCall) -> HookAnswer:
    """Stores and acknowledges every properly signed callback, even one that cannot be read yet."""
    if call.method != "POST":
        raise MethodNotAllowed(headers={"allow": "POST"})
    async with context.database.connection() as db:
        connected = call.account or await find_by_token(context, db, call.path.removeprefix(HOOKS))
        if connected is None:
            raise NotFound
        events = _read(connected, call)
        if call.body:
            company_id, adapter = connected.connection.company.id, connected.carrier.name
            await queries.insert_callback(db, company_id, adapter, call.body, events)
            context.database.announce_due(QUEUE)
    return HookAnswer(200, b'{"received":true}')


def _read(connected: ConnectedCarrier, call: HookCall) -> list[CarrierEvent]:
    try:
        return list(connected.carrier.read_callback(connected.connection.credentials, call.headers, call.body))
    except BadSignature as error:
        raise Unauthorized(str(error) or "The callback's signature or token is not valid.") from None
    except Exception as error:
        log.warning(
            "carrier callback unreadable",
            company_id=connected.connection.company.id,
            adapter=connected.carrier.name,
            reason=type(error).__name__,
        )
        return []


async def list_due(context: AppContext, most: int) -> list[DueCallback]:
    """In order of arrival per company; with more than `most`, companies take turns."""
    async with context.database.connection() as db:
        return await queries.list_due(db, most)


async def process(context: AppContext, due: DueCallback) -> None:
    """Applies a callback and marks it as processed in one transaction."""
    stored = None
    try:
        async with context.database.transaction() as tx:
            stored = await queries.find_locked_callback(tx, due)
            if stored is not None:
                await _process(tx, due, stored)
    except (*RETRYABLE, asyncpg.LockNotAvailableError):
        return  # retried in the next round
    except Exception as error:
        log.exception("carrier callback failed", company_id=due.company_id, callback_id=due.id)
        async with context.database.connection() as db:
            await _postpone(db, due, stored.tries if stored else 0, type(error).__name__)


async def _process(tx: Tx, due: DueCallback, stored: StoredCarrierCallback) -> None:
    company = await access.get_company(tx, due.company_id)
    by_shipment: dict[str, list[tuple[BookingAttempt, CarrierEvent]]] = {}
    missing = 0
    for event in _read_events(stored.events):
        attempt = await bookings.find_attempt(tx, company, stored.adapter, event)
        if attempt is not None:
            by_shipment.setdefault(attempt.shipment_id, []).append((attempt, event))
        missing += attempt is None
    in_order = sorted(by_shipment)  # a fixed order, so that two workers cannot deadlock
    failures = [await _try_to_apply(tx, company, id, by_shipment[id]) for id in in_order]
    notes = [f"{missing} not known" if missing else None, *failures]
    if any(notes):
        await _postpone(tx, due, stored.tries, ", ".join(filter(None, notes)))
    else:
        await queries.settle(tx, due, None)


async def _postpone(db: Connection, due: DueCallback, tries: int, note: str) -> None:
    """Retries later, or gives up after the last retry."""
    if tries < len(RETRY_SECONDS):
        await queries.postpone(db, due, float(RETRY_SECONDS[tries]), note)
    else:
        await queries.settle(db, due, note)


async def _try_to_apply(
    tx: Tx, company: Company, shipment_id: str, events: list[tuple[BookingAttempt, CarrierEvent]]
) -> str | None:
    """Returns what failed, if anything: the other shipments of the callback are still applied."""
    try:
        async with tx.transaction():
            await _apply(tx, company, shipment_id, events)
    except (DatabaseAway, *RETRYABLE, *BUSY):
        raise
    except Exception as error:
        log.exception("carrier event failed", company_id=company.id, shipment_id=shipment_id)
        return f"{shipment_id}: {type(error).__name__}"
    return None


async def _apply(tx: Tx, company: Company, shipment_id: str, events: list[tuple[BookingAttempt, CarrierEvent]]) -> None:
    """Events of an earlier booking do not change the shipment, but may show that the booking is still alive."""
    shipment = await shipments.lock_shipment(tx, company.id, shipment_id)
    present = [event for attempt, event in events if attempt.reference == shipment.reference]
    await apply_events(tx, company, shipment, present, CALLED)
    for attempt, event in events:
        if attempt.reference != shipment.reference:
            await bookings.follow_up(tx, attempt, event)


async def purge_old(database: Database) -> None:
    """Deletes callbacks that were processed long ago."""
    async with database.connection() as db:
        await queries.purge_old(db, RETENTION_DAYS)
