"""How the timeline is stored."""

from collections.abc import Sequence
from datetime import datetime

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.timeline.types import TIMELINE_ID, TYPES, TimelineEntry
from sapa.values.json import encode

COLUMNS = ", ".join(TimelineEntry.__struct_fields__)

# In company time. A deleted customer gets no more entries, though their orders and points may still change. Each
# customer is looked up alone and in the order of the primary key, never by a join: with the statistics of a table that
# was empty a moment ago, the planner would read all of it. A caller that records many entries disables sorting, as
# customers/bulk.py does, so that no other index fits.
INSERT = sql(
    """
    INSERT INTO timeline_entries (company_id, id, customer_id, category, type, source, edit_log, notes,
                                  created_at, updated_at)
    SELECT $1, e.id, e.customer_id, e.category, e.type, e.source, e.edit_log, e.notes, coalesce(e.at, now.at),
           coalesce(e.at, now.at)
      FROM json_to_recordset($2::json) AS e (id text, customer_id text, category text, type text, source text,
                                             edit_log text, notes text, at timestamptz)
     CROSS JOIN LATERAL (
           SELECT id FROM customers WHERE company_id = $1 AND id BETWEEN e.customer_id AND e.customer_id
            ORDER BY id LIMIT 1) AS c
     CROSS JOIN (SELECT clock_timestamp() + clock_offset AS at FROM companies WHERE company_id = $1) AS now"""
)

HAS_CUSTOMER = sql("SELECT EXISTS (SELECT FROM customers WHERE company_id = $1 AND id = $2)")

DELETE_ENTRIES = sql("DELETE FROM timeline_entries WHERE company_id = $1 AND customer_id = $2")

MATCHING = """
      FROM timeline_entries
     WHERE company_id = $1 AND customer_id = $2
       AND ($3::text IS NULL OR category = $3)
       AND ($4::integer IS NULL OR created_at >= (
           SELECT now() + clock_offset - make_interval(months => $4) FROM companies WHERE company_id = $1))"""

COUNT = sql(f"SELECT count(*) {MATCHING}")

FIRST = sql(f"SELECT {COLUMNS} {MATCHING} ORDER BY created_at DESC, id DESC LIMIT $5", row=TimelineEntry)

OLDER = sql(
    f"""SELECT {COLUMNS} {MATCHING} AND (created_at, id) < ($6, $7)
     ORDER BY created_at DESC, id DESC LIMIT $5""",
    row=TimelineEntry,
)

NEWER = sql(
    f"""SELECT {COLUMNS} {MATCHING} AND (created_at, id) > ($6, $7)
     ORDER BY created_at, id LIMIT $5""",
    row=TimelineEntry,
)

Position = tuple[datetime, str]


async def insert_entries(
    tx: Tx, company_id: int, entries: Sequence[tuple[str, str, str, str | None, str | None, datetime | None]]
) -> None:
    """Each entry is (customer, type, source, edit log, notes, when it happened if not now)."""
    if not entries:
        return
    # The entries share one instant; their ids keep their order.
    ids = sorted(TIMELINE_ID.new() for _ in entries)
    documents = [
        {
            "id": id,
            "customer_id": customer_id,
            "category": TYPES[type][0],
            "type": type,
            "source": source,
            "edit_log": edit_log,
            "notes": notes,
            "at": at,
        }
        for id, (customer_id, type, source, edit_log, notes, at) in zip(ids, entries, strict=True)
    ]
    await INSERT.run(tx, company_id, encode(documents))


async def has_customer(db: Connection, company_id: int, customer_id: str) -> bool:
    return bool(await HAS_CUSTOMER.value(db, company_id, customer_id))


async def delete_entries(tx: Tx, company_id: int, customer_id: str) -> None:
    await DELETE_ENTRIES.run(tx, company_id, customer_id)


async def count_entries(
    db: Connection, company_id: int, customer_id: str, category: str | None, months: int | None
) -> int:
    return int(await COUNT.value(db, company_id, customer_id, category, months))


async def list_older(
    db: Connection, company_id: int, customer_id: str, category: str | None, months: int | None,
    limit: int, position: Position | None,
) -> list[TimelineEntry]:  # fmt: skip
    """Newest first, from the newest or from a position on."""
    filters = (company_id, customer_id, category, months, limit)
    return await (OLDER.all(db, *filters, *position) if position else FIRST.all(db, *filters))


async def list_newer(
    db: Connection, company_id: int, customer_id: str, category: str | None, months: int | None,
    limit: int, position: Position,
) -> list[TimelineEntry]:  # fmt: skip
    """The entries newer than a position, oldest first."""
    return await NEWER.all(db, company_id, customer_id, category, months, limit, *position)
