"""How the ledger changes.

Every write opens the customer's book, which locks the wallet and settles what is overdue; then it checks, enters, and
closes the book, which stores the entries with their event and their lines on the timeline.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec

from sapa.customers.types import CustomerRemoved
from sapa.db.pool import Connection, Tx
from sapa.events import emit
from sapa.http.errors import Invalid, NotFound
from sapa.loyalty import queries
from sapa.loyalty.ledger import WalletLedger
from sapa.loyalty.program import actions as program
from sapa.loyalty.timeline_entries import build_entries
from sapa.loyalty.types import (
    RESERVATION_ID,
    WALLET_ID,
    Adjusted,
    AdjustmentIn,
    InsufficientPoints,
    LedgerEntry,
    LedgerKeyReused,
    LoyaltyDisabled,
    Memo,
    PointsUpdated,
    Portion,
    Position,
    Reservation,
    ReservationClosed,
    ReservationIn,
    ReservationsClosed,
    ReservationStatus,
    Wallet,
)
from sapa.orders.types import Order, OrderChanged
from sapa.ports import publish
from sapa.timeline import actions as timeline
from sapa.timeline.types import Source
from sapa.values.company import Company
from sapa.values.ids import CUSTOMER_ID
from sapa.values.json import encode

MOST_METADATA = 10_000
END_OF_TIME = datetime.max.replace(tzinfo=UTC)
OWN_KEYS = "order:"
"""How the idempotency keys begin that the ledger gives itself."""

_canonical = msgspec.json.Encoder(order="sorted").encode


insert_reservation = queries.insert_reservation


def wallet_id_of(customer_id: str) -> str:
    """A customer's one wallet bears the customer's own id behind its prefix, so it is known before it is written."""
    return WALLET_ID.prefix + customer_id.removeprefix(CUSTOMER_ID.prefix)


async def list_wallets(db: Connection, company_id: int, customer_ids: Sequence[str]) -> list[Wallet]:
    """Those of some customers, as far as they ever had a point."""
    return await queries.list_wallets(db, company_id, [wallet_id_of(id) for id in customer_ids])


async def adjust(tx: Tx, company: Company, customer_id: str, given: AdjustmentIn, by: int | None = None) -> Adjusted:
    """Adds or deducts points by hand; `by` is a user of the console. With a key that was used before, nothing happens
    again."""
    memo = build_memo(customer_id, given, by)
    source: Source = "api" if by is None else "console"
    book = await open_book(tx, company, customer_id)
    known = await find_repeated(tx, company, memo)
    if known is not None:
        return Adjusted(await close_book(tx, company, book, source), known)
    refuse_closed(book)
    if given.direction == "add":
        book.grant("adjust_add", given.points, memo)
    else:
        book.take("adjust_deduct", await pick_lots(tx, company, book, given.points), memo)
    return Adjusted(await close_book(tx, company, book, source), book.written[-1])


async def reserve(
    tx: Tx, company: Company, customer_id: str, given: ReservationIn, redemption_id: str | None = None
) -> Reservation:
    """Holds points for a while; they keep their lots, and do not expire while they are held."""
    book = await open_book(tx, company, customer_id)
    refuse_closed(book)
    portions = await pick_lots(tx, company, book, given.points)
    id = RESERVATION_ID.new()
    book.hold(id, portions, _reservation_memo(id, given.reference_type, given.reference_id))
    ttl = given.ttl_seconds or book.standing.reservation_ttl_seconds
    reservation = await queries.insert_reservation(
        tx, company.id, id, book.balance, book.standing.instant, ttl, portions, given.reference_type,
        given.reference_id, redemption_id,
    )  # fmt: skip
    await close_book(tx, company, book, "api")
    return reservation


async def commit(tx: Tx, company: Company, reservation_id: str) -> Reservation:
    """Spends the points that a reservation holds."""
    book, reservation = await _open_reservation(tx, company, reservation_id)
    portions = await queries.list_held(tx, company.id, reservation_id, book.standing.instant)
    book.spend_held(reservation_id, portions, _memo_of(reservation))
    return await _close_reservation(tx, company, book, reservation_id, "committed")


async def release(tx: Tx, company: Company, reservation_id: str) -> Reservation:
    """Gives the points that a reservation holds back to their lots."""
    book, reservation = await _open_reservation(tx, company, reservation_id)
    portions = await queries.list_held(tx, company.id, reservation_id, book.standing.instant)
    book.release(reservation_id, portions, _memo_of(reservation))
    book.bury()
    return await _close_reservation(tx, company, book, reservation_id, "released")


async def undo(tx: Tx, company: Company, reservation_id: str, reason: str) -> None:
    """Gives back what a redemption's reservation holds, or what its commit spent, since the redemption failed."""
    book, reservation = await _open_reservation(tx, company, reservation_id, still=("reserved", "committed"))
    now, was = book.standing.instant, reservation.status
    portions = await queries.list_held(tx, company.id, reservation_id, now)
    memo = msgspec.structs.replace(_memo_of(reservation), note=reason)
    if was == "reserved":
        book.release(reservation_id, portions, memo)
        await queries.close_reservations(tx, company.id, [reservation_id], "released", now)
    else:
        book.return_spent(reservation_id, portions, memo)
    book.bury()
    await publish(tx, company, ReservationsClosed([reservation], "failed", now, was, reason))
    await close_book(tx, company, book, "api")


