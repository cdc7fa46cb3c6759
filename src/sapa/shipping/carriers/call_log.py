"""What carriers answered to bookings, kept before anything else is, so that no transaction takes it along."""

from typing import Any

import msgspec
from msgspec import Struct

from sapa.db.pool import Database
from sapa.db.sql import sql
from sapa.shipping.carriers.calls import scrub
from sapa.shipping.carriers.interface import Connection

KEPT = frozenset(
    {
        "status",
        "order_no",
        "booking_id",
        "awb",
        "pickup_number",
        "payment_id",
        "tracking_url",
        "status_code",
        "price",
        "distance",
        "code",
        "reason",
    }
)
"""The only fields of an outcome that are written down: no people, no phone numbers, nothing of an account."""

INSERT = sql(
    """
    INSERT INTO carrier_calls (company_id, connection_id, adapter, operation, reference, outcome, details)
    VALUES ($1, $2, $3, $4, $5, $6, $7)"""
)

KEPT_DAYS = 90
FORGOTTEN_AT_ONCE = 5_000

COMPANIES_TO_FORGET = sql(
    """
    SELECT c.company_id
      FROM companies c
     WHERE EXISTS (SELECT FROM carrier_calls k
                    WHERE k.company_id = c.company_id AND k.created_at < now() - make_interval(days => $1))""",
    crosses="the worker looks for old answers over all companies, then forgets them company by company",
)

FORGET = sql(
    """
    DELETE FROM carrier_calls
     WHERE company_id = $1 AND id IN (
           SELECT id FROM carrier_calls
            WHERE company_id = $1 AND created_at < now() - make_interval(days => $2)
            ORDER BY created_at LIMIT $3)"""
)


async def record(
    database: Database, connection: Connection, operation: str, reference: str, outcome: Struct | BaseException
) -> None:
    """In a small transaction of its own, so that what fails afterwards does not take it along."""
    async with database.connection() as db:
        await INSERT.run(
            db, connection.company.id, connection.id, connection.adapter, operation, reference,
            type(outcome).__name__, msgspec.json.encode(build_details(connection, outcome)),
        )  # fmt: skip


def build_details(connection: Connection, outcome: Struct | BaseException) -> dict[str, Any]:
    if isinstance(outcome, BaseException):
        return {"reason": scrub(connection, str(outcome))}
    said = {
        name: value for name in KEPT & set(outcome.__struct_fields__) if (value := getattr(outcome, name)) is not None
    }
    return {name: scrub(connection, value) if isinstance(value, str) else value for name, value in sorted(said.items())}


async def forget_old(database: Database) -> None:
    """In small batches, so that nobody waits for a long delete."""
    async with database.connection() as db:
        for (company_id,) in await db.fetch(COMPANIES_TO_FORGET.text, KEPT_DAYS):
            while await FORGET.run(db, company_id, KEPT_DAYS, FORGOTTEN_AT_ONCE) == FORGOTTEN_AT_ONCE:
                pass
