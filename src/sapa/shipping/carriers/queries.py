"""SQL of the log of carriers' responses to bookings."""

from sapa.db.pool import Connection
from sapa.db.sql import sql

INSERT = sql(
    """
    INSERT INTO carrier_calls (company_id, connection_id, adapter, operation, reference, outcome, details)
    VALUES ($1, $2, $3, $4, $5, $6, $7)"""
)

COMPANIES_TO_PURGE = sql(
    "SELECT DISTINCT company_id FROM carrier_calls WHERE created_at < now() - make_interval(days => $1)",
    crosses="the worker looks for old answers over all companies, then deletes them company by company",
)

PURGE = sql(
    """
    DELETE FROM carrier_calls
     WHERE company_id = $1 AND id IN (
           SELECT id FROM carrier_calls
            WHERE company_id = $1 AND created_at < now() - make_interval(days => $2)
            ORDER BY created_at LIMIT $3)"""
)


async def insert_call(
    db: Connection, company_id: int, connection_id: str, adapter: str, operation: str, reference: str, outcome: str,
    details: bytes,
) -> None:  # fmt: skip
    await INSERT.run(db, company_id, connection_id, adapter, operation, reference, outcome, details)


async def purge_calls(db: Connection, days: int, at_once: int) -> None:
    """In small batches, so that no delete runs long."""
    for (company_id,) in await db.fetch(COMPANIES_TO_PURGE.text, days):
        while await PURGE.run(db, company_id, days, at_once) == at_once:
            pass
