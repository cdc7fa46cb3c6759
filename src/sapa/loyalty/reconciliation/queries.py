"""The check of the ledger: every wallet computed again from its entries, lots and reservations."""

from msgspec import Struct

from sapa.db.pool import Connection
from sapa.db.sql import sql
from sapa.loyalty.types import WALLET_ID, Drift
from sapa.values.ids import CUSTOMER_ID

AFTER_ALL = "~"
"""Sorts after every wallet's id."""
GRACE_SECONDS = 5.0
"""PostgreSQL's own timeout comes first, so that the connection stays usable."""


class WalletBatch(Struct, frozen=True):
    """The next wallets, in the order of their ids."""

    wallets: int
    last_id: str | None
    available: int
    reserved: int
    is_last: bool

    @property
    def end(self) -> str:
        """The last batch extends past the last wallet, to find rows without a wallet."""
        return AFTER_ALL if self.is_last or self.last_id is None else self.last_id


NEXT_BATCH = sql(
    """
    SELECT count(*) FILTER (WHERE fits) AS wallets, max(id) FILTER (WHERE fits) AS last_id,
           coalesce(sum(available) FILTER (WHERE fits), 0)::bigint AS available,
           coalesce(sum(reserved) FILTER (WHERE fits), 0)::bigint AS reserved,
           count(*) < $3 AND coalesce(bool_and(fits), true) AS is_last
      FROM (SELECT id, available, reserved,
                   sum(GREATEST(version, 0)) OVER (ORDER BY id) - GREATEST(version, 0) < $4::bigint AS fits
              FROM (SELECT id, available, reserved, version FROM loyalty_wallets
                     WHERE company_id = $1 AND id > $2 ORDER BY id LIMIT $3::bigint) AS next) AS sized""",
    row=WalletBatch,
)

# The CTEs joined below have no index and no statistics. The planner takes them for small and uses nested loops: half a
# minute for five thousand entries. Only the holds are better looked up one by one. More work_mem, because sorting and
# hashing on disk takes several times as long.
PREPARE_CHECK = sql(
    """
    SELECT set_config('enable_nestloop', 'off', true), set_config('work_mem', '96MB', true),
           set_config('statement_timeout', $1, true)"""
)

