"""The worker expires overdue lots and reservations."""

import time

import asyncpg
import structlog

from sapa.access import actions as access
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database
from sapa.loyalty import actions
from sapa.loyalty.expiry import queries
from sapa.loyalty.expiry.queries import DueWallet

BATCH = 1_000
MAX_PER_TRANSACTION = 500
"""How many overdue lots and reservations of a wallet one transaction settles."""

# Together with the wallet that is started last, a run ends before the worker stops it.
RUN_SECONDS = 12.0
TURN_SECONDS = 1.0

log = structlog.get_logger()


async def expire_overdue(database: Database) -> None:
    """The worker's job: settles wallet by wallet, the longest overdue first. A wallet whose turn is over before all is
    settled waits until the others had theirs."""
    deadline = time.monotonic() + RUN_SECONDS
    done: set[str] = set()
    waiting: set[str] = set()
    while time.monotonic() < deadline:
        async with database.connection() as db:
            due = await queries.list_due(db, BATCH, done | waiting)
        if not due and not waiting:
            return
        if not due:
            waiting = set()
        for wallet in due:
            if time.monotonic() > deadline:
                return
            (waiting if await _settle(database, wallet) else done).add(wallet.wallet_id)


async def _settle(database: Database, wallet: DueWallet) -> bool:
    """Whether more is left for another turn. An error in one wallet does not stop the others."""
    ends = time.monotonic() + TURN_SECONDS
    try:
        while time.monotonic() < ends:
            async with database.transaction() as tx:
                company = await access.get_company(tx, wallet.company_id)
                if await actions.settle_wallet(tx, company, wallet.customer_id, MAX_PER_TRANSACTION):
                    return False
    except asyncpg.LockNotAvailableError:
        return False  # another transaction holds the wallet for long; it settles it, or the next run does
    except DatabaseAway:
        raise
    except Exception:
        log.exception("wallet not settled", company_id=wallet.company_id, wallet_id=wallet.wallet_id)
        return False
    return True
