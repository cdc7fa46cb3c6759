"""Log of carriers' responses to bookings, written in a transaction of its own, so that a later rollback does not remove
it."""

from typing import Any

import msgspec
from msgspec import Struct

from sapa.db.pool import Database
from sapa.shipping.carriers import queries
from sapa.shipping.carriers.calls import scrub
from sapa.shipping.carriers.interface import CarrierAccount

LOGGED_FIELDS = frozenset(
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
"""The only fields of an outcome that are logged: no personal data, no credentials."""

RETENTION_DAYS = 90
PURGE_BATCH = 5_000


async def record(
    database: Database, connection: CarrierAccount, operation: str, reference: str, outcome: Struct | BaseException
) -> None:
    async with database.connection() as db:
        await queries.insert_call(
            db, connection.company.id, connection.id, connection.adapter, operation, reference,
            type(outcome).__name__, msgspec.json.encode(build_details(connection, outcome)),
        )  # fmt: skip


def build_details(connection: CarrierAccount, outcome: Struct | BaseException) -> dict[str, Any]:
    if isinstance(outcome, BaseException):
        return {"reason": scrub(connection, str(outcome))}
    fields = {
        name: value
        for name in LOGGED_FIELDS & set(outcome.__struct_fields__)
        if (value := getattr(outcome, name)) is not None
    }
    return {
        name: scrub(connection, value) if isinstance(value, str) else value for name, value in sorted(fields.items())
    }


async def purge_old(database: Database) -> None:
    """Deletes old entries."""
    async with database.connection() as db:
        await queries.purge_calls(db, RETENTION_DAYS, PURGE_BATCH)