# Each rule returns the numbers of every wallet that breaks it. Rules that a constraint enforces are not here: no lot
# with more than was granted, no key twice, no two entries of one customer at one instant.
FIND_DRIFT = sql(
    """
    WITH w AS (
        SELECT id, customer_id, available, reserved, lifetime_earned, version, last_ledger_at
          FROM loyalty_wallets
         WHERE company_id = $1 AND id > $2 AND id <= $3
    ), e AS (
        SELECT id, wallet_id, customer_id, seq, entry_type, available_delta, reserved_delta, points_delta,
               available_after, reserved_after, reservation_id, reference_id, occurred_at,
               row_number() OVER own AS place, lag(available_after, 1, 0::bigint) OVER own AS available_before,
               lag(reserved_after, 1, 0::bigint) OVER own AS reserved_before,
               lag(occurred_at, 1, '-infinity') OVER own AS occurred_before
          FROM loyalty_entries
         WHERE company_id = $1 AND wallet_id > $2 AND wallet_id <= $3
        WINDOW own AS (PARTITION BY wallet_id ORDER BY seq)
    ), l AS (
        SELECT id, wallet_id, remaining, held
          FROM loyalty_lots
         WHERE company_id = $1 AND wallet_id > $2 AND wallet_id <= $3
    ), m AS (
        SELECT entry_id, lot_id, available_delta, reserved_delta
          FROM loyalty_lot_moves
         WHERE company_id = $1 AND wallet_id > $2 AND wallet_id <= $3
    ), r AS (
        SELECT id, wallet_id, points, status, redemption_id
          FROM loyalty_reservations
         WHERE company_id = $1 AND wallet_id > $2 AND wallet_id <= $3
    ), h AS (
        SELECT h.lot_id, h.points, r.id AS reservation_id, r.wallet_id, r.status
          FROM r
         CROSS JOIN LATERAL (
               SELECT lot_id, points FROM loyalty_holds
                WHERE company_id = $1 AND reservation_id = r.id
               OFFSET 0) AS h
    ), of_entries AS (
        SELECT wallet_id, count(*) AS entries, max(occurred_at) AS last, sum(points_delta) AS points,
               sum(available_delta) AS available,
               sum(points_delta) FILTER (WHERE points_delta > 0 AND entry_type <> 'redeem_reversal'
                                            OR entry_type = 'earn_reversal') AS earned
          FROM e GROUP BY wallet_id
    ), of_lots AS (
        SELECT wallet_id, sum(remaining) AS remaining, sum(held) AS held FROM l GROUP BY wallet_id
    ), of_reservations AS (
        SELECT wallet_id, sum(points) AS points FROM r WHERE status = 'reserved' GROUP BY wallet_id
    ), p AS (
        SELECT wallet_id, order_id, posted
          FROM loyalty_order_positions
         WHERE company_id = $1 AND wallet_id > $2 AND wallet_id <= $3
    ), of_orders AS (
        SELECT wallet_id, reference_id AS order_id, sum(points_delta) AS points
          FROM e WHERE entry_type IN ('earn', 'earn_reversal') GROUP BY wallet_id, reference_id
    ), d AS (
        SELECT id, wallet_id, points_cost, status
          FROM loyalty_redemptions
         WHERE company_id = $1 AND wallet_id > $2 AND wallet_id <= $3
    ), closings AS (
        SELECT r.wallet_id, coalesce(string_agg(e.entry_type, '+' ORDER BY e.seq), '') AS found,
               CASE WHEN r.status = 'reserved' THEN '' WHEN r.status <> 'committed' THEN 'redeem_release'
                    WHEN d.status = 'failed' THEN 'redeem_commit+redeem_reversal' ELSE 'redeem_commit' END AS expected
          FROM r
          LEFT JOIN d ON d.id = r.redemption_id
          LEFT JOIN e ON e.reservation_id = r.id AND e.entry_type <> 'redeem_reserve'
         GROUP BY r.wallet_id, r.id, r.status, d.status
    ), totals AS (
        SELECT w.id, w.available, w.reserved, w.lifetime_earned, w.version, w.last_ledger_at,
               coalesce(of_lots.remaining, 0) AS lots_remaining, coalesce(of_lots.held, 0) AS lots_held,
               coalesce(of_reservations.points, 0) AS reservations_open,
               coalesce(of_entries.points, 0) AS entries_points,
               coalesce(of_entries.available, 0) AS entries_available,
               coalesce(of_entries.earned, 0) AS entries_earned,
               coalesce(of_entries.entries, 0) AS entries_count, of_entries.last AS entries_last
          FROM w
          LEFT JOIN of_entries ON of_entries.wallet_id = w.id
          LEFT JOIN of_lots ON of_lots.wallet_id = w.id
          LEFT JOIN of_reservations ON of_reservations.wallet_id = w.id
    ), drift AS (
        SELECT id AS wallet_id, 'available is the sum of the lots'' remaining points' AS rule,
               lots_remaining::text AS expected, available::text AS found
          FROM totals WHERE lots_remaining <> available
        UNION ALL
        SELECT id, 'available is the sum of the entries', entries_available::text, available::text
          FROM totals WHERE entries_available <> available
        UNION ALL
        SELECT id, 'reserved is the sum of the lots'' held points', lots_held::text, reserved::text
          FROM totals WHERE lots_held <> reserved
        UNION ALL
        SELECT id, 'reserved is the sum of the open reservations', reservations_open::text, reserved::text
          FROM totals WHERE reservations_open <> reserved
        UNION ALL
        SELECT id, 'credits minus debits are available plus reserved', entries_points::text,
               (available + reserved)::text
          FROM totals WHERE entries_points <> available + reserved
        UNION ALL
        SELECT id, 'lifetime earned is the sum of its entries', entries_earned::text, lifetime_earned::text
          FROM totals WHERE entries_earned <> lifetime_earned
        UNION ALL
        SELECT id, 'version is the number of entries', entries_count::text, version::text
          FROM totals WHERE entries_count <> version
        UNION ALL
        SELECT id, 'lastLedgerAt is the last entry''s occurredAt', entries_last::text, last_ledger_at::text
          FROM totals WHERE entries_last IS DISTINCT FROM last_ledger_at
        UNION ALL
        SELECT wallet_id, 'entries are numbered without gaps', place::text, seq::text
          FROM e WHERE place <> seq
        UNION ALL
        SELECT wallet_id, 'each occurredAt is later than the previous one', occurred_before::text, occurred_at::text
          FROM e WHERE occurred_at <= occurred_before
        UNION ALL
        SELECT wallet_id, 'availableAfter is the previous one plus the change',
               (available_before + available_delta)::text, available_after::text
          FROM e WHERE available_before + available_delta <> available_after
        UNION ALL
        SELECT wallet_id, 'reservedAfter is the previous one plus the change',
               (reserved_before + reserved_delta)::text, reserved_after::text
          FROM e WHERE reserved_before + reserved_delta <> reserved_after
        UNION ALL
        SELECT e.wallet_id, 'an entry is the sum of its lot moves', e.available_delta || '/' || e.reserved_delta,
               coalesce(sum(m.available_delta), 0) || '/' || coalesce(sum(m.reserved_delta), 0)
          FROM e LEFT JOIN m ON m.entry_id = e.id
         GROUP BY e.wallet_id, e.id, e.available_delta, e.reserved_delta
        HAVING (coalesce(sum(m.available_delta), 0), coalesce(sum(m.reserved_delta), 0))
               <> (e.available_delta, e.reserved_delta)
        UNION ALL
        SELECT l.wallet_id, 'a lot is the sum of its moves',
               coalesce(sum(m.available_delta), 0) || '/' || coalesce(sum(m.reserved_delta), 0),
               l.remaining || '/' || l.held
          FROM l LEFT JOIN m ON m.lot_id = l.id
         GROUP BY l.wallet_id, l.id, l.remaining, l.held
        HAVING (coalesce(sum(m.available_delta), 0), coalesce(sum(m.reserved_delta), 0)) <> (l.remaining, l.held)
        UNION ALL
        SELECT l.wallet_id, 'a lot holds what open reservations hold of it', coalesce(sum(h.points), 0)::text,
               l.held::text
          FROM l LEFT JOIN h ON h.lot_id = l.id AND h.status = 'reserved'
         GROUP BY l.wallet_id, l.id, l.held
        HAVING coalesce(sum(h.points), 0) <> l.held
        UNION ALL
        SELECT r.wallet_id, 'a reservation is the sum of its holds', coalesce(sum(h.points), 0)::text, r.points::text
          FROM r LEFT JOIN h ON h.reservation_id = r.id
         GROUP BY r.wallet_id, r.id, r.points
        HAVING coalesce(sum(h.points), 0) <> r.points
        UNION ALL
        SELECT wallet_id, 'a reservation is closed once, by the entries of its status', expected, found
          FROM closings WHERE expected <> found
        UNION ALL
        SELECT coalesce(r.wallet_id, d.wallet_id), 'a redemption''s status and points are its reservation''s',
               coalesce(r.status || '/' || r.points, ''), coalesce(d.status || '/' || d.points_cost, '')
          FROM (SELECT wallet_id, status, points, redemption_id FROM r WHERE redemption_id IS NOT NULL) AS r
          FULL JOIN d ON d.id = r.redemption_id
         WHERE (r.wallet_id, r.points) IS DISTINCT FROM (d.wallet_id, d.points_cost)
            OR r.status <> d.status AND (r.status NOT IN ('released', 'committed') OR d.status <> 'failed')
        UNION ALL
        SELECT coalesce(p.wallet_id, o.wallet_id), 'an order''s posted points are the sum of its entries',
               p.posted::text, coalesce(o.points, 0)::text
          FROM p
          FULL JOIN of_orders AS o ON o.wallet_id = p.wallet_id AND o.order_id = p.order_id
         WHERE coalesce(o.points, 0) IS DISTINCT FROM p.posted
        UNION ALL
        SELECT e.wallet_id, 'an entry has its wallet''s customer', w.customer_id, e.customer_id
          FROM e JOIN w ON w.id = e.wallet_id
         WHERE e.customer_id <> w.customer_id
        UNION ALL
        SELECT owned.wallet_id, 'every row belongs to an existing wallet', owned.wallet_id, ''
          FROM (SELECT wallet_id FROM of_entries UNION SELECT wallet_id FROM of_lots UNION SELECT wallet_id FROM r
                UNION SELECT wallet_id FROM d UNION SELECT wallet_id FROM p) AS owned
          LEFT JOIN w ON w.id = owned.wallet_id
         WHERE w.id IS NULL
    )
    SELECT drift.wallet_id, coalesce(w.customer_id, $4::text || substr(drift.wallet_id, $5)) AS customer_id, drift.rule,
           coalesce(drift.expected, '') AS expected, coalesce(drift.found, '') AS found
      FROM drift LEFT JOIN w ON w.id = drift.wallet_id
     ORDER BY drift.wallet_id, drift.rule""",
    row=Drift,
)


