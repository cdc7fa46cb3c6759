"""How the ledger is stored: wallets, entries, lots and reservations."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import compose, sql
from sapa.events import ANNOUNCED, RECORDED, EncodedEvents, RecordedEvents
from sapa.http.errors import NotFound
from sapa.loyalty.ledger import Balance, SpendableLot, WalletLedger, build_lot_changes
from sapa.loyalty.types import (
    LedgerEntry,
    Portion,
    ProgramState,
    Reservation,
    Wallet,
)
from sapa.timeline.statement_parts import build_recorded
from sapa.timeline.types import EncodedEntries
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

# A wallet is as old as its customer, though it is stored at its first use. A concurrent delete of the customer waits
# for the lock, and then finds the wallet. Missing wallets are created before any is locked: an insert waits for
# another one of the same wallet, out of the order in which wallets are locked.
CREATE_WALLETS = sql(
    """
    INSERT INTO loyalty_wallets (company_id, id, customer_id, created_at, updated_at)
    SELECT $1, w.id, c.id, c.created_at, c.created_at
      FROM unnest($2::text[], $3::text[]) AS w (id, customer_id)
      JOIN customers c ON c.company_id = $1 AND c.id = w.customer_id
     WHERE NOT EXISTS (SELECT FROM loyalty_wallets l WHERE l.company_id = $1 AND l.id = w.id)
     ORDER BY w.id
       FOR KEY SHARE OF c
        ON CONFLICT DO NOTHING"""
)

LOCK_WALLETS = sql(
    f"""
    SELECT {BALANCE_COLUMNS}
      FROM loyalty_wallets
     WHERE company_id = $1 AND id = ANY($2::text[])
     ORDER BY id
       FOR NO KEY UPDATE""",
    row=Balance,
)

LOCK_ALL_WALLETS = sql(
    f"""
    SELECT {BALANCE_COLUMNS}
      FROM loyalty_wallets
     WHERE company_id = $1 AND id = ANY($2::text[])
       AND (SELECT count(*) FROM loyalty_wallets WHERE company_id = $1 AND id = ANY($2::text[])) = cardinality($2)
     ORDER BY id
       FOR NO KEY UPDATE""",
    row=Balance,
)

# Runs after the wallets are locked, so that it sees the previous writes and the current time. ORDER BY … LIMIT 1 finds
# the first lot by its index; EXISTS would scan all lots where one wallet has most of them, and all customers where the
# planner expects few. The wallets come as JSON, because arrays are planned anew in each call.
LIST_PROGRAM_STATES = sql(
    """
    SELECT t.now, coalesce(s.enabled, true) AS enabled,
           t.now + make_interval(months => s.expiry_months) AS new_lots_expire_at,
           coalesce(s.reservation_ttl_seconds, 900) AS reservation_ttl_seconds,
           (SELECT id FROM customers WHERE company_id = $1 AND id = w.customer_id) IS NOT NULL AS has_customer,
           EXISTS (SELECT FROM loyalty_reservations
                    WHERE company_id = $1 AND wallet_id = w.id AND status = 'reserved' AND expires_at <= t.now)
        OR coalesce((SELECT expires_at FROM loyalty_lots
                      WHERE company_id = $1 AND wallet_id = w.id AND remaining > 0
                      ORDER BY expires_at, earned_at, id LIMIT 1) <= t.now, false) AS has_due
      FROM (SELECT date_trunc('milliseconds', clock_timestamp() + clock_offset) AS now
              FROM companies WHERE company_id = $1) AS t
      LEFT JOIN loyalty_settings s ON s.company_id = $1
     CROSS JOIN ROWS FROM (json_to_recordset($2::json) AS (id text, customer_id text))
                WITH ORDINALITY AS w (id, customer_id, place)
     ORDER BY w.place""",
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

# The first lots of each wallet, as many as cover the points; a few points usually come from a few lots.
SPENDABLE_LOTS = sql(
    """
    SELECT w.id AS wallet_id, l.id, l.remaining, l.expires_at, l.earned_at
      FROM json_to_recordset($2::json) AS w (id text, points numeric)
     CROSS JOIN LATERAL (
           SELECT id, remaining, expires_at, earned_at,
                  sum(remaining) OVER (ORDER BY expires_at, earned_at, id) - remaining AS before
             FROM (SELECT id, remaining, expires_at, earned_at
                     FROM loyalty_lots
                    WHERE company_id = $1 AND wallet_id = w.id AND remaining > 0
                      AND (expires_at IS NULL OR expires_at > $3)
                    ORDER BY expires_at, earned_at, id
                    LIMIT $4) AS first) AS l
     WHERE l.before < w.points
     ORDER BY w.id, l.before""",
    row=SpendableLot,
)

# The order's lots first, then soonest to expire first, then oldest first.
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


# The parts of one statement do not see each other's rows: a new lot is stored with what is left of it. The wallets and
# the older lots, which are there and locked, are changed by ON CONFLICT, because that finds each row by its key. A join
# reads all of the company's where the planner expects few: in a young table, or in a large company among small ones.
STORE_LEDGERS = compose(
    [
        """entered AS (
    INSERT INTO loyalty_entries (company_id, wallet_id, customer_id, id, seq, entry_type, available_delta,
                                 reserved_delta, available_after, reserved_after, reservation_id, occurred_at,
                                 reference_type, reference_id, note, metadata, idempotency_key, fingerprint,
                                 created_by_id, created_at)
    SELECT $1, wallet_id, customer_id, id, seq, entry_type, available_delta, reserved_delta, available_after,
           reserved_after, reservation_id, occurred_at, reference_type, reference_id, note, metadata,
           idempotency_key, decode(fingerprint, 'hex'), created_by_id, :now::timestamptz
      FROM json_to_recordset(:entries::json) AS e (wallet_id text, customer_id text, id text, seq bigint,
           entry_type text, available_delta bigint, reserved_delta bigint, available_after bigint,
           reserved_after bigint, reservation_id text, occurred_at timestamptz, reference_type text,
           reference_id text, note text, metadata json, idempotency_key text, fingerprint text,
           created_by_id bigint))""",
        """lots AS (
    INSERT INTO loyalty_lots AS l (company_id, wallet_id, id, order_id, granted, remaining, held, earned_at,
                                   expires_at)
    SELECT $1, wallet_id, id, order_id, granted, remaining, held, earned_at, expires_at
      FROM json_to_recordset(:new_lots::json) AS n (wallet_id text, id text, order_id text, granted bigint,
           remaining bigint, held bigint, earned_at timestamptz, expires_at timestamptz)
     UNION ALL
    SELECT $1, o.wallet_id, o.id, o.order_id, o.granted, o.remaining + m.available, o.held + m.reserved,
           o.earned_at, o.expires_at
      FROM json_to_recordset(:shifts::json) AS m (id text, available bigint, reserved bigint)
     CROSS JOIN LATERAL (
           SELECT wallet_id, id, order_id, granted, remaining, held, earned_at, expires_at
             FROM loyalty_lots WHERE company_id = $1 AND id BETWEEN m.id AND m.id ORDER BY id LIMIT 1) AS o
        ON CONFLICT (company_id, id) DO UPDATE SET remaining = excluded.remaining, held = excluded.held)""",
        """moved AS (
    INSERT INTO loyalty_lot_moves (company_id, wallet_id, entry_id, lot_id, available_delta, reserved_delta)
    SELECT $1, wallet_id, entry_id, lot_id, available_delta, reserved_delta
      FROM json_to_recordset(:moves::json) AS m (wallet_id text, entry_id text, lot_id text, available_delta bigint,
           reserved_delta bigint))""",
        """wallets AS (
    INSERT INTO loyalty_wallets AS w (company_id, id, customer_id, available, reserved, lifetime_earned,
                                      lifetime_burned, version, last_ledger_at, created_at, updated_at)
    SELECT $1, id, customer_id, available, reserved, lifetime_earned, lifetime_burned, version, last_ledger_at,
           :now::timestamptz, :now::timestamptz
      FROM json_to_recordset(:balances::json) AS b (id text, customer_id text, available bigint, reserved bigint,
           lifetime_earned bigint, lifetime_burned bigint, version bigint, last_ledger_at timestamptz)
        ON CONFLICT (company_id, id) DO UPDATE
       SET available = excluded.available, reserved = excluded.reserved, lifetime_earned = excluded.lifetime_earned,
           lifetime_burned = excluded.lifetime_burned, version = excluded.version,
           last_ledger_at = excluded.last_ledger_at, updated_at = GREATEST(w.updated_at, excluded.updated_at))""",
        build_recorded(":timeline"),
        ANNOUNCED,
        RECORDED,
    ],
    "SELECT EXISTS (SELECT FROM deliveries) AS has_deliveries",
    row=RecordedEvents,
)

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


LIST_BY_KEY = sql(
    f"""
    SELECT {ENTRY_COLUMNS}, fingerprint
      FROM loyalty_entries
     WHERE company_id = $1 AND idempotency_key = ANY($2::text[])""",
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


async def create_wallets(tx: Tx, company_id: int, wallets: Mapping[str, str]) -> None:
    """For the customers that have none; a deleted customer gets none."""
    await CREATE_WALLETS.run(tx, company_id, list(wallets), list(wallets.values()))


async def lock_wallets(tx: Tx, company_id: int, wallet_ids: Sequence[str]) -> list[Balance]:
    """In the order of their ids, so that two transactions never wait for each other."""
    return await LOCK_WALLETS.all(tx, company_id, wallet_ids)


async def lock_all_wallets(tx: Tx, company_id: int, wallet_ids: Sequence[str]) -> list[Balance]:
    """Like `lock_wallets`; locks and returns none unless all exist."""
    return await LOCK_ALL_WALLETS.all(tx, company_id, wallet_ids)


async def list_program_states(tx: Tx, company_id: int, balances: Sequence[Balance]) -> list[ProgramState]:
    """One for each locked wallet, all of one instant."""
    wallets = [{"id": one.id, "customer_id": one.customer_id} for one in balances]
    return await LIST_PROGRAM_STATES.all(tx, company_id, encode(wallets))


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


async def list_spendable_lots(
    tx: Tx, company_id: int, now: datetime, points: Mapping[str, int]
) -> dict[str, list[SpendableLot]]:
    """By wallet, the first lots that cover its points."""
    found = await _list_first_lots(tx, company_id, now, points, FEW_LOTS)
    if more := {id: points[id] for id, lots in found.items() if len(lots) == FEW_LOTS}:
        found |= await _list_first_lots(tx, company_id, now, more, None)
    return found


async def _list_first_lots(
    tx: Tx, company_id: int, now: datetime, points: Mapping[str, int], most: int | None
) -> dict[str, list[SpendableLot]]:
    found: dict[str, list[SpendableLot]] = {id: [] for id in points}
    wallets = [{"id": id, "points": needed} for id, needed in points.items()]
    for lot in await SPENDABLE_LOTS.all(tx, company_id, encode(wallets), now, most):
        found[lot.wallet_id].append(lot)
    return found


async def list_spendable_of_order(
    tx: Tx, company_id: int, wallet_id: str, now: datetime, points: int, order_id: str
) -> list[Portion]:
    return await SPENDABLE.all(tx, company_id, wallet_id, now, points, order_id)


async def store_ledgers(
    tx: Tx, company_id: int, now: datetime, ledgers: Sequence[WalletLedger], timeline: EncodedEntries,
    events: EncodedEvents,
) -> bool:  # fmt: skip
    """Stores the new entries of ledgers that were opened together, with what they announce. Returns whether there are
    webhooks to deliver."""
    moves = [move for ledger in ledgers for move in ledger.moves]
    new_lots, shifts = build_lot_changes([lot for ledger in ledgers for lot in ledger.new_lots], moves)
    values = {
        "now": now,
        "entries": encode([entry for ledger in ledgers for entry in ledger.new_entries]),
        "new_lots": encode(new_lots),
        "moves": encode(moves),
        "shifts": encode(shifts),
        "balances": encode([ledger.balance for ledger in ledgers if ledger.new_entries]),
        "timeline": timeline.document,
        **events.name_values(),
    }
    (stored,) = await STORE_LEDGERS.all(tx, company_id, *STORE_LEDGERS.order(values))
    return stored.has_deliveries


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


async def list_by_key(tx: Tx, company_id: int, idempotency_keys: Sequence[str]) -> list[KeyedEntry]:
    return await LIST_BY_KEY.all(tx, company_id, idempotency_keys)


async def list_entries(
    db: Connection, company_id: int, customer_id: str, which: str, limit: int, before: datetime
) -> list[LedgerEntry]:
    """Newest first, before an instant."""
    return await HISTORIES[which].all(db, company_id, customer_id, before, limit)