async def forfeit(tx: Tx, company: Company, removed: CustomerRemoved) -> None:
    """What becomes of the points of a customer who was just deleted: nothing is held any more, and nothing is left.

    Under the customer's lock. The entries stay, and whoever waited for the wallet finds that it is nobody's.
    """
    customer_id = removed.customer_id
    book = await find_book(tx, company, customer_id)
    if book is None:
        return
    held = await queries.list_open(tx, company.id, book.balance.id, book.standing.instant, END_OF_TIME)
    if held:
        await _give_back(tx, company, book, held, "released")
        book.bury()
        await queries.write(tx, company.id, book)
        book.end_settlement()
    if left := book.balance.available:
        memo = Memo(reference_type="customer", reference_id=customer_id)
        book.take("expire", await pick_lots(tx, company, book, left), memo)
    await close_book(tx, company, book, "system")


async def settle_order(tx: Tx, company: Company, changed: OrderChanged) -> None:
    """Posts what an order should have earned and has not, or has and should not have.

    What was spent already cannot be taken back, and is kept as the order's shortfall. A customer who is
    deleted earns nothing any more.
    """
    order, customer_id = changed.order, changed.order.customer_id
    if customer_id is None:
        return
    terms, before = await program.get_terms(tx, company.id, order.id, order.total)
    aim = program.build_target_position(company, order, changed.status, terms, before)
    missing = aim.target - aim.posted
    if not missing and aim.target == (before.target if before else 0):
        return
    book = await find_book(tx, company, customer_id)
    if book is None:
        return
    if missing > 0 and not book.standing.has_customer:
        aim = msgspec.structs.replace(aim, target=aim.posted)
    elif missing > 0:
        book.grant("earn", missing, _order_memo(order, aim), order_id=order.id)
    elif taken := min(-missing, book.balance.available):
        portions = await pick_lots(tx, company, book, taken, order_id=order.id)
        book.take("earn_reversal", portions, _order_memo(order, aim))
    await program.store_position(tx, company.id, order.id, book.balance.id, _posted(aim, book))
    await close_book(tx, company, book, "system")


async def settle_wallet(tx: Tx, company: Company, customer_id: str, most: int | None = None) -> bool:
    """Only what is overdue: what every write begins with. Or the oldest of it, so many reservations and lots at most;
    the change is announced with the last of them. Whether all is settled."""
    book = await open_book(tx, company, customer_id, most)
    if most is not None and book.written:
        standing = await queries.get_program_state(tx, company.id, book.balance.id, customer_id)
        book.is_settled = not standing.has_due
    await close_book(tx, company, book, "system")
    return book.is_settled


async def open_book(tx: Tx, company: Company, customer_id: str, most: int | None = None) -> WalletLedger:
    """The customer's book under the wallet's lock, with all settled that was due: overdue reservations give their
    points back, then points past their time expire."""
    book = await find_book(tx, company, customer_id, most)
    if book is None:
        raise NotFound
    return book


async def find_book(tx: Tx, company: Company, customer_id: str, most: int | None = None) -> WalletLedger | None:
    """The book as `open_book` opens it; none of a customer who was deleted before the first point."""
    wallet_id = wallet_id_of(customer_id)
    balance = await queries.find_locked_wallet(tx, company.id, wallet_id, customer_id)
    if balance is None:
        return None
    book = WalletLedger(company.id, balance, await queries.get_program_state(tx, company.id, wallet_id, customer_id))
    if book.standing.has_due:
        await _settle(tx, company, book, most)
    return book


async def close_book(tx: Tx, company: Company, book: WalletLedger, source: Source) -> Wallet:
    """Stores what was entered, announces it once, and answers the wallet."""
    if book.lines:
        wallet = await queries.write(tx, company.id, book)
    else:
        wallet = await queries.get_stored_wallet(tx, company.id, book.balance.id)
    if book.written:
        await timeline.record_all(tx, company, build_entries(book, source))
        if book.is_settled:
            await emit(tx, company, PointsUpdated(wallet))
    return wallet


async def pick_lots(
    tx: Tx, company: Company, book: WalletLedger, points: int, order_id: str | None = None
) -> Sequence[Portion]:
    """The lots that so many points are taken from; raises when the wallet has fewer."""
    if book.balance.available < points:
        raise InsufficientPoints(f"{points} points were asked for and {book.balance.available} are available.")
    return await queries.list_spendable(tx, company.id, book.balance.id, book.standing.instant, points, order_id)


async def find_repeated(tx: Tx, company: Company, memo: Memo) -> LedgerEntry | None:
    """The entry that the same request with the same key made before; raises when it was another request.

    Asked under the wallet's lock, so twins come one after the other.
    """
    if memo.idempotency_key is None:
        return None
    known = await queries.find_keyed(tx, company.id, memo.idempotency_key)
    if known is None:
        return None
    if known.fingerprint != memo.fingerprint:
        raise LedgerKeyReused
    return LedgerEntry(*(getattr(known, name) for name in LedgerEntry.__struct_fields__))


