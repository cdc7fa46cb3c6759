"""Which wallets have overdue lots or reservations."""

from collections.abc import Collection

from msgspec import Struct

from sapa.db.pool import Connection
from sapa.db.sql import sql


class DueWallet(Struct, frozen=True):
    company_id: int
    wallet_id: str
    customer_id: str


# Without the wallets that had their turn, so that one with much to settle does not hide the others.
LIST_DUE = sql(
    """
    SELECT due.company_id, due.wallet_id, due.customer_id
      FROM ((SELECT l.company_id, l.wallet_id, w.customer_id, l.expires_at
               FROM loyalty_lots l
               JOIN loyalty_wallets w ON w.company_id = l.company_id AND w.id = l.wallet_id
               JOIN companies c ON c.company_id = l.company_id
              WHERE l.remaining > 0 AND l.expires_at <= now() + c.clock_offset AND l.wallet_id <> ALL($2::text[])
              ORDER BY l.expires_at LIMIT $1)
            UNION ALL
            (SELECT r.company_id, r.wallet_id, r.customer_id, r.expires_at
               FROM loyalty_reservations r
               JOIN companies c ON c.company_id = r.company_id
              WHERE r.status = 'reserved' AND r.expires_at <= now() + c.clock_offset AND r.wallet_id <> ALL($2::text[])
              ORDER BY r.expires_at LIMIT $1)) AS due
     GROUP BY due.company_id, due.wallet_id, due.customer_id
     ORDER BY min(due.expires_at)
     LIMIT $1""",
    row=DueWallet,
    crosses="the worker looks for due work over all companies, then settles wallet by wallet",
)


async def list_due(db: Connection, limit: int, without: Collection[str]) -> list[DueWallet]:
    """The longest overdue first."""
    return await LIST_DUE.all(db, limit, list(without))
