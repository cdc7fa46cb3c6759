"""What the worker does for the ledger: expires what is overdue, and checks the wallets in turn."""

import asyncpg
from msgspec import Struct

from sapa.access import actions as access
from sapa.db.pool import Database
from sapa.db.sql import sql
from sapa.loyalty import actions
from sapa.loyalty.reconciliation import WINDOW, check_window

BATCH = 200
MOST_BATCHES = 10
MOST_COMPANIES = 50


class DueWallet(Struct, frozen=True):
    company_id: int
    customer_id: str


LIST_DUE = sql(
    """
    SELECT due.company_id, due.customer_id
      FROM companies c
     CROSS JOIN LATERAL (
           (SELECT l.company_id, w.customer_id, l.expires_at
              FROM loyalty_lots l
              JOIN loyalty_wallets w ON w.company_id = l.company_id AND w.id = l.wallet_id
             WHERE l.company_id = c.company_id AND l.remaining > 0 AND l.expires_at <= now() + c.clock_offset
             ORDER BY l.expires_at LIMIT $1)
           UNION ALL
           (SELECT r.company_id, r.customer_id, r.expires_at
              FROM loyalty_reservations r
             WHERE r.company_id = c.company_id AND r.status = 'reserved' AND r.expires_at <= now() + c.clock_offset
             ORDER BY r.expires_at LIMIT $1)) AS due
     GROUP BY due.company_id, due.customer_id
     ORDER BY min(due.expires_at)
     LIMIT $1""",
    row=DueWallet,
    crosses="the worker looks for due work over all companies, then settles wallet by wallet",
)


class Round(Struct, frozen=True):
    """Where the checking of a company's wallets stands."""

    company_id: int
    position: str
    found: int


LIST_ROUNDS = sql(
    """
    SELECT c.company_id, coalesce(k.position, '') AS position, coalesce(k.found, 0) AS found
      FROM companies c
      LEFT JOIN loyalty_checks k ON k.company_id = c.company_id
     WHERE EXISTS (SELECT FROM loyalty_wallets w WHERE w.company_id = c.company_id)
     ORDER BY k.checked_at NULLS FIRST
     LIMIT $1""",
    row=Round,
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


async def expire_overdue(database: Database) -> None:
    """The worker's job: each wallet in a transaction of its own, the longest overdue first."""
    for _ in range(MOST_BATCHES):
        async with database.connection() as db:
            due = await LIST_DUE.all(db, BATCH)
        for wallet in due:
            await _settle(database, wallet)
        if len(due) < BATCH:
            return


async def _settle(database: Database, wallet: DueWallet) -> None:
    try:
        async with database.transaction() as tx:
            company = await access.get_company(tx, wallet.company_id)
            await actions.settle_wallet(tx, company, wallet.customer_id)
    except asyncpg.LockNotAvailableError:
        return  # somebody is at it for long; they settle it, or the next run does


async def check_wallets(database: Database) -> None:
    """The worker's job: the next wallets of each company, so that in time all are checked and no check is long."""
    async with database.connection() as db:
        for company in await LIST_ROUNDS.all(db, MOST_COMPANIES):
            window, drift = await check_window(db, company.company_id, company.position)
            found = company.found + len({one.wallet_id for one in drift})
            is_over = window.wallets < WINDOW
            position = "" if is_over else window.last_id
            await STORE_ROUND.run(db, company.company_id, position, 0 if is_over else found, found)