class LedgerCheck(Struct, frozen=True):
    """How many wallets drift, as the worker found in its last round, and when it last checked some."""

    drifting: int
    checked_at: str


FIND_CHECK = sql("SELECT drifting, checked_at FROM loyalty_checks WHERE company_id = $1", row=LedgerCheck)


class CheckProgress(Struct, frozen=True):
    """How far the check of a company's wallets has come."""

    company_id: int
    position: str
    found: int


LIST_ROUNDS = sql(
    """
    SELECT w.company_id, coalesce(k.position, '') AS position, coalesce(k.found, 0) AS found
      FROM (SELECT DISTINCT company_id FROM loyalty_wallets) AS w
      LEFT JOIN loyalty_checks k ON k.company_id = w.company_id
     ORDER BY k.checked_at NULLS FIRST
     LIMIT $1""",
    row=CheckProgress,
    crosses="the worker checks every company's wallets in turn",
)

STORE_ROUND = sql(
    """
    INSERT INTO loyalty_checks AS k (company_id, position, found, drifting, checked_at)
    VALUES ($1, $2, $3, $4, now())
        ON CONFLICT (company_id) DO UPDATE
       SET position = excluded.position, found = excluded.found, checked_at = excluded.checked_at,
           drifting = CASE WHEN excluded.position = '' THEN excluded.drifting
                           ELSE GREATEST(k.drifting, excluded.found) END
     WHERE k.company_id = $1"""
)


