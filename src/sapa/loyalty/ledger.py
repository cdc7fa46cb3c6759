"""The ledger of one wallet during a transaction that holds the wallet's lock. Pure: no database.

Points are in lots. Every entry moves points of lots, and its two deltas are the sums of its moves, so the balance of a
wallet always equals the sum of its lots.
"""

from bisect import insort
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Raw, Struct

from sapa.loyalty.types import (
    ENTRY_ID,
    LOT_ID,
    EntryType,
    LedgerEntry,
    Memo,
    Portion,
    ProgramState,
    Wallet,
)
from sapa.values.instants import format_instant

MILLISECOND = timedelta(milliseconds=1)
END_OF_TIME = datetime.max.replace(tzinfo=UTC)
NO_METADATA = Raw(b"{}")
LOWERS_EARNED = {"earn_reversal"}
LOWERS_BURNED = {"redeem_reversal"}
MAX_EXPIRE_ENTRIES = 500
"""So many lots that expire together get an entry each; the others share one."""


class Balance(Struct, frozen=True):
    """A wallet's numbers as they are stored."""

    id: str
    customer_id: str
    available: int
    reserved: int
    lifetime_earned: int
    lifetime_burned: int
    version: int
    last_ledger_at: datetime | None
    created_at: str
    updated_at: datetime


class NewLedgerEntry(Struct, frozen=True):
    """An entry to insert."""

    id: str
    wallet_id: str
    customer_id: str
    seq: int
    entry_type: EntryType
    available_delta: int
    reserved_delta: int
    available_after: int
    reserved_after: int
    reservation_id: str | None
    occurred_at: datetime
    reference_type: str | None
    reference_id: str | None
    note: str | None
    metadata: Raw | None
    idempotency_key: str | None
    fingerprint: str | None
    created_by_id: int | None


class Move(Struct, frozen=True):
    wallet_id: str
    entry_id: str
    lot_id: str
    available_delta: int
    reserved_delta: int


class NewLot(Struct, frozen=True):
    wallet_id: str
    id: str
    order_id: str | None
    granted: int
    earned_at: datetime
    expires_at: datetime | None


class StoredLot(Struct, frozen=True):
    """A new lot after all moves of its transaction."""

    wallet_id: str
    id: str
    order_id: str | None
    granted: int
    remaining: int
    held: int
    earned_at: datetime
    expires_at: datetime | None


class LotShift(Struct, frozen=True):
    """What a transaction changes in a lot that was there before."""

    id: str
    available: int
    reserved: int


class SpendableLot(Struct):
    """Points that can be taken, as far as this transaction knows."""

    wallet_id: str
    id: str
    remaining: int
    expires_at: datetime | None
    earned_at: datetime

    @property
    def place(self) -> tuple[datetime, datetime, str]:
        """Soonest to expire first, then oldest first: the order of the index."""
        return self.expires_at or END_OF_TIME, self.earned_at, self.id


