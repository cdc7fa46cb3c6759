"""Reconciles the ledger with itself."""

from sapa.db.pool import Connection
from sapa.loyalty.reconciliation import queries
from sapa.loyalty.types import Drift, Reconciliation

BATCH = 500
MAX_ENTRIES = 20_000
"""Of all wallets of a batch together, unless the first has more."""
MAX_LISTED = 100
PATIENCE_SECONDS = 600.0


async def reconcile(db: Connection, company_id: int, seconds: float = PATIENCE_SECONDS) -> Reconciliation:
    """Checks all wallets of a company, batch by batch; each batch is one snapshot and takes at most `seconds`."""
    wallets = available = reserved = 0
    drift: list[Drift] = []
    drifting: set[str] = set()
    position: str | None = ""
    while position is not None:
        batch = await get_batch(db, company_id, position)
        found = await queries.list_drift(db, company_id, position, batch, seconds)
        wallets += batch.wallets
        available += batch.available
        reserved += batch.reserved
        drifting |= {one.wallet_id for one in found}
        drift += found[: MAX_LISTED - len(drift)]
        position = None if batch.is_last else batch.last_id
    return Reconciliation(wallets, str(available), str(reserved), len(drifting), drift)


async def find_check(db: Connection, company_id: int) -> queries.LedgerCheck | None:
    """The last check of all wallets."""
    return await queries.find_check(db, company_id)


async def get_batch(db: Connection, company_id: int, position: str) -> queries.WalletBatch:
    return await queries.get_batch(db, company_id, position, BATCH, MAX_ENTRIES)
