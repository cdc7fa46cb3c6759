"""Manual adjustments of points: one, or many that share a transaction."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from sapa.db.pool import Tx
from sapa.http.errors import ApiError, NotFound
from sapa.loyalty import queries
from sapa.loyalty.actions import (
    build_fingerprint,
    build_metadata,
    open_ledgers,
    parse_key,
    require_points,
    require_same_request,
    require_writable,
    store_ledgers,
)
from sapa.loyalty.ledger import WalletLedger
from sapa.loyalty.queries import KeyedEntry
from sapa.loyalty.types import MAX_EARNED, Adjusted, AdjustmentIn, LedgerEntry, Memo, Wallet, WalletFull
from sapa.timeline.types import Source
from sapa.values.company import Company

Adjustment: TypeAlias = tuple[str, AdjustmentIn]
"""A customer and the change of their points."""


async def adjust(tx: Tx, company: Company, customer_id: str, body: AdjustmentIn, by: int | None = None) -> Adjusted:
    """Adds or deducts points; `by` is a user of the console. Idempotent by the request's key."""
    (outcome,) = await adjust_all(tx, company, [(customer_id, body)], by)
    if isinstance(outcome, ApiError):
        raise outcome
    return outcome


async def adjust_all(
    tx: Tx, company: Company, adjustments: Sequence[Adjustment], by: int | None = None
) -> list[Adjusted | ApiError]:
    """Many adjustments in their order, each with its own outcome: one that is refused changes nothing."""
    ledgers = await open_ledgers(tx, company, {customer_id for customer_id, _ in adjustments})
    await _read_lots(tx, company, ledgers, adjustments)
    keyed = await _read_keyed(tx, company, adjustments)
    outcomes: list[Adjusted | ApiError] = []
    for customer_id, body in adjustments:
        try:
            outcomes.append(_apply(ledgers.get(customer_id), keyed, body, by))
        except ApiError as refusal:
            outcomes.append(refusal)
    source: Source = "api" if by is None else "console"
    await store_ledgers(tx, company, list(ledgers.values()), source, _list_changed(ledgers, outcomes))
    return outcomes


def build_memo(customer_id: str, body: AdjustmentIn, by: int | None) -> Memo:
    """The memo of an adjustment; raises Invalid."""
    key = parse_key(body.idempotency_key)
    return Memo(
        reference_type="api" if by is None else "console",
        created_by_id=by,
        note=body.reason,
        metadata=build_metadata(body.metadata),
        idempotency_key=key,
        fingerprint=build_fingerprint("adjust", customer_id, body) if key is not None else None,
    )


def _apply(ledger: WalletLedger | None, keyed: dict[str, KeyedEntry], body: AdjustmentIn, by: int | None) -> Adjusted:
    """Adds the adjustment's entry; raises what the caller gets instead."""
    if ledger is None or not ledger.state.has_customer:
        raise NotFound
    memo = build_memo(ledger.balance.customer_id, body, by)
    existing = keyed.get(memo.idempotency_key) if memo.idempotency_key is not None else None
    if existing is not None:
        return Adjusted(ledger.wallet, require_same_request(existing, memo))
    require_writable(ledger)
    if body.direction == "add":
        if ledger.balance.lifetime_earned + body.points > MAX_EARNED:
            raise WalletFull
        ledger.grant("adjust_add", body.points, memo)
    else:
        require_points(ledger, body.points)
        ledger.take("adjust_deduct", ledger.pick(body.points), memo)
    entry = ledger.entries[-1]
    if memo.idempotency_key is not None:
        keyed[memo.idempotency_key] = _with_fingerprint(entry, memo)
    return Adjusted(ledger.wallet, entry)


def _with_fingerprint(entry: LedgerEntry, memo: Memo) -> KeyedEntry:
    return KeyedEntry(**msgspec.structs.asdict(entry), fingerprint=memo.fingerprint)


async def _read_lots(
    tx: Tx, company: Company, ledgers: Mapping[str, WalletLedger], adjustments: Iterable[Adjustment]
) -> None:
    """Reads the lots that all deductions together could need."""
    points: Counter[str] = Counter()
    for customer_id, body in adjustments:
        if body.direction == "deduct" and customer_id in ledgers:
            points[ledgers[customer_id].balance.id] += body.points
    if not points:
        return
    now = next(iter(ledgers.values())).state.now
    lots = await queries.list_spendable_lots(tx, company.id, now, points)
    for ledger in ledgers.values():
        ledger.lots = lots.get(ledger.balance.id, [])


async def _read_keyed(tx: Tx, company: Company, adjustments: Iterable[Adjustment]) -> dict[str, KeyedEntry]:
    """The entries that exist already for the keys of these requests, read under the wallets' locks."""
    keys = {body.idempotency_key for _, body in adjustments if body.idempotency_key is not None}
    existing = await queries.list_by_key(tx, company.id, list(keys)) if keys else []
    return {entry.idempotency_key: entry for entry in existing if entry.idempotency_key is not None}


def _list_changed(ledgers: Mapping[str, WalletLedger], outcomes: Iterable[Adjusted | ApiError]) -> list[Wallet]:
    """The wallets to announce: each one once after every adjustment, and once where only the settlement changed it."""
    new_entries = {entry.id for ledger in ledgers.values() for entry in ledger.entries}
    adjusted = [one.wallet for one in outcomes if isinstance(one, Adjusted) and one.ledger.id in new_entries]
    ids = {wallet.id for wallet in adjusted}
    return adjusted + [one.wallet for one in ledgers.values() if one.entries and one.balance.id not in ids]
