"""SQL of booking attempts, from the intent to the outcome."""

from sapa.db.due import (
    TEST_CLOCKS,
    WORKER,
    add_interval,
    build_clock,
    build_due,
    build_in_turn,
    build_in_turn_of_shards,
    build_next_due,
    build_take,
)
from sapa.db.planning import is_sharded
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.shipping.bookings.types import BookingAttempt, DueAttempt
from sapa.shipping.carriers.interface import Booked
from sapa.shipping.shipments.types import DueShipment

LEASE_SECONDS = 15.0
"""How long the process that stored an intent has to start sending it, before the worker does."""
SENDING_SECONDS = 60.0
"""How long sending may take, before the worker treats the outcome as unknown."""


# The time of the company that owns the row.
_COLUMNS = ", ".join(f"b.{name}" for name in BookingAttempt.__struct_fields__ if name != "age")
_NOW = "(SELECT statement_timestamp() + clock_offset FROM companies WHERE company_id = $1)"
_AGE = f"coalesce(extract(epoch FROM {_NOW} - b.sent_at), 0)::float8 AS age"

INSERT = sql(
    f"""
    INSERT INTO shipment_bookings AS b (company_id, shipment_id, number, reference, adapter, state, due_at)
    SELECT $1, $2, coalesce(max(number), 0) + 1, $3, $4, 'pending', {_NOW} + make_interval(secs => $5)
      FROM shipment_bookings
     WHERE company_id = $1 AND shipment_id = $2
    RETURNING {_COLUMNS}, 0::float8 AS age""",
    row=BookingAttempt,
)

CLOSE = sql(
    """
    UPDATE shipment_bookings SET state = 'closed', due_at = NULL
     WHERE company_id = $1 AND shipment_id = $2 AND state = 'succeeded'"""
)

# Committed before the request is sent: only one process can do it, once.
CLAIM = sql(
    f"""
    UPDATE shipment_bookings
       SET state = 'sent', sends = sends + 1, sent_at = clock.now, due_at = clock.later
      FROM {build_clock("make_interval(secs => $4)")}
     WHERE company_id = $1 AND shipment_id = $2 AND number = $3 AND state = 'pending'"""
)

# The request never left.
UNCLAIM = sql(
    f"""
    UPDATE shipment_bookings SET state = 'pending', due_at = clock.later
      FROM {build_clock("make_interval(secs => $4)")}
     WHERE company_id = $1 AND shipment_id = $2 AND number = $3 AND state = 'sent'"""
)

RECORD_RESPONSE = sql(
    """
    UPDATE shipment_bookings
       SET order_no = coalesce($4, order_no), awb = coalesce($5, awb), booking_id = coalesce($6, booking_id)
     WHERE company_id = $1 AND shipment_id = $2 AND number = $3"""
)

SETTLE = sql(
    f"""
    UPDATE shipment_bookings
       SET state = $4, error = $5, resolved_by = $6, due_at = clock.later
      FROM {build_clock("make_interval(secs => $7)")}
     WHERE company_id = $1 AND shipment_id = $2 AND number = $3"""
)

GET = sql(
    f"SELECT {_COLUMNS}, {_AGE} FROM shipment_bookings b WHERE company_id = $1 AND shipment_id = $2 AND number = $3",
    row=BookingAttempt,
)

FIND_BY_REFERENCE = sql(
    f"SELECT {_COLUMNS}, {_AGE} FROM shipment_bookings b WHERE company_id = $1 AND reference = $2",
    row=BookingAttempt,
)

FIND_BY_ORDER_NO = sql(
    f"""
    SELECT {_COLUMNS}, {_AGE} FROM shipment_bookings b
     WHERE company_id = $1 AND adapter = $2 AND order_no = $3
     ORDER BY created_at DESC LIMIT 1""",
    row=BookingAttempt,
)

# An awb may be stored with the shipment only.
FIND_BY_SHIPMENT_NUMBERS = sql(
    f"""
    SELECT {_COLUMNS}, {_AGE} FROM shipment_bookings b
     WHERE company_id = $1
       AND reference = (SELECT s.reference FROM shipments s
                         WHERE s.company_id = $1 AND s.adapter = $2 AND (s.order_no = $3 OR s.awb = $4)
                         ORDER BY s.created_at DESC LIMIT 1)""",
    row=BookingAttempt,
)

