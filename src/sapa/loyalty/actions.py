"""How the ledger changes.

Every write opens the customer's ledger, which locks the wallet and settles what is overdue. Then it checks, adds
entries, and closes the ledger, which stores the entries with their event and timeline entries.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec

from sapa.customers.types import CustomerRemoved
from sapa.db.pool import Connection, Tx, notify_after_commit
from sapa.events import CHANNEL, encode_events, is_silent
from sapa.http.bodies import encode_own_data
from sapa.http.errors import Invalid, NotFound
from sapa.loyalty import queries
from sapa.loyalty.ledger import WalletLedger
from sapa.loyalty.program import actions as program
from sapa.loyalty.queries import KeyedEntry
from sapa.loyalty.timeline_entries import build_entries
from sapa.loyalty.types import (
    RESERVATION_ID,
    WALLET_ID,
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
from sapa.orders.types import Order, OrderChanged, OrdersPlaced
from sapa.ports import publish
from sapa.timeline import actions as timeline
from sapa.timeline.types import Source
from sapa.values.company import Company
from sapa.values.ids import CUSTOMER_ID

MAX_METADATA = 10_000
END_OF_TIME = datetime.max.replace(tzinfo=UTC)
OWN_KEYS = "order:"
"""The prefix of the idempotency keys that the ledger generates."""

_canonical = msgspec.json.Encoder(order="sorted").encode


def wallet_id_of(customer_id: str) -> str:
    """A customer's wallet has the customer's id after its own prefix, so its id is known before it is stored."""
    return WALLET_ID.prefix + customer_id.removeprefix(CUSTOMER_ID.prefix)


async def list_wallets(db: Connection, company_id: int, customer_ids: Sequence[str]) -> list[Wallet]:
    """The wallets of these customers; a customer who never had points has none."""
    return await queries.list_wallets(db, company_id, [wallet_id_of(id) for id in customer_ids])


async def reserve(tx: Tx, company: Company, customer_id: str, body: ReservationIn) -> Reservation:
    """Holds points for a time; they stay in their lots, and do not expire while they are held."""
    ledger = await open_ledger(tx, company, customer_id)
    require_writable(ledger)
    id = RESERVATION_ID.new()
    memo = _reservation_memo(id, body.reference_type, body.reference_id)
    reservation = await hold(tx, company, ledger, id, body, memo)
    await close_ledger(tx, company, ledger, "api")
    return reservation


async def hold(
    tx: Tx, company: Company, ledger: WalletLedger, id: str, body: ReservationIn, memo: Memo,
    redemption_id: str | None = None,
) -> Reservation:  # fmt: skip
    """A new reservation in an open ledger, which the caller closes; `memo` is for the ledger's entry."""
    portions = await pick_lots(tx, company, ledger, body.points)
    ledger.hold(id, portions, memo)
    ttl = body.ttl_seconds or ledger.state.reservation_ttl_seconds
    return await queries.insert_reservation(
        tx, company.id, id, ledger.balance, ledger.state.now, ttl, portions, body.reference_type, body.reference_id,
        redemption_id,
    )  # fmt: skip


async def commit(tx: Tx, company: Company, reservation_id: str) -> Reservation:
    """Spends the points that a reservation holds."""
    ledger, reservation = await _open_reservation(tx, company, reservation_id)
    portions = await queries.list_held(tx, company.id, reservation_id, ledger.state.now)
    ledger.spend_held(reservation_id, portions, _memo_of(reservation))
    return await _close_reservation(tx, company, ledger, reservation_id, "committed")


async def release(tx: Tx, company: Company, reservation_id: str) -> Reservation:
    """Returns the points that a reservation holds to their lots."""
    ledger, reservation = await _open_reservation(tx, company, reservation_id)
    portions = await queries.list_held(tx, company.id, reservation_id, ledger.state.now)
    ledger.release(reservation_id, portions, _memo_of(reservation))
    ledger.expire_lots()
    return await _close_reservation(tx, company, ledger, reservation_id, "released")


