"""How the ledger is stored: wallets, entries, lots and reservations."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.loyalty.ledger import Balance, WalletLedger
from sapa.loyalty.types import (
    LedgerEntry,
    Portion,
    ProgramState,
    Reservation,
    Wallet,
)
from sapa.values.json import encode

FEW_LOTS = 100

BALANCE_COLUMNS = ", ".join(Balance.__struct_fields__)

RESERVATION_COLUMNS = ", ".join(
    "points::text AS points" if name == "points" else name for name in Reservation.__struct_fields__
)

_SHOWN = {
    "points_delta": "points_delta::text AS points_delta",
    "available_after": "available_after::text AS available_after",
    "reserved_after": "reserved_after::text AS reserved_after",
    "metadata": "coalesce(metadata, json_build_object()) AS metadata",
}
ENTRY_COLUMNS = ", ".join(_SHOWN.get(name, name) for name in LedgerEntry.__struct_fields__)

WALLET_COLUMNS = """id, company_id, customer_id, available::text AS available_points, reserved::text AS reserved_points,
           lifetime_earned::text AS lifetime_earned_points, lifetime_burned::text AS lifetime_burned_points,
           version::text AS version, last_ledger_at, created_at, updated_at"""

# A wallet is as old as its customer, though it is stored at its first use. A concurrent delete of the customer waits
# for the lock, and then finds the wallet.
CREATE_WALLET = sql(
    """
    INSERT INTO loyalty_wallets (company_id, id, customer_id, created_at, updated_at)
    SELECT $1, $2, $3, created_at, created_at
      FROM customers
     WHERE company_id = $1 AND id = $3
       FOR KEY SHARE
        ON CONFLICT DO NOTHING"""
)

LOCK_WALLET = sql(
    f"SELECT {BALANCE_COLUMNS} FROM loyalty_wallets WHERE company_id = $1 AND id = $2 FOR NO KEY UPDATE", row=Balance
)

# Runs after the wallet is locked, so that it sees the previous writes and the current time. ORDER BY … LIMIT 1 finds
# the first lot by its index; EXISTS would scan all lots where one wallet has most of them.
GET_PROGRAM_STATE = sql(
    """
    SELECT t.now, coalesce(s.enabled, true) AS enabled, s.expiry_months,
           coalesce(s.reservation_ttl_seconds, 900) AS reservation_ttl_seconds,
           EXISTS (SELECT FROM customers WHERE company_id = $1 AND id = $3) AS has_customer,
           EXISTS (SELECT FROM loyalty_reservations
                    WHERE company_id = $1 AND wallet_id = $2 AND status = 'reserved' AND expires_at <= t.now)
        OR coalesce((SELECT expires_at FROM loyalty_lots
                      WHERE company_id = $1 AND wallet_id = $2 AND remaining > 0
                      ORDER BY expires_at, earned_at, id LIMIT 1) <= t.now, false) AS has_due
      FROM (SELECT date_trunc('milliseconds', clock_timestamp() + clock_offset) AS now
              FROM companies WHERE company_id = $1) AS t
      LEFT JOIN loyalty_settings s ON s.company_id = $1""",
    row=ProgramState,
)

# The wallet as after the settlement that the next write starts with: overdue reservations return their points, and the
# points of expired lots are gone.
_WALLETS = """
    SELECT w.id, w.company_id, w.customer_id,
           (w.available + due.returned - due.lapsed)::text AS available_points,
           (w.reserved - due.released)::text AS reserved_points,
           w.lifetime_earned::text AS lifetime_earned_points,
           (w.lifetime_burned + due.lapsed + due.released - due.returned)::text AS lifetime_burned_points,
           w.version::text AS version, w.last_ledger_at, w.created_at, w.updated_at
      FROM loyalty_wallets w
     CROSS JOIN (SELECT now() + clock_offset AS now FROM companies WHERE company_id = $1) AS t
     CROSS JOIN LATERAL (
           SELECT (SELECT coalesce(sum(remaining), 0) FROM loyalty_lots
                    WHERE company_id = $1 AND wallet_id = w.id AND remaining > 0 AND expires_at <= t.now) AS lapsed,
                  coalesce(sum(h.points), 0) AS released,
                  coalesce(sum(h.points) FILTER (WHERE (l.expires_at <= t.now) IS NOT TRUE), 0) AS returned
             FROM loyalty_reservations r
             JOIN loyalty_holds h ON h.company_id = $1 AND h.reservation_id = r.id
             JOIN loyalty_lots l ON l.company_id = $1 AND l.id = h.lot_id
            WHERE r.company_id = $1 AND r.wallet_id = w.id AND r.status = 'reserved' AND r.expires_at <= t.now) AS due
     WHERE w.company_id = $1"""

FIND_WALLET = sql(f"{_WALLETS} AND w.id = $2", row=Wallet)

LIST_WALLETS = sql(f"{_WALLETS} AND w.id = ANY($2::text[])", row=Wallet)


class ExpiredLot(Struct, frozen=True):
    id: str
    remaining: int


# Includes the lots that points were just returned to, so that all expire in the order of their expiry.
EXPIRED_LOTS = sql(
    """
    SELECT id, remaining
      FROM loyalty_lots
     WHERE company_id = $1 AND wallet_id = $2 AND (remaining > 0 OR held > 0) AND expires_at <= $3
       AND (remaining > 0 OR id = ANY($4))
     ORDER BY expires_at, earned_at, id
     LIMIT $5""",
    row=ExpiredLot,
)


class HeldLot(Struct, frozen=True):
    """One reservation's hold on one lot."""

    reservation_id: str
    lot_id: str
    points: int
    is_dead: bool