# Leased, so that no other worker processes it. A sent_at from which the clock was set back counts as now.
LEASE = sql(
    f"""
    UPDATE shipment_bookings b
       SET due_at = clock.later, sent_at = LEAST(sent_at, clock.now)
      FROM {build_clock("make_interval(secs => $4)")}
     WHERE company_id = $1 AND shipment_id = $2 AND number = $3 AND due_at <= clock.now
    RETURNING {_COLUMNS}, coalesce(extract(epoch FROM clock.now - b.sent_at), 0)::float8 AS age""",
    row=BookingAttempt,
)

RECORD_LOOKUP = sql(
    f"""
    UPDATE shipment_bookings
       SET looks = looks + 1, not_found = not_found + $4::int, error = $5,
           due_at = CASE WHEN $6::float8 IS NULL THEN NULL
                         ELSE GREATEST({add_interval("sent_at", "make_interval(secs => $6)")}, clock.now) END
      FROM {build_clock()}
     WHERE company_id = $1 AND shipment_id = $2 AND number = $3"""
)

MAKE_DUE = sql(
    f"""
    UPDATE shipment_bookings SET due_at = clock.now
      FROM {build_clock()}
     WHERE company_id = $1 AND shipment_id = $2 AND number = $3 AND state IN ('unknown', 'failed')"""
)

REOPEN = sql(
    f"""
    UPDATE shipment_bookings
       SET state = 'unwanted', looks = 0, due_at = clock.now,
           order_no = coalesce(order_no, $4), awb = coalesce(awb, $5)
      FROM {build_clock()}
     WHERE company_id = $1 AND shipment_id = $2 AND number = $3 AND state IN ('closed', 'failed')"""
)


LIST_DUE = sql(
    build_due("shipment_bookings", "shipment_id, number", "due_at"),
    row=DueAttempt,
    crosses="the worker looks for bookings to look after over all companies, then takes them one by one",
)

LIST_DUE_IN_TURN = sql(
    build_in_turn("shipment_bookings", "shipment_id, number", "due_at"),
    row=DueAttempt,
    crosses="the worker takes bookings from every company in turn, then looks after them one by one",
)

LIST_DUE_OF_SHARDS = sql(
    build_in_turn_of_shards("shipment_bookings", "shipment_id, number", "due_at"),
    row=DueAttempt,
    crosses="the worker takes bookings from every company in turn, then looks after them one by one",
)

NEXT_BOOKINGS = sql(
    f"""
    SELECT LEAST(({build_next_due("shipment_bookings", "due_at")}),
                 ({build_next_due("shipments", "cancel_due_at")}))""",
    crosses=WORKER,
)

_IS_LOST = """(b.due_at - clock.now > interval '61 minutes'
                OR (b.due_at IS NOT NULL AND b.sent_at - clock.now > interval '1 minute')
                OR (b.due_at - clock.now > interval '1 minute' AND b.state = 'pending'))"""

LIST_REWOUND = sql(
    f"""
    SELECT DISTINCT b.company_id
      FROM shipment_bookings b
      JOIN {TEST_CLOCKS} ON clock.company_id = b.company_id
     WHERE {_IS_LOST}""",
    crosses="the worker looks for test clocks that were set back, in all companies",
)

RESCHEDULE = sql(
    f"""
    UPDATE shipment_bookings b SET due_at = clock.now
      FROM {build_clock()}
     WHERE b.company_id = $1 AND {_IS_LOST}"""
)

LIST_CANCELLING = sql(
    build_due("shipments", "id", "cancel_due_at"),
    row=DueShipment,
    crosses="the worker looks for cancellations to settle over all companies, then settles them one by one",
)

LIST_CANCELLING_IN_TURN = sql(
    build_in_turn("shipments", "id", "cancel_due_at"),
    row=DueShipment,
    crosses="the worker takes cancellations from every company in turn, then settles them one by one",
)

LIST_CANCELLING_OF_SHARDS = sql(
    build_in_turn_of_shards("shipments", "id", "cancel_due_at"),
    row=DueShipment,
    crosses="the worker takes cancellations from every company in turn, then settles them one by one",
)

LEASE_CANCELLING = sql(build_take("shipments", "id", "cancel_due_at"))


async def insert_attempt(tx: Tx, company_id: int, shipment_id: str, reference: str, adapter: str) -> BookingAttempt:
    """Closes the earlier booking and adds the next attempt."""
    await close(tx, company_id, shipment_id)
    created = await INSERT.find(tx, company_id, shipment_id, reference, adapter, LEASE_SECONDS)
    if created is None:
        raise RuntimeError("INSERT returned no row")
    return created


async def close(tx: Tx, company_id: int, shipment_id: str) -> None:
    await CLOSE.run(tx, company_id, shipment_id)


