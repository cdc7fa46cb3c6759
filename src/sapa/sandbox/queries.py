"""Queries for the callbacks of simulators."""

from collections.abc import Sequence

from msgspec import Struct

from sapa.db.due import WORKER, add_interval, build_next_due
from sapa.db.pool import Connection, Tx
from sapa.db.sql import compose, sql
from sapa.db.wakeups import DueQueue
from sapa.sandbox.statement_parts import HAS_COPIES, SCHEDULED, name_scheduled
from sapa.sandbox.types import PlannedCallback


class ScheduledCallbacks(Struct, frozen=True):
    has_copies: bool
    """Whether an address is subscribed to them."""


class SimulatedCallback(Struct, frozen=True):
    company_id: int
    id: int
    path: str
    headers: str
    body: bytes
    tries: int


SCHEDULE = compose([SCHEDULED], f"SELECT {HAS_COPIES}", row=ScheduledCallbacks)

# Compares the real time first, in one index: no company's clock is behind it. The planner can use the index with
# statement_timestamp(). Of the few companies whose clock was moved, the longest due are chosen by an expression that
# no index has: for a few rows of theirs, the planner would read the index of `due_at` to its end.
LIST_DUE = sql(
    """
    SELECT company_id, id, path, headers::text AS headers, body, tries
      FROM ((SELECT company_id, id, path, headers, body, tries, due_at FROM sandbox_callbacks
              WHERE due_at <= statement_timestamp()
              ORDER BY due_at, id LIMIT $1)
             UNION ALL
            (SELECT s.company_id, s.id, s.path, s.headers, s.body, s.tries, s.due_at
               FROM companies c
               JOIN sandbox_callbacks s ON s.company_id = c.company_id
              WHERE c.clock_offset > interval '0' AND s.due_at > statement_timestamp()
                AND s.due_at <= statement_timestamp() + c.clock_offset
              ORDER BY s.due_at - c.clock_offset, s.id LIMIT $1)) AS due
     ORDER BY due_at, id
     LIMIT $1""",
    row=SimulatedCallback,
    crosses="the worker finds due callbacks of all companies, then settles them one by one",
)

NEXT_CALLBACKS = sql(build_next_due("sandbox_callbacks", "due_at"), crosses=WORKER)
CALLBACKS = DueQueue("sandbox callbacks", NEXT_CALLBACKS.text)

DELETE = sql("DELETE FROM sandbox_callbacks WHERE company_id = $1 AND id = ANY($2::bigint[])")

POSTPONE = sql(
    f"""
    UPDATE sandbox_callbacks SET tries = tries + 1, due_at = {add_interval("due_at", "interval '1 second'")}
     WHERE company_id = $1 AND id = $2"""
)


async def insert_callbacks(tx: Tx, company_id: int, hook: str, planned: Sequence[PlannedCallback]) -> bool:
    """Whether an address is subscribed to them."""
    scheduled = await SCHEDULE.find(tx, company_id, *SCHEDULE.order(name_scheduled(hook, planned)))
    return scheduled is not None and scheduled.has_copies


async def list_due(db: Connection, most: int) -> list[SimulatedCallback]:
    return await LIST_DUE.all(db, most)


async def delete_callbacks(db: Connection, company_id: int, ids: Sequence[int]) -> None:
    await DELETE.run(db, company_id, ids)


async def postpone_callback(db: Connection, callback: SimulatedCallback) -> None:
    await POSTPONE.run(db, callback.company_id, callback.id)
