"""The ledger held against itself: every wallet computed anew from its entries, lots and reservations."""

from msgspec import Struct

from sapa.db.pool import Connection
from sapa.db.sql import sql
from sapa.loyalty.types import Drift, Reconciliation

WINDOW = 500
MOST_LISTED = 100


class Window(Struct, frozen=True):
    """Some wallets, in the order of their ids."""

    wallets: int
    last_id: str | None
    available: int
    reserved: int


NEXT_WINDOW = sql(
    """
    SELECT count(*) AS wallets, max(id) AS last_id, coalesce(sum(available), 0)::bigint AS available,
           coalesce(sum(reserved), 0)::bigint AS reserved
      FROM (SELECT id, available, reserved FROM loyalty_wallets
             WHERE company_id = $1 AND id > $2 ORDER BY id LIMIT $3) AS next""",
    row=Window,
)

# Each rule gives the numbers of every wallet that it does not hold for. Rules that a constraint holds are not here:
# no lot with more than was granted, no key twice, no two entries of one customer at one instant.
FIND_DRIFT = sql(
    """
    WITH w AS (
        SELECT id, customer_id, available, reserved, lifetime_earned, version, last_ledger_at
          FROM loyalty_wallets
         WHERE company_id = $1 AND id > $2 AND id <= $3
    ), e AS (
        SELECT id, wallet_id, seq, entry_type, available_delta, reserved_delta, points_delta, available_after,
               reserved_after, reservation_id, reference_id, occurred_at,
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
        SELECT h.lot_id, h.points, h.reservation_id, r.wallet_id, r.status
          FROM loyalty_holds h JOIN r ON r.id = h.reservation_id
         WHERE h.company_id = $1
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
    ), d AS (
        SELECT id, wallet_id, points_cost, status
          FROM loyalty_redemptions
         WHERE company_id = $1 AND wallet_id > $2 AND wallet_id <= $3
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
        SELECT id, 'credits less debits are available and reserved', entries_points::text, (available + reserved)::text
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
        SELECT wallet_id, 'each occurredAt is later than the one before', occurred_before::text, occurred_at::text
          FROM e WHERE occurred_at <= occurred_before
        UNION ALL
        SELECT wallet_id, 'availableAfter is the one before and the change',
               (available_before + available_delta)::text, available_after::text
          FROM e WHERE available_before + available_delta <> available_after
        UNION ALL
        SELECT wallet_id, 'reservedAfter is the one before and the change',
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
        SELECT r.wallet_id, 'a reservation is closed once, and by the entry that its status tells',
               CASE r.status WHEN 'reserved' THEN '' WHEN 'committed' THEN 'redeem_commit' ELSE 'redeem_release' END,
               coalesce(string_agg(e.entry_type, '+') FILTER (WHERE e.entry_type <> 'redeem_reserve'), '')
          FROM r LEFT JOIN e ON e.reservation_id = r.id
         GROUP BY r.wallet_id, r.id, r.status
        HAVING coalesce(string_agg(e.entry_type, '+') FILTER (WHERE e.entry_type <> 'redeem_reserve'), '')
               <> CASE r.status WHEN 'reserved' THEN '' WHEN 'committed' THEN 'redeem_commit'
                                ELSE 'redeem_release' END
        UNION ALL
        SELECT coalesce(r.wallet_id, d.wallet_id), 'a redemption''s status and points are its reservation''s',
               coalesce(r.status || '/' || r.points, ''), coalesce(d.status || '/' || d.points_cost, '')
          FROM (SELECT wallet_id, status, points, redemption_id FROM r WHERE redemption_id IS NOT NULL) AS r
          FULL JOIN d ON d.id = r.redemption_id
         WHERE (r.wallet_id, r.status, r.points) IS DISTINCT FROM (d.wallet_id, d.status, d.points_cost)
        UNION ALL
        SELECT p.wallet_id, 'an order''s posted points are the sum of its entries', p.posted::text,
               coalesce(sum(e.points_delta), 0)::text
          FROM loyalty_order_positions p
          LEFT JOIN e ON e.reference_id = p.order_id AND e.entry_type IN ('earn', 'earn_reversal')
         WHERE p.company_id = $1 AND p.wallet_id > $2 AND p.wallet_id <= $3
         GROUP BY p.wallet_id, p.order_id, p.posted
        HAVING coalesce(sum(e.points_delta), 0) <> p.posted
    )
    SELECT drift.wallet_id, w.customer_id, drift.rule, coalesce(drift.expected, '') AS expected,
           coalesce(drift.found, '') AS found
      FROM drift JOIN w ON w.id = drift.wallet_id
     ORDER BY drift.wallet_id, drift.rule""",
    row=Drift,
)


async def reconcile(db: Connection, company_id: int) -> Reconciliation:
    """All wallets of a company, some hundreds at a time, each time in one snapshot."""
    wallets = available = reserved = 0
    drift: list[Drift] = []
    drifting: set[str] = set()
    position: str | None = ""
    while position is not None:
        window, found = await check_window(db, company_id, position)
        wallets += window.wallets
        available += window.available
        reserved += window.reserved
        drifting |= {one.wallet_id for one in found}
        drift += found[: MOST_LISTED - len(drift)]
        position = window.last_id
    return Reconciliation(wallets, str(available), str(reserved), len(drifting), drift)


async def check_window(db: Connection, company_id: int, position: str) -> tuple[Window, list[Drift]]:
    """The wallets behind a position, and what contradicts in them."""
    window = await NEXT_WINDOW.find(db, company_id, position, WINDOW)
    if window is None or window.last_id is None:
        return Window(0, None, 0, 0), []
    return window, await FIND_DRIFT.all(db, company_id, position, window.last_id)
