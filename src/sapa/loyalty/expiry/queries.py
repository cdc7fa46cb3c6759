"""Which wallets have overdue lots or reservations."""

from collections.abc import Collection

from msgspec import Struct

from sapa.db.pool import Connection
from sapa.db.sql import sql


class DueWallet(Struct, frozen=True):
    company_id: int
    wallet_id: str
    customer_id: str


# As in `db/due.py`: by the real time, and then for the few companies whose test clock was moved. All companies are
# named because the indexes begin with them; by a comparison with each company's clock, everything would be read.
_OVERDUE = """
           (SELECT company_id, wallet_id, expires_at
              FROM {table}
             WHERE company_id = ANY(ARRAY(SELECT company_id FROM companies)) AND {condition} AND expires_at <= now()
               AND wallet_id <> ALL($2::text[])
             ORDER BY expires_at LIMIT $1)
            UNION ALL
           (SELECT t.company_id, t.wallet_id, t.expires_at
              FROM {table} t
              JOIN companies c ON c.company_id = t.company_id
             WHERE c.clock_offset > interval '0' AND {condition} AND t.expires_at > now()
               AND t.expires_at <= now() + c.clock_offset AND t.wallet_id <> ALL($2::text[])
             ORDER BY t.expires_at LIMIT $1)"""

# Without the wallets that had their turn, so that one with much to settle does not hide the others.
LIST_DUE = sql(
    f"""
    SELECT due.company_id, due.wallet_id, w.customer_id
      FROM ({_OVERDUE.format(table="loyalty_lots", condition="remaining > 0")}
            UNION ALL{_OVERDUE.format(table="loyalty_reservations", condition="status = 'reserved'")}) AS due
      JOIN loyalty_wallets w ON w.company_id = due.company_id AND w.id = due.wallet_id
     GROUP BY due.company_id, due.wallet_id, w.customer_id
     ORDER BY min(due.expires_at)
     LIMIT $1""",
    row=DueWallet,
    crosses="the worker looks for due work over all companies, then settles wallet by wallet",
)


async def list_due(db: Connection, limit: int, without: Collection[str]) -> list[DueWallet]:
    """The longest overdue first."""
    return await LIST_DUE.all(db, limit, list(without))