LIST_OPEN_HOLDS = sql(
    """
    SELECT r.id AS reservation_id, h.lot_id, h.points, coalesce(l.expires_at <= $3, false) AS is_dead
      FROM (SELECT id, expires_at FROM loyalty_reservations
             WHERE company_id = $1 AND wallet_id = $2 AND status = 'reserved' AND expires_at <= $4
             ORDER BY expires_at, id
             LIMIT $5) AS r
      JOIN loyalty_holds h ON h.company_id = $1 AND h.reservation_id = r.id
      JOIN loyalty_lots l ON l.company_id = $1 AND l.id = h.lot_id
     ORDER BY r.expires_at, r.id, h.lot_id""",
    row=HeldLot,
)

# What it holds, or what its commit spent: the same points of the same lots.
LIST_HELD = sql(
    """
    SELECT h.lot_id, h.points, coalesce(l.expires_at <= $3, false) AS is_dead
      FROM loyalty_holds h
      JOIN loyalty_lots l ON l.company_id = $1 AND l.id = h.lot_id
     WHERE h.company_id = $1 AND h.reservation_id = $2
     ORDER BY h.lot_id""",
    row=Portion,
)

# A few points usually come from a few lots: the first ones of the index.
FIRST_SPENDABLE = sql(
    """
    SELECT lot_id, LEAST(remaining, $4 - before)::bigint AS points, false AS is_dead
      FROM (SELECT id AS lot_id, remaining,
                   sum(remaining) OVER (ORDER BY expires_at, earned_at, id) - remaining AS before
              FROM (SELECT id, remaining, expires_at, earned_at
                      FROM loyalty_lots
                     WHERE company_id = $1 AND wallet_id = $2 AND remaining > 0
                       AND (expires_at IS NULL OR expires_at > $3)
                     ORDER BY expires_at, earned_at, id
                     LIMIT $5) AS first) AS queued
     WHERE before < $4
     ORDER BY before""",
    row=Portion,
)

# Soonest to expire first, then oldest first; with an order, that order's lots before all others.
SPENDABLE = sql(
    """
    SELECT lot_id, LEAST(remaining, $4 - before)::bigint AS points, false AS is_dead
      FROM (SELECT id AS lot_id, remaining, expires_at, earned_at, order_id,
                   sum(remaining) OVER (ORDER BY (order_id = $5) IS NOT TRUE, expires_at, earned_at, id) - remaining
                       AS before
              FROM loyalty_lots
             WHERE company_id = $1 AND wallet_id = $2 AND remaining > 0
               AND (expires_at IS NULL OR expires_at > $3)) AS queued
     WHERE before < $4
     ORDER BY before""",
    row=Portion,
)

