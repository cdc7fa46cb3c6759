"""A wallet's book, open under its lock: what is entered is checked against the running numbers. Pure: no database.

Points live in lots. Every entry moves points of lots, and the sums of its moves are its two numbers, so the balance
of a wallet and the rest of its lots cannot part.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Raw, Struct

from sapa.loyalty.types import (
    ENTRY_ID,
    LOT_ID,
    EntryType,
    LedgerEntry,
    Memo,
    Portion,
    ProgramState,
)

MILLISECOND = timedelta(milliseconds=1)
LOWERS_EARNED = {"earn_reversal"}
LOWERS_BURNED = {"redeem_reversal"}
MOST_BURIALS = 500
"""So many lots that expire together get an entry each; the rest of them share one."""


class Balance(Struct, frozen=True):
    """A wallet's numbers as they are stored."""

    id: str
    customer_id: str
    available: int
    reserved: int
    lifetime_earned: int
    lifetime_burned: int
    version: int
    last_ledger_at: str | None


class NewLedgerEntry(Struct, frozen=True):
    """One entry, ready to be stored."""

    id: str
    seq: int
    entry_type: EntryType
    available_delta: int
    reserved_delta: int
    available_after: int
    reserved_after: int
    reservation_id: str | None
    occurred_at: str
    reference_type: str | None
    reference_id: str | None
    note: str | None
    metadata: Raw | None
    idempotency_key: str | None
    fingerprint: str | None
    created_by_id: int | None


class Move(Struct, frozen=True):
    entry_id: str
    lot_id: str
    available_delta: int
    reserved_delta: int


class NewLot(Struct, frozen=True):
    id: str
    order_id: str | None
    granted: int
    earned_at: str
    expiry_months: int | None