class WalletLedger:
    """The entries of one transaction. `new_entries`, `moves` and `new_lots` are not stored yet."""

    def __init__(self, company_id: int, balance: Balance, state: ProgramState) -> None:
        self.company_id = company_id
        self.opening_balance = self.balance = balance
        self.state = state
        self.new_entries: list[NewLedgerEntry] = []
        self.moves: list[Move] = []
        self.new_lots: list[NewLot] = []
        self.entries: list[LedgerEntry] = []
        """All entries of this transaction, stored or not, as the API shows them."""
        self.settlement_entries = 0
        """How many of them come from the settlement."""
        self.is_settled = True
        """False while only a part of what is overdue is settled."""
        self.lots: list[SpendableLot] = []
        """The first lots to take points from: those that were read, and those granted since."""
        self._expired: dict[str, int] = {}

    @property
    def wallet(self) -> Wallet:
        """The wallet after the entries so far, as the API shows it."""
        balance = self.balance
        return Wallet(
            id=balance.id,
            company_id=self.company_id,
            customer_id=balance.customer_id,
            available_points=str(balance.available),
            reserved_points=str(balance.reserved),
            lifetime_earned_points=str(balance.lifetime_earned),
            lifetime_burned_points=str(balance.lifetime_burned),
            version=str(balance.version),
            last_ledger_at=None if balance.last_ledger_at is None else format_instant(balance.last_ledger_at),
            created_at=balance.created_at,
            updated_at=format_instant(balance.updated_at),
        )

    @property
    def expired_lots(self) -> list[str]:
        """Expired lots that points were returned to, and which have no expire entry yet."""
        return list(self._expired)

    def grant(self, entry_type: EntryType, points: int, memo: Memo, order_id: str | None = None) -> None:
        """Adds new points, as a new lot."""
        lot_id, wallet_id, expires_at = LOT_ID.new(), self.balance.id, self.state.new_lots_expire_at
        at = self._add_entry(entry_type, [(lot_id, points, 0)], memo).occurred_at
        self.new_lots.append(NewLot(wallet_id, lot_id, order_id, points, at, expires_at))
        insort(self.lots, SpendableLot(wallet_id, lot_id, points, expires_at, at), key=lambda lot: lot.place)

    def pick(self, points: int) -> list[Portion]:
        """Takes the points from the first of `lots`; fewer than asked for if those have fewer."""
        portions = []
        for lot in self.lots:
            if not points:
                break
            if taken := min(lot.remaining, points):
                lot.remaining -= taken
                points -= taken
                portions.append(Portion(lot.id, taken, is_dead=False))
        return portions

    def take(self, entry_type: EntryType, portions: Sequence[Portion], memo: Memo) -> None:
        """Removes points."""
        self._add_entry(entry_type, [(one.lot_id, -one.points, 0) for one in portions], memo)

    def hold(self, reservation_id: str, portions: Sequence[Portion], memo: Memo) -> None:
        moves = [(one.lot_id, -one.points, one.points) for one in portions]
        self._add_entry("redeem_reserve", moves, memo, reservation_id)

    def spend_held(self, reservation_id: str, portions: Sequence[Portion], memo: Memo) -> None:
        self._add_entry("redeem_commit", [(one.lot_id, 0, -one.points) for one in portions], memo, reservation_id)

    def release(self, reservation_id: str, portions: Sequence[Portion], memo: Memo) -> None:
        """Returns held points to their lots. Lots that expired meanwhile expire again with `expire_lots`."""
        moves = [(one.lot_id, one.points, -one.points) for one in portions]
        self._add_entry("redeem_release", moves, memo, reservation_id)
        self._collect_expired(portions)

    def return_spent(self, reservation_id: str, portions: Sequence[Portion], memo: Memo) -> None:
        """Returns spent points to their lots, which keep their expiry."""
        self._add_entry("redeem_reversal", [(one.lot_id, one.points, 0) for one in portions], memo, reservation_id)
        self._collect_expired(portions)

    def expire_lots(self, lots: Mapping[str, int] | None = None) -> None:
        """Expires the points of the given lots, and the points that were returned to expired lots."""
        expired = dict(lots or {})
        for lot_id, points in self._expired.items():
            expired[lot_id] = expired.get(lot_id, 0) + points
        moves = [(lot_id, -points, 0) for lot_id, points in expired.items() if points]
        for move in moves[:MAX_EXPIRE_ENTRIES]:
            self._add_entry("expire", [move], Memo(reference_type="lot", reference_id=move[0]))
        if others := moves[MAX_EXPIRE_ENTRIES:]:
            self._add_entry("expire", others, Memo(reference_type="lots"))
        self._expired = {}

    def end_settlement(self) -> None:
        """Marks the entries so far as stored, and as made by the system."""
        self.new_entries, self.moves, self.new_lots = [], [], []
        self.settlement_entries = len(self.entries)

    def _collect_expired(self, portions: Sequence[Portion]) -> None:
        for one in portions:
            if one.is_dead:
                self._expired[one.lot_id] = self._expired.get(one.lot_id, 0) + one.points

    def _add_entry(
        self,
        entry_type: EntryType,
        moves: Sequence[tuple[str, int, int]],
        memo: Memo,
        reservation_id: str | None = None,
    ) -> NewLedgerEntry:
        before = self.balance
        available = sum(move[1] for move in moves)
        reserved = sum(move[2] for move in moves)
        entry = NewLedgerEntry(
            id=ENTRY_ID.new(),
            wallet_id=before.id,
            customer_id=before.customer_id,
            seq=before.version + 1,
            entry_type=entry_type,
            available_delta=available,
            reserved_delta=reserved,
            available_after=before.available + available,
            reserved_after=before.reserved + reserved,
            reservation_id=reservation_id,
            occurred_at=_next_instant(self.state.now, before.last_ledger_at),
            **_memo_columns(memo),
        )
        self.new_entries.append(entry)
        self.moves += [Move(before.id, entry.id, *move) for move in moves]
        self.balance = _next_balance(before, entry, self.state.now)
        self.entries.append(self._as_entry(entry))
        return entry

    def _as_entry(self, entry: NewLedgerEntry) -> LedgerEntry:
        return LedgerEntry(
            id=entry.id,
            customer_id=self.balance.customer_id,
            wallet_id=self.balance.id,
            company_id=self.company_id,
            created_by_id=entry.created_by_id,
            entry_type=entry.entry_type,
            points_delta=str(entry.available_delta + entry.reserved_delta),
            available_after=str(entry.available_after),
            reserved_after=str(entry.reserved_after),
            reference_type=entry.reference_type,
            reference_id=entry.reference_id,
            idempotency_key=entry.idempotency_key,
            note=entry.note,
            metadata=NO_METADATA if entry.metadata is None else entry.metadata,
            occurred_at=format_instant(entry.occurred_at),
            created_at=format_instant(self.state.now),
        )


