"""A long ledger, made inside the database as the product would have written it: a lot is earned, a part of it is
reserved and committed and the rest deducted, again and again. It adds up, so its reconciliation finds nothing."""

from msgspec import Struct

from bench.loyalty.owner import Connection

CYCLE = 4

WALLET = """
    INSERT INTO loyalty_wallets (company_id, id, customer_id, available, reserved, lifetime_earned, lifetime_burned,
                                 version, last_ledger_at, created_at, updated_at)
    VALUES ($1, $2, $3, 0, 0, $4 / 4 * 10, $4 / 4 * 10, $4, $5, $5, $5)"""

_NUMBERED = "lpad(to_hex({}), 8, '0') || left(md5($2::text || {}), 16)"
_ROUND = _NUMBERED.format("n / 4", "n / 4")

ENTRIES = f"""
    INSERT INTO loyalty_entries (company_id, id, wallet_id, customer_id, seq, entry_type, available_delta,
                                 reserved_delta, available_after, reserved_after, reservation_id, reference_type,
                                 note, occurred_at, created_at)
    SELECT $1, 'led_01' || {_NUMBERED.format("n", "n")}, $2, $3, n + 1,
           (ARRAY['adjust_add', 'redeem_reserve', 'redeem_commit', 'adjust_deduct'])[n % 4 + 1],
           (ARRAY[10, -4, 0, -6])[n % 4 + 1], (ARRAY[0, 4, -4, 0])[n % 4 + 1],
           (ARRAY[10, 6, 6, 0])[n % 4 + 1], (ARRAY[0, 4, 0, 0])[n % 4 + 1],
           CASE WHEN n % 4 IN (1, 2) THEN 'rsv_01' || {_ROUND} END, 'api', 'Goodwill', at, at
      FROM (SELECT n, $5::timestamptz - ($4 - 1 - n) * interval '1 second' AS at
              FROM generate_series(0, $4::bigint - 1) AS n) AS numbered"""

MOVES = f"""
    INSERT INTO loyalty_lot_moves (company_id, entry_id, lot_id, wallet_id, available_delta, reserved_delta)
    SELECT $1, 'led_01' || {_NUMBERED.format("n", "n")}, 'lot_01' || {_ROUND}, $2,
           (ARRAY[10, -4, 0, -6])[n % 4 + 1], (ARRAY[0, 4, -4, 0])[n % 4 + 1]
      FROM generate_series(0, $3::bigint - 1) AS n"""

LOTS = f"""
    INSERT INTO loyalty_lots (company_id, id, wallet_id, granted, remaining, held, earned_at)
    SELECT $1, 'lot_01' || {_ROUND}, $2, 10, 0, 0, $4::timestamptz - ($3 - 1 - n) * interval '1 second'
      FROM generate_series(0, $3::bigint - 1, 4) AS n"""

RESERVATIONS = f"""
    INSERT INTO loyalty_reservations (company_id, id, wallet_id, customer_id, points, status, expires_at, created_at,
                                      updated_at)
    SELECT $1, 'rsv_01' || {_ROUND}, $2, $3, 4, 'committed', $5::timestamptz, $5, $5
      FROM generate_series(0, $4::bigint - 1, 4) AS n"""

HOLDS = f"""
    INSERT INTO loyalty_holds (company_id, reservation_id, lot_id, points)
    SELECT $1, 'rsv_01' || {_ROUND}, 'lot_01' || {_ROUND}, 4 FROM generate_series(0, $3::bigint - 1, 4) AS n"""

NOW = "SELECT date_trunc('milliseconds', now())"
INSTANT = """
    SELECT to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
      FROM loyalty_entries WHERE company_id = $1 AND customer_id = $2 AND seq = $3"""


class LongLedger(Struct, frozen=True):
    customer_id: str
    entries: int
    middle: str
    """An instant with half of the entries before it."""
    last: str
    """One with so few before it that they are the last page, under every filter."""


async def seed_ledger(db: Connection, company_id: int, customer_id: str, entries: int) -> LongLedger:
    wallet_id = customer_id.replace("cust_", "wal_")
    number = entries // CYCLE * CYCLE
    now = await db.fetchval(NOW)
    async with db.transaction():
        await db.execute(WALLET, company_id, wallet_id, customer_id, number, now)
        await db.execute(ENTRIES, company_id, wallet_id, customer_id, number, now)
        await db.execute(MOVES, company_id, wallet_id, number)
        await db.execute(LOTS, company_id, wallet_id, number, now)
        await db.execute(RESERVATIONS, company_id, wallet_id, customer_id, number, now)
        await db.execute(HOLDS, company_id, wallet_id, number)
    middle = await db.fetchval(INSTANT, company_id, customer_id, number // 2)
    last = await db.fetchval(INSTANT, company_id, customer_id, 21)
    return LongLedger(customer_id, number, middle, last)


TIMELINE = f"""
    INSERT INTO timeline_entries (company_id, id, customer_id, category, type, source, edit_log, created_at, updated_at)
    SELECT $1, 'tl_01' || {_NUMBERED.format("n", "n")}, $2, 'loyalty', 'points_adjusted', 'api', 'points: + 10',
           at, at
      FROM (SELECT n, now() - n * interval '1 second' AS at FROM generate_series(1, $3::bigint) AS n) AS numbered"""


async def seed_timeline(db: Connection, company_id: int, customer_id: str, entries: int) -> None:
    await db.execute(TIMELINE, company_id, customer_id, entries)