async def find_check(db: Connection, company_id: int) -> LedgerCheck | None:
    """None while no wallet was checked yet."""
    return await FIND_CHECK.find(db, company_id)


async def get_batch(db: Connection, company_id: int, position: str, max_wallets: int, max_entries: int) -> WalletBatch:
    """The next wallets after a position."""
    batch = await NEXT_BATCH.find(db, company_id, position, max_wallets, max_entries)
    if batch is None:
        raise AssertionError("this SELECT always returns a row")
    return batch


async def list_drift(db: Connection, company_id: int, position: str, batch: WalletBatch, seconds: float) -> list[Drift]:
    """The mismatches in a batch of wallets."""
    async with db.transaction():
        await PREPARE_CHECK.value(db, f"{seconds:.0f}s")
        return await FIND_DRIFT.all(
            db, company_id, position, batch.end, CUSTOMER_ID.prefix, len(WALLET_ID.prefix) + 1,
            seconds=seconds + GRACE_SECONDS,
        )  # fmt: skip


async def list_rounds(db: Connection, limit: int) -> list[CheckProgress]:
    return await LIST_ROUNDS.all(db, limit)


async def store_round(db: Connection, company_id: int, position: str | None, found: int, drifting: int) -> None:
    await STORE_ROUND.run(db, company_id, position, found, drifting)