def build_lot_changes(new_lots: Sequence[NewLot], moves: Sequence[Move]) -> tuple[list[StoredLot], list[LotShift]]:
    """The new lots with what is left of them, and what changes in the others."""
    shifts: dict[str, LotShift] = {}
    for move in moves:
        before = shifts.get(move.lot_id)
        available, reserved = (before.available, before.reserved) if before else (0, 0)
        shifts[move.lot_id] = LotShift(move.lot_id, available + move.available_delta, reserved + move.reserved_delta)
    stored = []
    for lot in new_lots:
        shift = shifts.pop(lot.id)
        stored.append(
            StoredLot(
                lot.wallet_id, lot.id, lot.order_id, lot.granted, shift.available, shift.reserved, lot.earned_at,
                lot.expires_at,
            )
        )  # fmt: skip
    return stored, list(shifts.values())


def _next_instant(now: datetime, last: datetime | None) -> datetime:
    """At least a millisecond after the last entry, even if the clock goes back: instants order a wallet's entries."""
    return now if last is None else max(now, last + MILLISECOND)


def _next_balance(before: Balance, entry: NewLedgerEntry, now: datetime) -> Balance:
    delta = entry.available_delta + entry.reserved_delta
    is_earned = entry.entry_type in LOWERS_EARNED or (delta > 0 and entry.entry_type not in LOWERS_BURNED)
    return Balance(
        id=before.id,
        customer_id=before.customer_id,
        available=entry.available_after,
        reserved=entry.reserved_after,
        lifetime_earned=before.lifetime_earned + (delta if is_earned else 0),
        lifetime_burned=before.lifetime_burned - (0 if is_earned else delta),
        version=entry.seq,
        last_ledger_at=entry.occurred_at,
        created_at=before.created_at,
        updated_at=max(before.updated_at, now),
    )


def _memo_columns(memo: Memo) -> dict[str, Any]:
    columns = {name: getattr(memo, name) for name in memo.__struct_fields__}
    columns["metadata"] = None if memo.metadata is None else Raw(memo.metadata)
    columns["fingerprint"] = None if memo.fingerprint is None else memo.fingerprint.hex()
    return columns
