"""How the timeline is stored."""

from collections.abc import Sequence
from datetime import datetime

from sapa.db.planning import without_searching, without_sorting
from sapa.db.pool import Connection, Tx
from sapa.db.sql import compose, sql
from sapa.events import ANNOUNCED, RECORDED, EncodedEvents, RecordedEvents
from sapa.http.errors import NotFound
from sapa.timeline.statement_parts import build_recorded
from sapa.timeline.types import CATEGORIES, TIMELINE_ID, TYPES, Category, EncodedEntries, TimelineEntry
from sapa.values.json import encode

COLUMNS = ", ".join(TimelineEntry.__struct_fields__)

INSERT = sql(f"WITH {build_recorded('$2')} SELECT count(*) FROM timeline")
INSERT_KNOWN = sql(f"WITH {build_recorded('$2', are_known=True)} SELECT count(*) FROM timeline")

_HAS_DELIVERIES = "SELECT EXISTS (SELECT FROM deliveries) AS has_deliveries"
ANNOUNCE = compose([ANNOUNCED, RECORDED, build_recorded(":timeline")], _HAS_DELIVERIES, row=RecordedEvents)
ANNOUNCE_KNOWN = compose(
    [ANNOUNCED, RECORDED, build_recorded(":timeline", are_known=True)], _HAS_DELIVERIES, row=RecordedEvents
)

GET = sql(f"SELECT {COLUMNS} FROM timeline_entries WHERE company_id = $1 AND id = $2", row=TimelineEntry)

HAS_CUSTOMER = sql("SELECT EXISTS (SELECT FROM customers WHERE company_id = $1 AND id = $2)")

DELETE_ENTRIES = sql(
    """
    WITH deleted AS (
        DELETE FROM timeline_entries WHERE company_id = $1 AND customer_id = $2 RETURNING category, is_counted
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'timeline', $2 || ' ' || category, -count(*) FROM deleted WHERE is_counted GROUP BY category"""
)

# Entries that code of an earlier version stored are not in the counter until the worker has counted them.
TOTAL = sql(
    """
    SELECT (SELECT coalesce(sum(total), 0) FROM counter_cells
             WHERE company_id = $1 AND counter = 'timeline' AND cell = ANY($3))
         + (SELECT coalesce(sum(delta), 0) FROM counter_deltas
             WHERE company_id = $1 AND counter = 'timeline' AND cell = ANY($3))
         + (SELECT count(*) FROM timeline_entries
             WHERE company_id = $1 AND customer_id = $2 AND category = ANY($4) AND NOT is_counted)"""
)

COMPANY_TO_COUNT = sql(
    "SELECT company_id FROM timeline_entries WHERE NOT is_counted LIMIT 1",
    crosses="the worker looks for due work over all companies, then counts company by company",
)

# Skips what is being deleted: the deletion takes only counted entries off the counter.
LOCK_UNCOUNTED = sql(
    """
    SELECT ctid::text AS address
      FROM timeline_entries
     WHERE company_id = $1 AND NOT is_counted
     ORDER BY customer_id, category
     LIMIT $2
       FOR NO KEY UPDATE SKIP LOCKED"""
)

COUNT_ENTRIES = sql(
    """
    WITH counted AS (
        UPDATE timeline_entries
           SET is_counted = true
         WHERE company_id = $1 AND ctid = ANY($2::text[]::tid[])
        RETURNING customer_id, category
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'timeline', customer_id || ' ' || category, count(*) FROM counted GROUP BY customer_id, category"""
)


_MONTHS = """($4::integer IS NULL OR created_at >= (
           SELECT now() + clock_offset - make_interval(months => $4) FROM companies WHERE company_id = $1))"""

COUNT = sql(
    f"""
    SELECT count(*)
      FROM timeline_entries
     WHERE company_id = $1 AND customer_id = $2 AND ($3::text IS NULL OR category = $3) AND {_MONTHS}"""
)

# With a category and without, so that each has the plan of its own index.
_ALL = f"""SELECT {COLUMNS}
      FROM timeline_entries
     WHERE company_id = $1 AND customer_id = $2 AND $3::text IS NULL AND {_MONTHS}"""
_OF_CATEGORY = _ALL.replace("$3::text IS NULL", "category = $3")
_FIRST = " ORDER BY created_at DESC, id DESC LIMIT $5"
_OLDER = " AND (created_at, id) < ($6, $7) ORDER BY created_at DESC, id DESC LIMIT $5"
_NEWER = " AND (created_at, id) > ($6, $7) ORDER BY created_at, id LIMIT $5"