async def undo(tx: Tx, company: Company, reservation_id: str, reason: str) -> None:
    """Returns the points of a failed redemption, held or spent."""
    ledger, reservation = await _open_reservation(tx, company, reservation_id, still=("reserved", "committed"))
    now, was = ledger.state.now, reservation.status
    portions = await queries.list_held(tx, company.id, reservation_id, now)
    memo = msgspec.structs.replace(_memo_of(reservation), note=reason)
    if was == "reserved":
        ledger.release(reservation_id, portions, memo)
        await queries.close_reservations(tx, company.id, [reservation_id], "released", now)
    else:
        ledger.return_spent(reservation_id, portions, memo)
    ledger.expire_lots()
    await publish(tx, company, ReservationsClosed([reservation], "failed", now, was, reason))
    await close_ledger(tx, company, ledger, "api")


async def forfeit(tx: Tx, company: Company, removed: CustomerRemoved) -> None:
    """Releases and expires all points of a deleted customer.

    Runs under the customer's lock. The entries stay; a write that waited for the wallet finds no customer.
    """
    customer_id = removed.customer_id
    ledger = await find_ledger(tx, company, customer_id)
    if ledger is None:
        return
    held = await queries.list_open_holds(tx, company.id, ledger.balance.id, ledger.state.now, END_OF_TIME)
    if held:
        await _return_held(tx, company, ledger, held, "released")
        ledger.expire_lots()
        await _store_settlement(tx, company, ledger)
    if left := ledger.balance.available:
        memo = Memo(reference_type="customer", reference_id=customer_id)
        ledger.take("expire", await pick_lots(tx, company, ledger, left), memo)
    await close_ledger(tx, company, ledger, "system")


async def settle_order(tx: Tx, company: Company, changed: OrderChanged) -> None:
    """Posts the difference between what an order should have earned and what it has.

    Points that were already spent cannot be taken back and are stored as the order's shortfall. A deleted customer
    earns nothing.
    """
    order, customer_id = changed.order, changed.order.customer_id
    if customer_id is None or not changed.earns:
        return
    before, position = await program.get_positions(tx, company, order, changed.status)
    missing = position.target - position.posted
    if not missing and position.target == (before.target if before else 0):
        return
    ledger = await find_ledger(tx, company, customer_id)
    if ledger is None:
        return
    if missing > 0 and not ledger.state.has_customer:
        position = msgspec.structs.replace(position, target=position.posted)
    elif missing > 0:
        ledger.grant("earn", missing, _order_memo(order, position), order_id=order.id)
    elif taken := min(-missing, ledger.balance.available):
        portions = await pick_lots(tx, company, ledger, taken, order_id=order.id)
        ledger.take("earn_reversal", portions, _order_memo(order, position))
    await program.store_position(tx, company, order, ledger.balance.id, _after_posting(position, ledger))
    await close_ledger(tx, company, ledger, "system")


async def settle_orders(tx: Tx, company: Company, placed: OrdersPlaced) -> None:
    """Like `settle_order` for many new orders, which have earned nothing yet."""
    if await program.has_terms(tx, company):
        for order in placed.orders:
            await settle_order(tx, company, order)


async def settle_wallet(tx: Tx, company: Company, customer_id: str, most: int | None = None) -> bool:
    """Settles what is overdue, as every write does first; returns whether all is settled. With `most`, at most that
    many reservations and lots, the oldest first; the event follows with the last of them."""
    ledger = await open_ledger(tx, company, customer_id, most)
    if most is not None and ledger.entries:
        (state,) = await queries.list_program_states(tx, company.id, [ledger.balance])
        ledger.is_settled = not state.has_due
    await close_ledger(tx, company, ledger, "system")
    return ledger.is_settled


async def open_ledger(tx: Tx, company: Company, customer_id: str, most: int | None = None) -> WalletLedger:
    """The customer's ledger with the wallet locked and settled: overdue reservations return their points, then expired
    lots lose theirs."""
    ledger = await find_ledger(tx, company, customer_id, most)
    if ledger is None:
        raise NotFound
    return ledger


async def find_ledger(tx: Tx, company: Company, customer_id: str, most: int | None = None) -> WalletLedger | None:
    """Like `open_ledger`; None for a customer who was deleted and never had points."""
    return (await open_ledgers(tx, company, [customer_id], most)).get(customer_id)