async def claim(db: Connection, attempt: BookingAttempt) -> bool:
    """Whether this process may send it."""
    key = (attempt.company_id, attempt.shipment_id, attempt.number)
    return await CLAIM.run(db, *key, SENDING_SECONDS) == 1


async def unclaim(db: Connection, attempt: BookingAttempt) -> None:
    key = (attempt.company_id, attempt.shipment_id, attempt.number)
    await UNCLAIM.run(db, *key, LEASE_SECONDS)


async def record_response(db: Connection, attempt: BookingAttempt, booked: Booked) -> None:
    """In a transaction of its own, so that a later failure does not lose the carrier's numbers."""
    key = (attempt.company_id, attempt.shipment_id, attempt.number)
    await RECORD_RESPONSE.run(db, *key, booked.order_no, booked.awb, booked.booking_id)


async def settle_attempt(
    tx: Tx, attempt: BookingAttempt, state: str, *, error: str | None = None, by: str, due_in: float | None = None
) -> None:
    key = (attempt.company_id, attempt.shipment_id, attempt.number)
    await SETTLE.run(tx, *key, state, error, by, due_in)


async def get_attempt(db: Connection, company_id: int, shipment_id: str, number: int) -> BookingAttempt:
    found = await GET.find(db, company_id, shipment_id, number)
    if found is None:
        raise LookupError("attempt not found")
    return found


async def find_by_reference(db: Connection, company_id: int, reference: str | None) -> BookingAttempt | None:
    return None if reference is None else await FIND_BY_REFERENCE.find(db, company_id, reference)


async def find_by_order_no(
    db: Connection, company_id: int, adapter: str, order_no: str | None
) -> BookingAttempt | None:
    """The newest attempt with this number."""
    return None if order_no is None else await FIND_BY_ORDER_NO.find(db, company_id, adapter, order_no)


async def find_by_shipment_numbers(
    db: Connection, company_id: int, adapter: str, order_no: str | None, awb: str | None
) -> BookingAttempt | None:
    """The current booking of the newest shipment with one of these numbers."""
    return await FIND_BY_SHIPMENT_NUMBERS.find(db, company_id, adapter, order_no, awb)


async def lease(db: Connection, due: DueAttempt, seconds: float) -> BookingAttempt | None:
    """None if it is no longer due, or another worker holds it."""
    return await LEASE.find(db, due.company_id, due.shipment_id, due.number, seconds)


async def record_lookup(
    db: Connection, attempt: BookingAttempt, *, not_found: bool, error: str | None, next_at: float | None
) -> None:
    """`next_at` is in seconds since sending."""
    key = (attempt.company_id, attempt.shipment_id, attempt.number)
    await RECORD_LOOKUP.run(db, *key, int(not_found), error, next_at)


async def make_due(tx: Tx, attempt: BookingAttempt) -> None:
    await MAKE_DUE.run(tx, attempt.company_id, attempt.shipment_id, attempt.number)


async def reopen(tx: Tx, attempt: BookingAttempt, order_no: str | None, awb: str | None) -> None:
    """The carrier proceeds with a closed booking: it is to be cancelled there."""
    await REOPEN.run(tx, attempt.company_id, attempt.shipment_id, attempt.number, order_no, awb)


async def list_due(db: Connection, most: int) -> list[DueAttempt]:
    found = await LIST_DUE.all(db, most)
    if len(found) < most:
        return found
    return await (LIST_DUE_OF_SHARDS if await is_sharded(db) else LIST_DUE_IN_TURN).all(db, most)


async def list_cancelling(db: Connection, most: int) -> list[DueShipment]:
    """Cancellations that wait for the carrier."""
    found = await LIST_CANCELLING.all(db, most)
    if len(found) < most:
        return found
    return await (LIST_CANCELLING_OF_SHARDS if await is_sharded(db) else LIST_CANCELLING_IN_TURN).all(db, most)


async def lease_cancelling(db: Connection, due: DueShipment, seconds: float) -> bool:
    """False if it is no longer due, or another worker holds it."""
    return await LEASE_CANCELLING.run(db, due.company_id, due.id, seconds) > 0


async def list_rewound(db: Connection) -> list[int]:
    """Companies whose bookings wait for a time from which a test clock was set back."""
    return [company_id for (company_id,) in await db.fetch(LIST_REWOUND.text)]


async def reschedule(db: Connection, company_id: int) -> None:
    """Makes those bookings due now."""
    await RESCHEDULE.run(db, company_id)