class WalletLedger:
    """Entries of one transaction on one wallet. `lines`, `moves` and `lots` are what is not stored yet."""

    def __init__(self, company_id: int, balance: Balance, standing: ProgramState) -> None:
        self.company_id = company_id
        self.opened = self.balance = balance
        self.standing = standing
        self.lines: list[NewLedgerEntry] = []
        self.moves: list[Move] = []
        self.lots: list[NewLot] = []
        self.written: list[LedgerEntry] = []
        """Every entry of this transaction, stored or not, as the API shows it."""
        self.settled = 0
        """How many of these the settlement made."""
        self.is_settled = True
        """False when only a portion of what is overdue was settled."""
        self._dead: dict[str, int] = {}

    @property
    def dead_lots(self) -> list[str]:
        """Those that points came back to, and which are not buried yet."""
        return list(self._dead)

    def grant(self, entry_type: EntryType, points: int, memo: Memo, order_id: str | None = None) -> None:
        """New points: a lot of their own."""
        lot_id = LOT_ID.new()
        line = self._enter(entry_type, [(lot_id, points, 0)], memo)
        self.lots.append(NewLot(lot_id, order_id, points, line.occurred_at, self.standing.expiry_months))

    def take(self, entry_type: EntryType, portions: Sequence[Portion], memo: Memo) -> None:
        """Points that are gone."""
        self._enter(entry_type, [(one.lot_id, -one.points, 0) for one in portions], memo)

    def hold(self, reservation_id: str, portions: Sequence[Portion], memo: Memo) -> None:
        moves = [(one.lot_id, -one.points, one.points) for one in portions]
        self._enter("redeem_reserve", moves, memo, reservation_id)

    def spend_held(self, reservation_id: str, portions: Sequence[Portion], memo: Memo) -> None:
        self._enter("redeem_commit", [(one.lot_id, 0, -one.points) for one in portions], memo, reservation_id)

    def release(self, reservation_id: str, portions: Sequence[Portion], memo: Memo) -> None:
        """Back to the same lots. Those whose time is over meanwhile are buried next."""
        moves = [(one.lot_id, one.points, -one.points) for one in portions]
        self._enter("redeem_release", moves, memo, reservation_id)
        self._note_dead(portions)

    def return_spent(self, reservation_id: str, portions: Sequence[Portion], memo: Memo) -> None:
        """Spent points come back to the lots they were of, with the time that those have left."""
        self._enter("redeem_reversal", [(one.lot_id, one.points, 0) for one in portions], memo, reservation_id)
        self._note_dead(portions)

    def bury(self, dead: Mapping[str, int] | None = None) -> None:
        """Expires the points of lots whose time is over: the given ones, and what came back to such lots."""
        all_dead = {**(dead or {}), **_added(dead or {}, self._dead)}
        moves = [(lot_id, -points, 0) for lot_id, points in all_dead.items() if points]
        for move in moves[:MOST_BURIALS]:
            self._enter("expire", [move], Memo(reference_type="lot", reference_id=move[0]))
        if rest := moves[MOST_BURIALS:]:
            self._enter("expire", rest, Memo(reference_type="lots"))
        self._dead = {}

    def end_settlement(self) -> None:
        """What was entered up to now is stored, and was nobody's wish."""
        self.lines, self.moves, self.lots = [], [], []
        self.settled = len(self.written)

    def _note_dead(self, portions: Sequence[Portion]) -> None:
        for one in portions:
            if one.is_dead:
                self._dead[one.lot_id] = self._dead.get(one.lot_id, 0) + one.points

    def _enter(
        self,
        entry_type: EntryType,
        moves: Sequence[tuple[str, int, int]],
        memo: Memo,
        reservation_id: str | None = None,
    ) -> NewLedgerEntry:
        before = self.balance
        available = sum(move[1] for move in moves)
        reserved = sum(move[2] for move in moves)
        line = NewLedgerEntry(
            id=ENTRY_ID.new(),
            seq=before.version + 1,
            entry_type=entry_type,
            available_delta=available,
            reserved_delta=reserved,
            available_after=before.available + available,
            reserved_after=before.reserved + reserved,
            reservation_id=reservation_id,
            occurred_at=_next_instant(self.standing.instant, before.last_ledger_at),
            **_said(memo),
        )
        self.lines.append(line)
        self.moves += [Move(line.id, *move) for move in moves]
        self.balance = _carried(before, line)
        self.written.append(self._shown(line))
        return line

    def _shown(self, line: NewLedgerEntry) -> LedgerEntry:
        return LedgerEntry(
            id=line.id,
            customer_id=self.balance.customer_id,
            wallet_id=self.balance.id,
            company_id=self.company_id,
            created_by_id=line.created_by_id,
            entry_type=line.entry_type,
            points_delta=str(line.available_delta + line.reserved_delta),
            available_after=str(line.available_after),
            reserved_after=str(line.reserved_after),
            reference_type=line.reference_type,
            reference_id=line.reference_id,
            idempotency_key=line.idempotency_key,
            note=line.note,
            metadata=line.metadata,
            occurred_at=line.occurred_at,
            created_at=self.standing.now,
        )


def _next_instant(now: datetime, last: str | None) -> str:
    """Later than the last one by a millisecond at least, whatever the clock says: an instant is a place in the book."""
    if last is not None:
        now = max(now, datetime.fromisoformat(last) + MILLISECOND)
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _carried(before: Balance, line: NewLedgerEntry) -> Balance:
    delta = line.available_delta + line.reserved_delta
    is_earned = line.entry_type in LOWERS_EARNED or (delta > 0 and line.entry_type not in LOWERS_BURNED)
    return msgspec.structs.replace(
        before,
        available=line.available_after,
        reserved=line.reserved_after,
        lifetime_earned=before.lifetime_earned + (delta if is_earned else 0),
        lifetime_burned=before.lifetime_burned - (0 if is_earned else delta),
        version=line.seq,
        last_ledger_at=line.occurred_at,
    )


def _said(memo: Memo) -> dict[str, Any]:
    said = {name: getattr(memo, name) for name in memo.__struct_fields__}
    said["metadata"] = None if memo.metadata is None else Raw(memo.metadata)
    said["fingerprint"] = None if memo.fingerprint is None else memo.fingerprint.hex()
    return said


def _added(dead: Mapping[str, int], returned: Mapping[str, int]) -> dict[str, int]:
    return {lot_id: dead.get(lot_id, 0) + points for lot_id, points in returned.items()}