async def open_ledgers(
    tx: Tx, company: Company, customer_ids: Collection[str], most: int | None = None
) -> dict[str, WalletLedger]:
    """The ledgers of many customers, by customer; a customer who was deleted and never had points has none."""
    wallets = {wallet_id_of(id): id for id in customer_ids}
    balances = await queries.lock_all_wallets(tx, company.id, list(wallets))
    if not balances:
        await queries.create_wallets(tx, company.id, wallets)
        balances = await queries.lock_wallets(tx, company.id, list(wallets))
    states = await queries.list_program_states(tx, company.id, balances) if balances else []
    ledgers = {
        balance.customer_id: WalletLedger(company.id, balance, state)
        for balance, state in zip(balances, states, strict=True)
    }
    for ledger in ledgers.values():
        if ledger.state.has_due:
            await _settle(tx, company, ledger, most)
    return ledgers


async def close_ledger(tx: Tx, company: Company, ledger: WalletLedger, source: Source) -> Wallet:
    """Stores the new entries, announces the change once, and returns the wallet."""
    is_changed = ledger.entries and ledger.is_settled
    await store_ledgers(tx, company, [ledger], source, [ledger.wallet] if is_changed else [])
    return ledger.wallet


async def store_ledgers(
    tx: Tx, company: Company, ledgers: Sequence[WalletLedger], source: Source, changed: Sequence[Wallet]
) -> None:
    """Stores the new entries of ledgers that were opened together, and announces the changed wallets."""
    if not any(ledger.entries for ledger in ledgers):
        return
    entries = timeline.encode_entries([entry for ledger in ledgers for entry in build_entries(ledger, source)])
    events = encode_events([] if is_silent(tx) else [PointsUpdated(wallet) for wallet in changed])
    if await queries.store_ledgers(tx, company.id, ledgers[0].state.now, ledgers, entries, events):
        notify_after_commit(tx, CHANNEL)


async def pick_lots(
    tx: Tx, company: Company, ledger: WalletLedger, points: int, order_id: str | None = None
) -> Sequence[Portion]:
    """The lots to take the points from; raises InsufficientPoints."""
    require_points(ledger, points)
    if order_id is not None:
        wallet_id, now = ledger.balance.id, ledger.state.now
        return await queries.list_spendable_of_order(tx, company.id, wallet_id, now, points, order_id)
    lots = await queries.list_spendable_lots(tx, company.id, ledger.state.now, {ledger.balance.id: points})
    ledger.lots = lots[ledger.balance.id]
    return ledger.pick(points)


async def find_same_request(tx: Tx, company: Company, memo: Memo) -> LedgerEntry | None:
    """The entry of an earlier request with the same key; raises LedgerKeyReused when that request was different.

    Call it under the wallet's lock, so that concurrent requests are serialized.
    """
    if memo.idempotency_key is None:
        return None
    for existing in await queries.list_by_key(tx, company.id, [memo.idempotency_key]):
        return require_same_request(existing, memo)
    return None


def require_same_request(existing: KeyedEntry, memo: Memo) -> LedgerEntry:
    """The entry without its fingerprint; raises LedgerKeyReused when it belongs to a different request."""
    if existing.fingerprint != memo.fingerprint:
        raise LedgerKeyReused
    return LedgerEntry(*(getattr(existing, name) for name in LedgerEntry.__struct_fields__))


def require_points(ledger: WalletLedger, points: int) -> None:
    available = ledger.balance.available
    if available < points:
        raise InsufficientPoints(f"The customer has {available} points available; {points} are needed.")


def require_writable(ledger: WalletLedger) -> None:
    """Raises when the customer was deleted meanwhile, or the program is disabled."""
    if not ledger.state.has_customer:
        raise NotFound
    if not ledger.state.enabled:
        raise LoyaltyDisabled


def parse_key(key: str | None) -> str | None:
    """The caller's key; raises Invalid when it has the prefix of the ledger's own keys."""
    if key is not None and key.startswith(OWN_KEYS):
        raise Invalid.field(
            "idempotencyKey", f"must not start with {OWN_KEYS!r}, which is reserved for the ledger's own keys"
        )
    return key


