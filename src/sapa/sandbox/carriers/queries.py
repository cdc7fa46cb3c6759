"""SQL of the simulated carriers' bookings."""

from datetime import datetime

from msgspec import Raw, Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql

_COLUMNS = "adapter, reference, order_no, awb, scenario, asked, steps, booked_at, requests"


class SimulatedBookingRow(Struct, frozen=True):
    adapter: str
    reference: str
    order_no: str
    awb: str
    scenario: str | None
    asked: Raw
    steps: Raw
    booked_at: datetime
    requests: int


NOW = sql(
    "SELECT clock_timestamp() + clock_offset AS now FROM companies WHERE company_id = $1 AND environment = 'test'",
    row=datetime,
)

INSERT = sql(
    """
    INSERT INTO sandbox_bookings (company_id, adapter, reference, order_no, awb, scenario, asked, steps, booked_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT ON CONSTRAINT sandbox_bookings_pkey DO NOTHING"""
)

COUNT_REQUEST = sql(
    "UPDATE sandbox_bookings SET requests = requests + 1 WHERE company_id = $1 AND adapter = $2 AND reference = $3"
)

FIND = sql(
    f"""
    SELECT {_COLUMNS}
      FROM sandbox_bookings
     WHERE company_id = $1 AND adapter = $2 AND (reference = $3 OR order_no = $3 OR awb = $3)""",
    row=SimulatedBookingRow,
)

LOCK = sql(FIND.text + "\n       FOR UPDATE", row=SimulatedBookingRow)

LIST = sql(f"SELECT {_COLUMNS} FROM sandbox_bookings WHERE company_id = $1 ORDER BY booked_at", row=SimulatedBookingRow)

SET_STEPS = sql("UPDATE sandbox_bookings SET steps = $4 WHERE company_id = $1 AND adapter = $2 AND reference = $3")

DROP_WAITING = sql(
    """
    DELETE FROM sandbox_callbacks
     WHERE company_id = $1 AND headers->>'x-sandbox-booking' = $2 AND due_at > $3"""
)

COMPANIES_TO_PURGE = sql(
    "SELECT DISTINCT company_id FROM sandbox_bookings WHERE booked_at < now() - make_interval(days => $1)",
    crosses="the worker looks for old bookings over all test environments, then deletes them company by company",
)

PURGE = sql("DELETE FROM sandbox_bookings WHERE company_id = $1 AND booked_at < now() - make_interval(days => $2)")


async def get_now(db: Connection, company_id: int) -> datetime:
    now = await NOW.find(db, company_id)
    if now is None:
        raise LookupError("not a test environment")
    return now


async def insert_booking(
    tx: Tx, company_id: int, adapter: str, reference: str, order_no: str, awb: str, scenario: str | None,
    asked: bytes, steps: bytes, booked_at: datetime,
) -> bool:  # fmt: skip
    """False if the reference was booked before."""
    inserted = await INSERT.run(tx, company_id, adapter, reference, order_no, awb, scenario, asked, steps, booked_at)
    return inserted > 0


async def count_request(tx: Tx, company_id: int, adapter: str, reference: str) -> None:
    await COUNT_REQUEST.run(tx, company_id, adapter, reference)


async def find_booking(db: Connection, company_id: int, adapter: str, key: str) -> SimulatedBookingRow | None:
    return await FIND.find(db, company_id, adapter, key)


async def find_locked_booking(tx: Tx, company_id: int, adapter: str, key: str) -> SimulatedBookingRow | None:
    return await LOCK.find(tx, company_id, adapter, key)


async def list_bookings(db: Connection, company_id: int) -> list[SimulatedBookingRow]:
    return await LIST.all(db, company_id)


async def set_steps(tx: Tx, company_id: int, adapter: str, reference: str, steps: bytes) -> None:
    await SET_STEPS.run(tx, company_id, adapter, reference, steps)


async def drop_waiting(tx: Tx, company_id: int, mark: str, now: datetime) -> None:
    """Deletes callbacks that have not been posted yet."""
    await DROP_WAITING.run(tx, company_id, mark, now)


async def purge_bookings(db: Connection, days: int) -> None:
    for (company_id,) in await db.fetch(COMPANIES_TO_PURGE.text, days):
        await PURGE.run(db, company_id, days)
