"""What the worker does for the ledger: expires what is overdue, and checks the wallets in turn."""

import time
from collections.abc import Collection

import asyncpg
import structlog
from msgspec import Struct

from sapa.access import actions as access
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Connection, Database
from sapa.db.sql import sql
from sapa.loyalty import actions
from sapa.loyalty.reconciliation import WalletBatch, get_window, list_drift

BATCH = 200
PORTION = 500
"""How many overdue lots and reservations of a wallet are settled at once."""
MOST_COMPANIES = 50

# With what is begun last, a run ends before the worker stops it.
EXPIRING_SECONDS = 12.0
TURN_SECONDS = 1.0
CHECKING_SECONDS = 7.0
ONE_CHECK_SECONDS = 15.0

log = structlog.get_logger()


class DueWallet(Struct, frozen=True):
    company_id: int
    wallet_id: str
    customer_id: str


# Without those that had their turn, so that one with very much to settle hides nobody else.
LIST_DUE = sql(
    """
    SELECT due.company_id, due.wallet_id, due.customer_id
      FROM companies c
     CROSS JOIN LATERAL (
           (SELECT l.company_id, l.wallet_id, w.customer_id, l.expires_at
              FROM loyalty_lots l
              JOIN loyalty_wallets w ON w.company_id = l.company_id AND w.id = l.wallet_id
             WHERE l.company_id = c.company_id AND l.remaining > 0 AND l.expires_at <= now() + c.clock_offset
               AND l.wallet_id <> ALL($2::text[])
             ORDER BY l.expires_at LIMIT $1)
           UNION ALL
           (SELECT r.company_id, r.wallet_id, r.customer_id, r.expires_at
              FROM loyalty_reservations r
             WHERE r.company_id = c.company_id AND r.status = 'reserved' AND r.expires_at <= now() + c.clock_offset
               AND r.wallet_id <> ALL($2::text[])
             ORDER BY r.expires_at LIMIT $1)) AS due
     GROUP BY due.company_id, due.wallet_id, due.customer_id
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
    """The worker's job: each wallet in transactions of its own, the longest overdue first. One with very much to
    settle lets the others go before when its turn is over."""
    ends = time.monotonic() + EXPIRING_SECONDS
    done: set[str] = set()
    waiting: set[str] = set()
    while time.monotonic() < ends:
        due = await _list_due(database, done | waiting)
        if not due and not waiting:
            return
        if not due:
            waiting = set()
        for wallet in due:
            if time.monotonic() > ends:
                return
            (waiting if await _settle(database, wallet) else done).add(wallet.wallet_id)


async def _list_due(database: Database, without: Collection[str]) -> list[DueWallet]:
    async with database.connection() as db:
        return await LIST_DUE.all(db, BATCH, list(without))


async def _settle(database: Database, wallet: DueWallet) -> bool:
    """Whether more is left for another turn; what stands in one wallet's way is not in the others'."""
    ends = time.monotonic() + TURN_SECONDS
    try:
        while time.monotonic() < ends:
            if await _settle_portion(database, wallet):
                return False
    except asyncpg.LockNotAvailableError:
        return False  # somebody is at it for long; they settle it, or the next run does
    except DatabaseAway:
        raise
    except Exception:
        log.exception("a wallet was not settled", company_id=wallet.company_id, wallet_id=wallet.wallet_id)
        return False
    return True


async def _settle_portion(database: Database, wallet: DueWallet) -> bool:
    """Whether nothing is left."""
    async with database.transaction() as tx:
        company = await access.get_company(tx, wallet.company_id)
        return await actions.settle_wallet(tx, company, wallet.customer_id, PORTION)


async def check_wallets(database: Database) -> None:
    """The worker's job: the next wallets of each company, so that in time all are checked and no check is long."""
    ends = time.monotonic() + CHECKING_SECONDS
    async with database.connection() as db:
        for company in await LIST_ROUNDS.all(db, MOST_COMPANIES):
            if time.monotonic() > ends:
                return
            await _check_next(db, company)


async def _check_next(db: Connection, company: Round) -> None:
    window = await get_window(db, company.company_id, company.position)
    found = company.found + await _count_drifting(db, company, window)
    position = "" if window.is_last else window.last_id
    await STORE_ROUND.run(db, company.company_id, position, 0 if window.is_last else found, found)


async def _count_drifting(db: Connection, company: Round, window: WalletBatch) -> int:
    """Wallets that cannot be checked are passed over: the round goes on, for this company and for the others."""
    try:
        drift = await list_drift(db, company.company_id, company.position, window, ONE_CHECK_SECONDS)
    except DatabaseAway:
        raise
    except Exception:
        log.exception("wallets were not checked", company_id=company.company_id, wallet_id=window.last_id)
        return 0
    return len({one.wallet_id for one in drift})