# The parts of one statement do not see each other's rows: a new lot is stored whole, and its move does not change it.
STORE_LEDGER = sql(
    f"""
    WITH entered AS (
        INSERT INTO loyalty_entries (company_id, wallet_id, customer_id, id, seq, entry_type, available_delta,
                                     reserved_delta, available_after, reserved_after, reservation_id, occurred_at,
                                     reference_type, reference_id, note, metadata, idempotency_key, fingerprint,
                                     created_by_id, created_at)
        SELECT $1, $2, $3, id, seq, entry_type, available_delta, reserved_delta, available_after, reserved_after,
               reservation_id, occurred_at, reference_type, reference_id, note, metadata, idempotency_key,
               decode(fingerprint, 'hex'), created_by_id, $4
          FROM json_to_recordset($5) AS e (id text, seq bigint, entry_type text, available_delta bigint,
               reserved_delta bigint, available_after bigint, reserved_after bigint, reservation_id text,
               occurred_at timestamptz, reference_type text, reference_id text, note text, metadata json,
               idempotency_key text, fingerprint text, created_by_id bigint)
    ), granted AS (
        INSERT INTO loyalty_lots (company_id, wallet_id, id, order_id, granted, remaining, earned_at, expires_at)
        SELECT $1, $2, id, order_id, granted, granted, earned_at, $4 + make_interval(months => expiry_months)
          FROM json_to_recordset($6) AS l (id text, order_id text, granted bigint, earned_at timestamptz,
               expiry_months integer)
    ), moved AS (
        INSERT INTO loyalty_lot_moves (company_id, wallet_id, entry_id, lot_id, available_delta, reserved_delta)
        SELECT $1, $2, entry_id, lot_id, available_delta, reserved_delta
          FROM json_to_recordset($7) AS m (entry_id text, lot_id text, available_delta bigint, reserved_delta bigint)
    ), shifted AS (
        UPDATE loyalty_lots AS l
           SET remaining = l.remaining + m.available, held = l.held + m.reserved
          FROM (SELECT lot_id, sum(available_delta)::bigint AS available, sum(reserved_delta)::bigint AS reserved
                  FROM json_to_recordset($7) AS m (lot_id text, available_delta bigint, reserved_delta bigint)
                 GROUP BY lot_id) AS m
         WHERE l.company_id = $1 AND l.id = m.lot_id
    )
    UPDATE loyalty_wallets
       SET available = $8, reserved = $9, lifetime_earned = $10, lifetime_burned = $11, version = $12,
           last_ledger_at = $13, updated_at = GREATEST(updated_at, $4)
     WHERE company_id = $1 AND id = $2
    RETURNING {WALLET_COLUMNS}""",
    row=Wallet,
)

GET_STORED_WALLET = sql(f"SELECT {WALLET_COLUMNS} FROM loyalty_wallets WHERE company_id = $1 AND id = $2", row=Wallet)

INSERT_RESERVATION = sql(
    f"""
    WITH held AS (
        INSERT INTO loyalty_holds (company_id, reservation_id, lot_id, points)
        SELECT $1, $2, lot_id, points FROM unnest($11::text[], $12::bigint[]) AS h (lot_id, points)
    )
    INSERT INTO loyalty_reservations (company_id, id, wallet_id, customer_id, points, reference_type, reference_id,
                                      redemption_id, expires_at, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::timestamptz + make_interval(secs => $10), $9, $9)
    RETURNING {RESERVATION_COLUMNS}""",
    row=Reservation,
)

FIND_RESERVATION = sql(
    f"SELECT {RESERVATION_COLUMNS} FROM loyalty_reservations WHERE company_id = $1 AND id = $2", row=Reservation
)

CLOSE_RESERVATIONS = sql(
    f"""
    UPDATE loyalty_reservations
       SET status = $3, updated_at = GREATEST(updated_at, $4)
     WHERE company_id = $1 AND id = ANY($2) AND status = 'reserved'
    RETURNING {RESERVATION_COLUMNS}""",
    row=Reservation,
)


class KeyedEntry(LedgerEntry, frozen=True):
    """An entry with the fingerprint of its request."""

    fingerprint: bytes | None


FIND_BY_KEY = sql(
    f"SELECT {ENTRY_COLUMNS}, fingerprint FROM loyalty_entries WHERE company_id = $1 AND idempotency_key = $2",
    row=KeyedEntry,
)

_HISTORY = f"""
    SELECT {ENTRY_COLUMNS}
      FROM loyalty_entries
     WHERE company_id = $1 AND customer_id = $2 AND occurred_at < $3{{}}
     ORDER BY occurred_at DESC
     LIMIT $4"""

HISTORY = sql(_HISTORY.format(""), row=LedgerEntry)
HISTORY_ADDED = sql(_HISTORY.format(" AND points_delta > 0"), row=LedgerEntry)
HISTORY_DEDUCTED = sql(_HISTORY.format(" AND points_delta < 0"), row=LedgerEntry)

HISTORIES = {"all": HISTORY, "points_added": HISTORY_ADDED, "points_deducted": HISTORY_DEDUCTED}


async def find_wallet(db: Connection, company_id: int, wallet_id: str) -> Wallet | None:
    """The wallet now, with overdue lots and reservations counted as settled."""
    return await FIND_WALLET.find(db, company_id, wallet_id)


async def list_wallets(db: Connection, company_id: int, wallet_ids: Sequence[str]) -> list[Wallet]:
    return await LIST_WALLETS.all(db, company_id, list(wallet_ids))


