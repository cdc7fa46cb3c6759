"""Queries for business hours."""

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.support.business_hours.types import BusinessHours

COLUMNS = ", ".join(BusinessHours.__struct_fields__)

FIND = sql(f"SELECT {COLUMNS} FROM business_hours WHERE company_id = $1", row=BusinessHours)

SET = sql(
    f"""
    INSERT INTO business_hours AS h (company_id, time_zone, weekly, holidays) VALUES ($1, $2, $3, $4)
        ON CONFLICT (company_id) DO UPDATE
       SET time_zone = excluded.time_zone, weekly = excluded.weekly, holidays = excluded.holidays,
           updated_at = excluded.updated_at
     WHERE h.company_id = $1
    RETURNING {COLUMNS}""",
    row=BusinessHours,
)


async def find_hours(db: Connection, company_id: int) -> BusinessHours | None:
    return await FIND.find(db, company_id)


async def set_hours(tx: Tx, company_id: int, time_zone: str, weekly: bytes, holidays: bytes) -> BusinessHours:
    stored = await SET.find(tx, company_id, time_zone, weekly, holidays)
    assert stored is not None  # noqa: S101 - the row is inserted or updated
    return stored