def build_metadata(metadata: dict[str, Any] | None) -> bytes | None:
    """The caller's metadata as stored; raises Invalid when it is too long."""
    return None if metadata is None else encode_own_data("metadata", metadata, MAX_METADATA)


def build_fingerprint(action: str, customer_id: str, body: msgspec.Struct) -> bytes:
    """Equal for equal requests, in any order of fields."""
    return sha256(_canonical([action, customer_id, msgspec.to_builtins(body)])).digest()


async def _settle(tx: Tx, company: Company, ledger: WalletLedger, most: int | None) -> None:
    now, wallet_id = ledger.state.now, ledger.balance.id
    overdue = await queries.list_open_holds(tx, company.id, wallet_id, now, now, most)
    await _return_held(tx, company, ledger, overdue, "expired")
    ledger.expire_lots(await queries.list_expired_lots(tx, company.id, wallet_id, now, ledger.expired_lots, most))
    await _store_settlement(tx, company, ledger)


async def _store_settlement(tx: Tx, company: Company, ledger: WalletLedger) -> None:
    await queries.store_ledgers(
        tx, company.id, ledger.state.now, [ledger], timeline.encode_entries([]), encode_events([])
    )
    ledger.end_settlement()


async def _return_held(
    tx: Tx, company: Company, ledger: WalletLedger, held: Mapping[str, Sequence[Portion]], status: ReservationStatus
) -> None:
    closed = await _close(tx, company, list(held), status, ledger.state.now) if held else []
    memos = {reservation.id: _memo_of(reservation) for reservation in closed}
    for reservation_id, portions in held.items():
        ledger.release(reservation_id, portions, memos[reservation_id])


async def _open_reservation(
    tx: Tx, company: Company, id: str, still: Sequence[ReservationStatus] = ("reserved",)
) -> tuple[WalletLedger, Reservation]:
    """Reads the reservation again once the wallet is locked and settled."""
    found = await queries.get_reservation(tx, company.id, id)
    ledger = await open_ledger(tx, company, found.customer_id)
    reservation = await queries.get_reservation(tx, company.id, id)
    if not ledger.state.has_customer:
        raise NotFound
    if reservation.status not in still:
        raise ReservationClosed(f"The reservation is already {reservation.status}.")
    require_writable(ledger)
    return ledger, reservation


async def _close_reservation(
    tx: Tx, company: Company, ledger: WalletLedger, id: str, status: ReservationStatus
) -> Reservation:
    closed = await _close(tx, company, [id], status, ledger.state.now)
    if not closed:
        raise ReservationClosed
    await close_ledger(tx, company, ledger, "api")
    return closed[0]


async def _close(
    tx: Tx, company: Company, ids: Sequence[str], status: ReservationStatus, now: datetime
) -> list[Reservation]:
    """Every reservation ends here, and with it the redemption whose points it holds."""
    closed = await queries.close_reservations(tx, company.id, ids, status, now)
    await publish(tx, company, ReservationsClosed(closed, status, now))
    return closed


def _after_posting(position: Position, ledger: WalletLedger) -> Position:
    """The position after the ledger's new entries."""
    delta = sum(entry.available_delta for entry in ledger.new_entries)
    posted = position.posted + delta
    return msgspec.structs.replace(
        position,
        posted=posted,
        shortfall=posted - position.target,
        postings=position.postings + len(ledger.new_entries),
    )


def _order_memo(order: Order, position: Position) -> Memo:
    key = f"{OWN_KEYS}{order.id}:{position.postings + 1}"
    return Memo(reference_type="order", reference_id=order.id, idempotency_key=key)


def _reservation_memo(id: str, reference_type: str | None, reference_id: str | None) -> Memo:
    """Refers to what the caller names, otherwise to the reservation itself."""
    if reference_type is None and reference_id is None:
        return Memo(reference_type="reservation", reference_id=id)
    return Memo(reference_type=reference_type, reference_id=reference_id)


def _memo_of(reservation: Reservation) -> Memo:
    return _reservation_memo(reservation.id, reservation.reference_type, reservation.reference_id)
