"""Which shipments the worker has to look after, and when: in the company's time, found without walking all companies.

A company's clock is never behind the real time. So what is due by the real time is due for whoever owns it and found in
one index; only those few companies whose test clock was moved are looked at one by one. When more is due than is taken
at once, companies take turns: then each of them is looked at.
"""

from msgspec import Struct

from sapa.db.pool import Connection
from sapa.db.sql import sql

LONGEST_CANCEL, LONGEST_PARCEL, LONGEST_RIDE = 3_600, 21_600, 300
"""Seconds: nothing is put off for longer. What is, was put off before a test clock was turned back."""

# Not clock_timestamp(): an index can be searched for a time that stays the same during the statement only.
NOW = "statement_timestamp()"
COMPANYS = f"({NOW} + c.clock_offset)"

_IS_CANCEL_LOST = f"s.cancel_due_at > {COMPANYS} + make_interval(secs => {LONGEST_CANCEL})"
_IS_POLL_LOST = f"""(s.poll_at > {COMPANYS} + make_interval(secs => {LONGEST_RIDE})
                AND (s.provider <> 'aggregator_carrier'
                     OR s.poll_at > {COMPANYS} + make_interval(secs => {LONGEST_PARCEL})))"""
_IS_BOOKING_LOST = f"""(b.due_at > {COMPANYS} + interval '61 minutes'
                OR (b.due_at IS NOT NULL AND b.sent_at > {COMPANYS} + interval '1 minute')
                OR (b.due_at > {COMPANYS} + interval '1 minute' AND b.state = 'pending'))"""


class DueShipment(Struct, frozen=True):
    company_id: int
    id: str


def _due(column: str) -> str:
    return f"""
    SELECT company_id, id
      FROM ((SELECT company_id, id, {column} AS due_at FROM shipments
              WHERE {column} <= {NOW}
              ORDER BY {column} LIMIT $1)
             UNION ALL
            (SELECT ahead.company_id, ahead.id, ahead.due_at
               FROM companies c
              CROSS JOIN LATERAL (
                    SELECT s.company_id, s.id, s.{column} - c.clock_offset AS due_at FROM shipments s
                     WHERE s.company_id = c.company_id AND s.{column} > {NOW} AND s.{column} <= {COMPANYS}
                     ORDER BY s.{column} LIMIT $1) AS ahead
              WHERE c.clock_offset > interval '0')) AS due
     ORDER BY due_at
     LIMIT $1"""


def build_in_turn(table: str, key: str, column: str, now: str = COMPANYS) -> str:
    """The first that is due of each company, then the second of each: nobody waits for all of somebody else's."""
    return f"""
    SELECT company_id, {key}
      FROM (SELECT c.company_id, due.*
              FROM companies c
             CROSS JOIN LATERAL (
                   SELECT {key}, t.{column} - c.clock_offset AS since,
                          row_number() OVER (ORDER BY t.{column}, {key}) AS turn
                     FROM {table} t
                    WHERE t.company_id = c.company_id AND t.{column} <= {now}
                    ORDER BY t.{column}, {key} LIMIT $1) AS due) AS due
     ORDER BY turn, since
     LIMIT $1"""


def _take(column: str) -> str:
    return f"""
    UPDATE shipments s SET {column} = {COMPANYS} + make_interval(secs => $3)
      FROM companies c
     WHERE s.company_id = $1 AND s.id = $2 AND c.company_id = $1 AND s.{column} <= {COMPANYS}"""


LIST_CANCELLING = sql(
    _due("cancel_due_at"),
    row=DueShipment,
    crosses="the worker looks for cancellations to settle over all companies, then settles them one by one",
)

LIST_CANCELLING_IN_TURN = sql(
    build_in_turn("shipments", "id", "cancel_due_at"),
    row=DueShipment,
    crosses="the worker takes cancellations from every company in turn, then settles them one by one",
)

TAKE_CANCELLING = sql(_take("cancel_due_at"))

LIST_UNTRACKED = sql(
    _due("poll_at"),
    row=DueShipment,
    crosses="the worker looks for shipments to ask after over all companies, then asks for them one by one",
)

LIST_UNTRACKED_IN_TURN = sql(
    build_in_turn("shipments", "id", "poll_at"),
    row=DueShipment,
    crosses="the worker takes shipments from every company in turn, then asks for them one by one",
)

TAKE_UNTRACKED = sql(_take("poll_at"))

LIST_TURNED_BACK = sql(
    f"""
    SELECT c.company_id
      FROM companies c
     WHERE c.environment = 'test'
       AND (EXISTS (SELECT FROM shipments s WHERE s.company_id = c.company_id AND {_IS_POLL_LOST})
            OR EXISTS (SELECT FROM shipments s WHERE s.company_id = c.company_id AND {_IS_CANCEL_LOST})
            OR EXISTS (SELECT FROM shipment_bookings b WHERE b.company_id = c.company_id AND {_IS_BOOKING_LOST}))""",
    crosses="the worker looks for clocks that were turned back over all test environments",
)

BRING_BACK_SHIPMENTS = sql(
    f"""
    UPDATE shipments s
       SET poll_at = CASE WHEN {_IS_POLL_LOST} THEN {COMPANYS} ELSE s.poll_at END,
           cancel_due_at = CASE WHEN {_IS_CANCEL_LOST} THEN {COMPANYS} ELSE s.cancel_due_at END
      FROM companies c
     WHERE s.company_id = $1 AND c.company_id = $1 AND ({_IS_POLL_LOST} OR {_IS_CANCEL_LOST})"""
)

BRING_BACK_BOOKINGS = sql(
    f"""
    UPDATE shipment_bookings b SET due_at = {COMPANYS}
      FROM companies c
     WHERE b.company_id = $1 AND c.company_id = $1 AND {_IS_BOOKING_LOST}"""
)


async def list_cancelling(db: Connection, most: int) -> list[DueShipment]:
    """Cancellations that wait for the carrier's word."""
    found = await LIST_CANCELLING.all(db, most)
    return found if len(found) < most else await LIST_CANCELLING_IN_TURN.all(db, most)


async def take_cancelling(db: Connection, due: DueShipment, seconds: float) -> bool:
    """False when it is not due any more, or another worker has it."""
    return await TAKE_CANCELLING.run(db, due.company_id, due.id, seconds) > 0


async def list_untracked(db: Connection, most: int) -> list[DueShipment]:
    """Shipments of which their carriers have said nothing for a while."""
    found = await LIST_UNTRACKED.all(db, most)
    return found if len(found) < most else await LIST_UNTRACKED_IN_TURN.all(db, most)


async def take_untracked(db: Connection, due: DueShipment, seconds: float) -> bool:
    return await TAKE_UNTRACKED.run(db, due.company_id, due.id, seconds) > 0


async def list_turned_back(db: Connection) -> list[int]:
    """Companies in which something waits for a time that was taken back."""
    return [company_id for (company_id,) in await db.fetch(LIST_TURNED_BACK.text)]


async def bring_back(db: Connection, company_id: int) -> None:
    """What waits for a time that was taken back is due now."""
    await BRING_BACK_SHIPMENTS.run(db, company_id)
    await BRING_BACK_BOOKINGS.run(db, company_id)