def refuse_closed(book: WalletLedger) -> None:
    """Raises when nobody may write to the book: its customer was deleted meanwhile, or the program is off."""
    if not book.standing.has_customer:
        raise NotFound
    if not book.standing.enabled:
        raise LoyaltyDisabled


def build_memo(customer_id: str, given: AdjustmentIn, by: int | None) -> Memo:
    """What the entry of an adjustment says; raises Invalid when it cannot be said."""
    key = parse_key(given.idempotency_key)
    return Memo(
        reference_type="api" if by is None else "console",
        created_by_id=by,
        note=given.reason,
        metadata=build_metadata(given.metadata),
        idempotency_key=key,
        fingerprint=build_fingerprint("adjust", customer_id, given) if key is not None else None,
    )


def parse_key(key: str | None) -> str | None:
    """A caller's key, if it is given; raises Invalid when it is not theirs to choose."""
    if key is not None and key.startswith(OWN_KEYS):
        raise Invalid.field("idempotencyKey", f"must not begin with {OWN_KEYS!r}, as the ledger's own keys do")
    return key


def build_metadata(given: dict[str, Any] | None) -> bytes | None:
    """A caller's metadata as it is stored; raises Invalid when there is too much of it."""
    metadata = None if given is None else encode(given)
    if metadata is not None and len(metadata) > MOST_METADATA:
        raise Invalid.field("metadata", f"must have at most {MOST_METADATA} bytes")
    return metadata


def build_fingerprint(action: str, customer_id: str, given: msgspec.Struct) -> bytes:
    """The same for the same request, in whatever order its fields were sent."""
    return sha256(_canonical([action, customer_id, msgspec.to_builtins(given)])).digest()


async def _settle(tx: Tx, company: Company, book: WalletLedger, most: int | None) -> None:
    now, wallet_id = book.standing.instant, book.balance.id
    overdue = await queries.list_open(tx, company.id, wallet_id, now, now, most)
    await _give_back(tx, company, book, overdue, "expired")
    book.bury(await queries.list_dead_lots(tx, company.id, wallet_id, now, book.dead_lots, most))
    await queries.write(tx, company.id, book)
    book.end_settlement()


async def _give_back(
    tx: Tx, company: Company, book: WalletLedger, held: Mapping[str, Sequence[Portion]], status: ReservationStatus
) -> None:
    closed = await _close(tx, company, list(held), status, book.standing.instant) if held else []
    memos = {reservation.id: _memo_of(reservation) for reservation in closed}
    for reservation_id, portions in held.items():
        book.release(reservation_id, portions, memos[reservation_id])


async def _open_reservation(
    tx: Tx, company: Company, id: str, still: Sequence[ReservationStatus] = ("reserved",)
) -> tuple[WalletLedger, Reservation]:
    """Its status is looked at again under the wallet's lock, and after what is overdue has been settled."""
    found = await queries.get_reservation(tx, company.id, id)
    book = await open_book(tx, company, found.customer_id)
    reservation = await queries.get_reservation(tx, company.id, id)
    if not book.standing.has_customer:
        raise NotFound
    if reservation.status not in still:
        raise ReservationClosed(f"The reservation is already {reservation.status}.")
    refuse_closed(book)
    return book, reservation


async def _close_reservation(
    tx: Tx, company: Company, book: WalletLedger, id: str, status: ReservationStatus
) -> Reservation:
    closed = await _close(tx, company, [id], status, book.standing.instant)
    if not closed:
        raise ReservationClosed
    await close_book(tx, company, book, "api")
    return closed[0]


async def _close(
    tx: Tx, company: Company, ids: Sequence[str], status: ReservationStatus, now: datetime
) -> list[Reservation]:
    """The one place where reservations end, and with them the redemptions whose points they hold."""
    closed = await queries.close_reservations(tx, company.id, ids, status, now)
    await publish(tx, company, ReservationsClosed(closed, status, now))
    return closed


def _posted(aim: Position, book: WalletLedger) -> Position:
    """The position after the posting that the book holds, if it holds one."""
    delta = sum(line.available_delta for line in book.lines)
    posted = aim.posted + delta
    return msgspec.structs.replace(
        aim, posted=posted, shortfall=posted - aim.target, postings=aim.postings + len(book.lines)
    )


def _order_memo(order: Order, aim: Position) -> Memo:
    key = f"{OWN_KEYS}{order.id}:{aim.postings + 1}"
    return Memo(reference_type="order", reference_id=order.id, idempotency_key=key)


def _reservation_memo(id: str, reference_type: str | None, reference_id: str | None) -> Memo:
    """What the caller said the points are for; the reservation itself where they said nothing."""
    if reference_type is None and reference_id is None:
        return Memo(reference_type="reservation", reference_id=id)
    return Memo(reference_type=reference_type, reference_id=reference_id)


def _memo_of(reservation: Reservation) -> Memo:
    return _reservation_memo(reservation.id, reservation.reference_type, reservation.reference_id)
