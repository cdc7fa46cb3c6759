"""Queries for rates and costs."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import astuple

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.messaging.costs.types import (
    ELSEWHERE,
    CostFigures,
    CostLine,
    CostSelection,
    FoundRate,
    Grouping,
    MessageRate,
    NewCost,
    UnpricedCost,
)
from sapa.values.phones import find_main_region


class RateLookup(Struct, frozen=True):
    country: str
    category: str
    at: datetime


class PlacedRate(Struct, frozen=True):
    """With the number of the look-up that found it."""

    place: int
    price: Decimal
    currency: str


MAX_LINES = 20_000
_CARDS = "rates belong to all companies, or to one"

# Of the company before those of all, by the countries in their order, in the company's currency before another.
FIND_RATES = sql(
    """
    SELECT lookup.place, rate.price, rate.currency
      FROM unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[])
           WITH ORDINALITY AS lookup (country, main, category, at, place)
     CROSS JOIN LATERAL (
           SELECT r.price, r.currency
             FROM message_rates r
             JOIN companies c ON c.company_id = $1
            WHERE (r.company_id = $1 OR r.company_id IS NULL) AND r.country IN (lookup.country, lookup.main, $6)
              AND r.category = lookup.category
              AND r.starts_on <= (lookup.at AT TIME ZONE c.time_zone)::date
            ORDER BY r.company_id IS NULL, array_position(ARRAY[lookup.country, lookup.main, $6], r.country),
                     r.currency <> c.currency, r.currency, r.starts_on DESC
            LIMIT 1) AS rate""",
    row=PlacedRate,
)

LOCK_RATES = sql("SELECT pg_advisory_xact_lock(hashtextextended('message_rates', 0))", crosses=_CARDS)

UPSERT_RATES = sql(
    """
    WITH stored AS (
        INSERT INTO message_rates AS r (company_id, country, category, starts_on, currency, price)
        SELECT $1, input.country, input.category, input.starts_on, input.currency, input.price
          FROM unnest($2::text[], $3::text[], $4::date[], $5::text[], $6::numeric[])
               AS input (country, category, starts_on, currency, price)
            ON CONFLICT ON CONSTRAINT message_rates_key DO UPDATE
           SET price = excluded.price, imported_at = excluded.imported_at
         WHERE r.price <> excluded.price
        RETURNING xmax = 0 AS is_new
    )
    SELECT count(*) FILTER (WHERE is_new) AS created, count(*) FILTER (WHERE NOT is_new) AS changed FROM stored""",
    crosses=_CARDS,
)

DELETE_OTHERS = sql(
    """
    DELETE FROM message_rates r
     WHERE r.company_id IS NOT DISTINCT FROM $1::bigint AND NOT EXISTS (
           SELECT FROM unnest($2::text[], $3::text[], $4::date[], $5::text[])
                  AS input (country, category, starts_on, currency)
            WHERE (input.country, input.category, input.starts_on, input.currency)
                  = (r.country, r.category, r.starts_on, r.currency))""",
    crosses=_CARDS,
)

LIST_RATES = sql(
    """
    SELECT company_id, country, category, starts_on, currency, price
      FROM message_rates
     WHERE $1::bigint IS NULL OR company_id = $1 OR company_id IS NULL
     ORDER BY company_id NULLS FIRST, country, category, currency, starts_on""",
    row=MessageRate,
    crosses=_CARDS,
)

_COST = NewCost.__struct_fields__

# RETURNING, because Citus counts the rows of SELECT where nothing is returned.
INSERT_COSTS = sql(
    f"""
    INSERT INTO message_costs (company_id, {", ".join(_COST)})
    SELECT $1, {", ".join(_COST)}
      FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bool[], $8::numeric[], $9::text[],
                  $10::timestamptz[])
           AS input ({", ".join(_COST)})
    RETURNING 1"""
)

LIST_UNPRICED = sql(
    """
    SELECT message_id, category, country, charged_at
      FROM message_costs
     WHERE company_id = $1 AND amount IS NULL AND message_id > $2
     ORDER BY message_id
     LIMIT $3
       FOR UPDATE""",
    row=UnpricedCost,
)

SET_AMOUNT = sql(
    """
    UPDATE message_costs SET amount = $3, currency = $4
     WHERE company_id = $1 AND message_id = $2 AND amount IS NULL"""
)

TODAY = sql("SELECT ((now() + clock_offset) AT TIME ZONE time_zone)::date FROM companies WHERE company_id = $1")

_FIGURES = """m.currency, count(*) AS messages, count(*) FILTER (WHERE m.is_billable) AS billable_messages,
           count(*) FILTER (WHERE m.amount IS NULL) AS unpriced_messages, trim_scale(sum(m.amount)) AS amount"""
_SELECTED = """
      FROM message_costs m
      JOIN companies c ON c.company_id = $1
     WHERE m.company_id = $1 AND m.charged_at >= $2::date::timestamp AT TIME ZONE c.time_zone
       AND m.charged_at < ($3::date + 1)::timestamp AT TIME ZONE c.time_zone
       AND ($4::text IS NULL OR m.template_id = $4) AND ($5::text IS NULL OR m.source = $5)"""

# The lines are sorted, not the messages: planned together, grouping would be done by a sort of all of them.
LINES = sql(
    f"""
    WITH lines AS MATERIALIZED (
        SELECT {_FIGURES},
               CASE $6::text WHEN 'day' THEN (m.charged_at AT TIME ZONE c.time_zone)::date END AS day,
               CASE $6::text WHEN 'template' THEN m.template_id END AS template_id,
               CASE $6::text WHEN 'channel' THEN m.source END AS source
        {_SELECTED}
         GROUP BY 1, 6, 7, 8
    )
    SELECT currency, messages, billable_messages, unpriced_messages, amount, to_char(day, 'YYYY-MM-DD') AS day,
           template_id, source
      FROM lines
     ORDER BY 6, 7, 8, 1
     LIMIT $7""",
    row=CostLine,
)

TOTALS = sql(f"SELECT {_FIGURES} {_SELECTED} GROUP BY m.currency ORDER BY m.currency", row=CostFigures)


async def find_rates(db: Connection, company_id: int, lookups: Sequence[RateLookup]) -> list[FoundRate | None]:
    """The rates of the company's days: of the country, of the one whose country code it uses, or of all others."""
    different = list(dict.fromkeys(lookups))
    countries = [each.country for each in different]
    main = [find_main_region(country) or ELSEWHERE for country in countries]
    categories, instants = [each.category for each in different], [each.at for each in different]
    placed = await FIND_RATES.all(db, company_id, countries, main, categories, instants, ELSEWHERE)
    found = {different[each.place - 1]: FoundRate(each.price, each.currency) for each in placed}
    return [found.get(each) for each in lookups]