FIRST = sql(_ALL + _FIRST, row=TimelineEntry)
FIRST_OF_CATEGORY = sql(_OF_CATEGORY + _FIRST, row=TimelineEntry)
OLDER = sql(_ALL + _OLDER, row=TimelineEntry)
OLDER_OF_CATEGORY = sql(_OF_CATEGORY + _OLDER, row=TimelineEntry)
NEWER = sql(_ALL + _NEWER, row=TimelineEntry)
NEWER_OF_CATEGORY = sql(_OF_CATEGORY + _NEWER, row=TimelineEntry)

Position = tuple[datetime, str]


def encode_entries(
    entries: Sequence[tuple[str, str, str, str | None, str | None, str | None, datetime | None]],
) -> EncodedEntries:
    """Each entry is (customer, type, source, edit log, notes, actor, when it happened if not now)."""
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
            "actor_name": actor_name,
            "at": at,
        }
        for id, (customer_id, type, source, edit_log, notes, actor_name, at) in zip(ids, entries, strict=True)
    ]
    return EncodedEntries(ids, encode(documents))


async def insert_entries(tx: Tx, company_id: int, entries: EncodedEntries, *, are_known: bool) -> None:
    """The customers are looked up unless they `are_known` to be there until the transaction ends."""
    await (INSERT_KNOWN if are_known else INSERT).value(tx, company_id, entries.document)


async def insert_with_events(
    tx: Tx, company_id: int, entries: EncodedEntries, events: EncodedEvents, *, are_known: bool
) -> bool:
    """The same together with events, by one statement. Returns whether webhooks have to be delivered."""
    statement = ANNOUNCE_KNOWN if are_known else ANNOUNCE
    values = {"timeline": entries.document, **events.name_values()}
    stored = await statement.find(tx, company_id, *statement.order(values))
    return stored is not None and stored.has_deliveries


async def get_entry(db: Connection, company_id: int, id: str) -> TimelineEntry:
    entry = await GET.find(db, company_id, id)
    if entry is None:
        raise NotFound
    return entry


async def has_customer(db: Connection, company_id: int, customer_id: str) -> bool:
    return bool(await HAS_CUSTOMER.value(db, company_id, customer_id))


async def delete_entries(tx: Tx, company_id: int, customer_id: str) -> None:
    await DELETE_ENTRIES.run(tx, company_id, customer_id)


async def count_entries(
    db: Connection, company_id: int, customer_id: str, category: Category | None, months: int | None
) -> int:
    """From the counter, unless only some months count."""
    if months is not None:
        return int(await COUNT.value(db, company_id, customer_id, category, months))
    categories = CATEGORIES if category is None else [category]
    cells = [f"{customer_id} {one}" for one in categories]
    return int(await TOTAL.value(db, company_id, customer_id, cells, categories))


async def find_company_to_count(db: Connection) -> int | None:
    """A company with entries that are not counted yet."""
    company_id: int | None = await COMPANY_TO_COUNT.value(db)
    return company_id


async def count_more(tx: Tx, company_id: int, most: int) -> None:
    """Counts entries of an earlier version, at most so many. Each is found by its index and then by its address: after
    an upgrade or an import the planner may believe that there are few, and would look through all of them for each."""
    async with without_sorting(tx):
        addresses = [address for (address,) in await tx.fetch(LOCK_UNCOUNTED.text, company_id, most)]
    async with without_searching(tx):
        await COUNT_ENTRIES.run(tx, company_id, addresses)


async def list_older(
    db: Connection, company_id: int, customer_id: str, category: Category | None, months: int | None,
    limit: int, position: Position | None,
) -> list[TimelineEntry]:  # fmt: skip
    """Newest first, from the newest or from a position on."""
    filters = (company_id, customer_id, category, months, limit)
    if position is None:
        return await (FIRST if category is None else FIRST_OF_CATEGORY).all(db, *filters)
    return await (OLDER if category is None else OLDER_OF_CATEGORY).all(db, *filters, *position)


async def list_newer(
    db: Connection, company_id: int, customer_id: str, category: Category | None, months: int | None,
    limit: int, position: Position,
) -> list[TimelineEntry]:  # fmt: skip
    """The entries newer than a position, oldest first."""
    statement = NEWER if category is None else NEWER_OF_CATEGORY
    return await statement.all(db, company_id, customer_id, category, months, limit, *position)
