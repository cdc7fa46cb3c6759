"""Queries for subscribed addresses and the callbacks that wait to be posted there."""

from collections.abc import Collection

from msgspec import Struct

from sapa.db.due import WORKER, build_clock, build_next_due
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql


class CallbackSubscription(Struct, frozen=True):
    level: int
    url: str


class SubscribedDelivery(Struct, frozen=True):
    id: int
    url: str
    headers: str
    body: bytes
    tries: int


PUT = sql(
    """
    INSERT INTO sandbox_subscriptions (company_id, path, level, url) VALUES ($1, $2, $3, $4)
        ON CONFLICT (company_id, path, level) DO UPDATE
       SET url = excluded.url, created_at = excluded.created_at"""
)

DROP = sql("DELETE FROM sandbox_subscriptions WHERE company_id = $1 AND path = $2 AND level = $3")

LIST = sql(
    "SELECT level, url FROM sandbox_subscriptions WHERE company_id = $1 AND path = $2 ORDER BY level",
    row=CallbackSubscription,
)

LIST_WAITING = sql(
    """
    SELECT d.company_id
      FROM sandbox_deliveries d
      JOIN companies c ON c.company_id = d.company_id
     WHERE d.due_at <= statement_timestamp() + c.clock_offset AND d.company_id <> ALL($1::bigint[])
     GROUP BY d.company_id
     ORDER BY min(d.due_at)
     LIMIT $2""",
    crosses="the worker finds the companies with due deliveries, then posts them company by company",
)

LIST_DUE = sql(
    """
    SELECT d.id, d.url, d.headers::text AS headers, d.body, d.tries
      FROM sandbox_deliveries d
      JOIN companies c ON c.company_id = d.company_id
     WHERE d.company_id = $1 AND d.due_at <= statement_timestamp() + c.clock_offset
     ORDER BY d.due_at, d.id
     LIMIT $2""",
    row=SubscribedDelivery,
)

NEXT_DELIVERIES = sql(build_next_due("sandbox_deliveries", "due_at"), crosses=WORKER)

SETTLE = sql("DELETE FROM sandbox_deliveries WHERE company_id = $1 AND id = $2")

POSTPONE = sql(
    f"""
    UPDATE sandbox_deliveries AS d
       SET tries = d.tries + 1, due_at = clock.later
      FROM {build_clock("make_interval(secs => $3)")}
     WHERE d.company_id = $1 AND d.id = $2"""
)


async def put_subscription(tx: Tx, company_id: int, path: str, level: int, url: str) -> None:
    await PUT.run(tx, company_id, path, level, url)


async def delete_subscription(tx: Tx, company_id: int, path: str, level: int) -> None:
    await DROP.run(tx, company_id, path, level)


async def list_subscriptions(db: Connection, company_id: int, path: str) -> list[CallbackSubscription]:
    return await LIST.all(db, company_id, path)


async def list_waiting(db: Connection, without: Collection[int], most: int) -> list[int]:
    """Companies with due deliveries, except those in `without`."""
    return [record[0] for record in await db.fetch(LIST_WAITING.text, list(without), most)]


async def list_due(db: Connection, company_id: int, most: int) -> list[SubscribedDelivery]:
    return await LIST_DUE.all(db, company_id, most)


async def settle(db: Connection, company_id: int, id: int) -> None:
    await SETTLE.run(db, company_id, id)


async def postpone(db: Connection, company_id: int, id: int, seconds: float) -> None:
    await POSTPONE.run(db, company_id, id, seconds)