async def lock_rates(tx: Tx) -> None:
    """One import at a time."""
    await LOCK_RATES.value(tx)


async def upsert_rates(tx: Tx, company_id: int | None, rates: Sequence[MessageRate]) -> tuple[int, int]:
    """How many are new, and how many have another price."""
    record = await tx.fetchrow(UPSERT_RATES.text, company_id, *_list_keys(rates), [rate.price for rate in rates])
    return (0, 0) if record is None else (record["created"], record["changed"])


async def delete_others(tx: Tx, company_id: int | None, rates: Sequence[MessageRate]) -> int:
    return await DELETE_OTHERS.run(tx, company_id, *_list_keys(rates))


def _list_keys(rates: Sequence[MessageRate]) -> list[list[object]]:
    return [[getattr(rate, name) for rate in rates] for name in ("country", "category", "starts_on", "currency")]


async def list_rates(db: Connection, company_id: int | None) -> list[MessageRate]:
    """Those that a company's messages may have, or all."""
    return await LIST_RATES.all(db, company_id)


async def insert_costs(tx: Tx, company_id: int, costs: Sequence[NewCost]) -> None:
    await INSERT_COSTS.run(tx, company_id, *zip(*map(astuple, costs), strict=True))


async def lock_unpriced(tx: Tx, company_id: int, after: str, limit: int) -> list[UnpricedCost]:
    return await LIST_UNPRICED.all(tx, company_id, after, limit)


async def set_amount(tx: Tx, company_id: int, message_id: str, amount: Decimal, currency: str) -> None:
    await SET_AMOUNT.run(tx, company_id, message_id, amount, currency)


async def get_today(db: Connection, company_id: int) -> date:
    """The company's day, in its time zone."""
    today: date = await TODAY.value(db, company_id)
    return today


async def list_lines(db: Connection, company_id: int, selection: CostSelection, grouping: Grouping) -> list[CostLine]:
    return await LINES.all(db, company_id, *_list_filters(selection), grouping, MAX_LINES)


async def list_totals(db: Connection, company_id: int, selection: CostSelection) -> list[CostFigures]:
    return await TOTALS.all(db, company_id, *_list_filters(selection))


def _list_filters(selection: CostSelection) -> tuple[object, ...]:
    return selection.first, selection.last, selection.template_id, selection.source