async def get_stored_wallet(tx: Tx, company_id: int, wallet_id: str) -> Wallet:
    wallet = await GET_STORED_WALLET.find(tx, company_id, wallet_id)
    if wallet is None:
        raise NotFound
    return wallet


async def find_locked_wallet(tx: Tx, company_id: int, wallet_id: str, customer_id: str) -> Balance | None:
    """The customer's wallet, created at its first use and locked; None for a deleted customer who never had one."""
    balance = await LOCK_WALLET.find(tx, company_id, wallet_id)
    if balance is None:
        await CREATE_WALLET.run(tx, company_id, wallet_id, customer_id)
        balance = await LOCK_WALLET.find(tx, company_id, wallet_id)
    return balance


async def get_program_state(tx: Tx, company_id: int, wallet_id: str, customer_id: str) -> ProgramState:
    state = await GET_PROGRAM_STATE.find(tx, company_id, wallet_id, customer_id)
    if state is None:
        raise NotFound
    return state


async def list_expired_lots(
    tx: Tx, company_id: int, wallet_id: str, now: datetime, returned: Sequence[str], most: int | None = None
) -> dict[str, int]:
    """The remaining points of expired lots, in the order of their expiry; 0 for some of the `returned` ones."""
    lots = await EXPIRED_LOTS.all(tx, company_id, wallet_id, now, returned, most)
    return {lot.id: lot.remaining for lot in lots}


async def list_open_holds(
    tx: Tx, company_id: int, wallet_id: str, now: datetime, until: datetime, most: int | None = None
) -> dict[str, list[Portion]]:
    """What each open reservation holds that expires by `until`."""
    holds: dict[str, list[Portion]] = {}
    for hold in await LIST_OPEN_HOLDS.all(tx, company_id, wallet_id, now, until, most):
        holds.setdefault(hold.reservation_id, []).append(Portion(hold.lot_id, hold.points, hold.is_dead))
    return holds


async def list_held(tx: Tx, company_id: int, reservation_id: str, now: datetime) -> list[Portion]:
    return await LIST_HELD.all(tx, company_id, reservation_id, now)


async def list_spendable(
    tx: Tx, company_id: int, wallet_id: str, now: datetime, points: int, order_id: str | None
) -> list[Portion]:
    if order_id is None:
        portions = await FIRST_SPENDABLE.all(tx, company_id, wallet_id, now, points, FEW_LOTS)
        if sum(one.points for one in portions) == points:
            return portions
    return await SPENDABLE.all(tx, company_id, wallet_id, now, points, order_id)


async def store_ledger(tx: Tx, company_id: int, ledger: WalletLedger) -> Wallet:
    """Stores the new entries, and returns the wallet."""
    balance = ledger.balance
    wallet = await STORE_LEDGER.find(
        tx, company_id, balance.id, balance.customer_id, ledger.state.now, encode(ledger.new_entries),
        encode(ledger.new_lots), encode(ledger.moves), balance.available, balance.reserved, balance.lifetime_earned,
        balance.lifetime_burned, balance.version, balance.last_ledger_at,
    )  # fmt: skip
    if wallet is None:
        raise NotFound
    return wallet


async def insert_reservation(
    tx: Tx, company_id: int, id: str, balance: Balance, now: datetime, ttl_seconds: int, portions: Sequence[Portion],
    reference_type: str | None, reference_id: str | None, redemption_id: str | None,
) -> Reservation:  # fmt: skip
    reservation = await INSERT_RESERVATION.find(
        tx, company_id, id, balance.id, balance.customer_id, sum(one.points for one in portions), reference_type,
        reference_id, redemption_id, now, ttl_seconds, [one.lot_id for one in portions],
        [one.points for one in portions],
    )  # fmt: skip
    if reservation is None:
        raise NotFound
    return reservation


async def get_reservation(db: Connection, company_id: int, id: str) -> Reservation:
    reservation = await FIND_RESERVATION.find(db, company_id, id)
    if reservation is None:
        raise NotFound
    return reservation


async def close_reservations(
    tx: Tx, company_id: int, ids: Sequence[str], status: str, now: datetime
) -> list[Reservation]:
    """Returns the reservations that were still open."""
    return await CLOSE_RESERVATIONS.all(tx, company_id, ids, status, now)


async def find_by_key(tx: Tx, company_id: int, idempotency_key: str) -> KeyedEntry | None:
    return await FIND_BY_KEY.find(tx, company_id, idempotency_key)


async def list_entries(
    db: Connection, company_id: int, customer_id: str, which: str, limit: int, before: datetime
) -> list[LedgerEntry]:
    """Newest first, before an instant."""
    return await HISTORIES[which].all(db, company_id, customer_id, before, limit)
