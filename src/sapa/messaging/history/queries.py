"""Queries for the records of calls and their totals.

Totals are kept for all records and for each template. There is one cell per month, enough for a list without a window,
and one per hour of the company's time. A cell's name begins with the month in which its records are stored, so both are
purged together.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Raw, Struct

from sapa.db.counters import get_total
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.values.sealing import SealedValue

COUNTER = "api_requests"
HOUR = timedelta(hours=1)
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 12, 31, tzinfo=UTC)
SEEK_FROM = 1_000
"""From this offset on, the totals locate the hour in which the page begins."""


class NewRecord(Struct, frozen=True):
    """A record to insert; the fields are the columns."""

    stored_at: datetime
    id: str
    created_at: datetime
    message_id: str | None
    template_id: str | None
    source: str | None
    endpoint_type: str
    failed_at: datetime | None
    snapshot: bytes


class StoredRecord(Struct, frozen=True):
    """A record with the timestamps and the error of its message."""

    id: str
    created_at: str
    message_id: str | None
    template_id: str | None
    source: str | None
    endpoint_type: str
    snapshot: bytes
    sent_at: str | None
    delivered_at: str | None
    read_at: str | None
    replied_at: str | None
    failed_at: str | None
    error: Raw | None


class SealedRecord(Struct, frozen=True):
    """A record's key and its sealed part."""

    stored_at: str
    id: str
    snapshot: bytes


class HourOffset(Struct, frozen=True):
    """An hour, and the number of records newer than that hour."""

    hour: str
    newer: int


class RecordFilter(Struct, frozen=True):
    """Filter for records; both ends are included."""

    template_id: str | None
    since: datetime
    until: datetime

    @property
    def counter(self) -> str:
        return build_counters(self.template_id)[1]

    @property
    def is_unbounded(self) -> bool:
        return (self.since, self.until) == (EARLIEST, LATEST)


# One statement inserts the record and counts it in its cells.
INSERT = sql(
    """
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, c.counter, c.cell, 1 FROM unnest($11::text[], $12::text[]) AS c (counter, cell)
    )
    INSERT INTO api_requests (company_id, stored_at, id, created_at, message_id, template_id, source, endpoint_type,
                              failed_at, snapshot)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"""
)

RESEAL = sql("UPDATE api_requests SET snapshot = $4 WHERE company_id = $1 AND stored_at = $2 AND id = $3")

LOCK_SEALED = sql(
    """
    SELECT stored_at, id, snapshot
      FROM api_requests
     WHERE company_id = $1 AND (stored_at, id) > ($2, $3)
     ORDER BY stored_at, id
     LIMIT $4
       FOR NO KEY UPDATE""",
    row=SealedRecord,
)

REPLACE_SEALED = sql(
    """
    UPDATE api_requests AS r
       SET snapshot = new.snapshot
      FROM unnest($2::timestamptz[], $3::text[], $4::bytea[]) AS new (stored_at, id, snapshot)
     WHERE r.company_id = $1 AND r.stored_at = new.stored_at AND r.id = new.id"""
)

# Whole hours come from their cells; the first and the last hour of the window are counted by index.
_TOTAL = """
    SELECT (SELECT coalesce(sum(total), 0) FROM counter_cells
             WHERE company_id = $1 AND counter = $2 AND substr(cell, 8) >= $3 AND substr(cell, 8) < $4)::bigint
         + (SELECT coalesce(sum(delta), 0) FROM counter_deltas
             WHERE company_id = $1 AND counter = $2 AND substr(cell, 8) >= $3 AND substr(cell, 8) < $4)::bigint
         + (SELECT count(*) FROM api_requests
             WHERE company_id = $1{condition} AND created_at >= $5 AND created_at < $6)
         + (SELECT count(*) FROM api_requests
             WHERE company_id = $1{condition} AND created_at >= $7 AND created_at <= $8)"""

TOTAL = sql(_TOTAL.format(condition=""))
TOTAL_OF_TEMPLATE = sql(_TOTAL.format(condition=" AND template_id = $9"))

# Finds the hour that holds the record at an offset.
SEEK = sql(
    """
    SELECT hour, newer
      FROM (SELECT hour, count, (sum(count) OVER (ORDER BY hour DESC) - count)::bigint AS newer
              FROM (SELECT hour, sum(count)::bigint AS count
                      FROM (SELECT substr(cell, 8) AS hour, total AS count FROM counter_cells
                             WHERE company_id = $1 AND counter = $2
                             UNION ALL
                            SELECT substr(cell, 8), delta FROM counter_deltas
                             WHERE company_id = $1 AND counter = $2) AS counts
                     WHERE hour >= $3 AND hour < $4
                     GROUP BY hour) AS hours) AS places
     WHERE newer <= $5 AND newer + count > $5""",
    row=HourOffset,
)

# Ids come from the covering index first, so a page never reads the records before it.
_PAGE = """
    SELECT r.id, r.created_at, r.message_id, r.template_id, r.source, r.endpoint_type, r.snapshot,
           m.sent_at, m.delivered_at, m.read_at, m.replied_at, coalesce(r.failed_at, m.failed_at) AS failed_at,
           m.error
      FROM (SELECT created_at, id, stored_at
              FROM api_requests
             WHERE company_id = $1{condition} AND created_at >= $2 AND created_at <= $3
             ORDER BY created_at DESC, id DESC
             LIMIT $4 OFFSET $5) AS page
      JOIN api_requests AS r ON r.company_id = $1 AND r.stored_at = page.stored_at AND r.id = page.id
      LEFT JOIN messages AS m ON m.company_id = $1 AND m.id = r.message_id
     ORDER BY page.created_at DESC, page.id DESC"""

PAGE = sql(_PAGE.format(condition=""), row=StoredRecord)
PAGE_OF_TEMPLATE = sql(_PAGE.format(condition=" AND template_id = $6"), row=StoredRecord)

FIND_BY_MESSAGE = sql(
    """
    SELECT r.id, r.created_at, r.message_id, r.template_id, r.source, r.endpoint_type, r.snapshot,
           m.sent_at, m.delivered_at, m.read_at, m.replied_at, coalesce(r.failed_at, m.failed_at) AS failed_at,
           m.error
      FROM messages AS m
      JOIN api_requests AS r ON r.company_id = $1 AND r.stored_at = m.request_stored_at AND r.id = m.request_id
     WHERE m.company_id = $1 AND (m.id = $2 OR (m.source = ANY($3::text[]) AND m.provider_id = $2))
       AND ($4::text IS NULL OR r.template_id = $4) AND r.created_at >= $5 AND r.created_at <= $6
     ORDER BY r.created_at DESC, r.id DESC""",
    row=StoredRecord,
)


async def insert_record(tx: Tx, company_id: int, new: NewRecord) -> None:
    columns = (getattr(new, name) for name in new.__struct_fields__)
    await INSERT.run(tx, company_id, *columns, *list_cells(new))


def list_cells(new: NewRecord) -> tuple[list[str], list[str]]:
    """The counters and the cells that a record is counted in."""
    counters, cells = zip(*build_cells(new.stored_at, new.created_at, new.template_id), strict=True)
    return list(counters), list(cells)


async def reseal(tx: Tx, company_id: int, stored_at: datetime, id: str, snapshot: bytes) -> None:
    await RESEAL.run(tx, company_id, stored_at, id, snapshot)


async def lock_sealed(tx: Tx, company_id: int, after: str, limit: int) -> list[SealedValue]:
    stored_at, id = _parse_position(after) if after else (EARLIEST, "")
    records = await LOCK_SEALED.all(tx, company_id, stored_at, id, limit)
    return [SealedValue(f"{record.stored_at} {record.id}", record.id, record.snapshot) for record in records]


async def replace_sealed(tx: Tx, company_id: int, sealed: Mapping[str, bytes]) -> None:
    keys = [_parse_position(position) for position in sealed]
    await REPLACE_SEALED.run(tx, company_id, [at for at, _ in keys], [id for _, id in keys], list(sealed.values()))


async def count_records(db: Connection, company_id: int, record_filter: RecordFilter) -> int:
    if record_filter.is_unbounded:
        return await get_total(db, company_id, build_counters(record_filter.template_id)[0])
    first, last = _ceil(record_filter.since), _floor(record_filter.until)
    hours: tuple[object, ...] = (_hour_text(first), _hour_text(last))
    edges: tuple[object, ...] = (record_filter.since, first, last, record_filter.until)
    if first > last:  # both ends in one hour
        edges = (record_filter.since, record_filter.since, record_filter.since, record_filter.until)
    if record_filter.template_id is None:
        return int(await TOTAL.value(db, company_id, record_filter.counter, *hours, *edges))
    return int(
        await TOTAL_OF_TEMPLATE.value(db, company_id, record_filter.counter, *hours, *edges, record_filter.template_id)
    )


async def list_records(
    db: Connection, company_id: int, record_filter: RecordFilter, limit: int, offset: int
) -> Sequence[StoredRecord]:
    """The newest first."""
    if offset >= SEEK_FROM and (page := await seek(db, company_id, record_filter, offset)):
        record_filter, offset = page
    bounds: tuple[object, ...] = (record_filter.since, record_filter.until, limit, offset)
    if record_filter.template_id is None:
        return await PAGE.all(db, company_id, *bounds)
    return await PAGE_OF_TEMPLATE.all(db, company_id, *bounds, record_filter.template_id)


async def list_by_message(
    db: Connection, company_id: int, response_id: str, sources: Sequence[str], record_filter: RecordFilter
) -> Sequence[StoredRecord]:
    """Finds records by our message id or by the channel's."""
    return await FIND_BY_MESSAGE.all(
        db, company_id, response_id, list(sources), record_filter.template_id, record_filter.since, record_filter.until
    )


async def seek(
    db: Connection, company_id: int, record_filter: RecordFilter, offset: int
) -> tuple[RecordFilter, int] | None:
    """Rewrites the page as an offset from the end of the hour in which it begins. None if it begins in the window's
    last hour, which the totals do not split. What is older than all whole hours is in the window's first hour."""
    last = _floor(record_filter.until)
    ahead = RecordFilter(record_filter.template_id, last, record_filter.until)
    newest = await count_records(db, company_id, ahead)
    if newest > offset:
        return None
    first = _ceil(record_filter.since)
    position = await SEEK.find(
        db, company_id, record_filter.counter, _hour_text(first), _hour_text(last), offset - newest
    )
    if position is None:
        newer = await count_records(db, company_id, RecordFilter(record_filter.template_id, first, record_filter.until))
        ends = min(first - timedelta(milliseconds=1), record_filter.until)
        return RecordFilter(record_filter.template_id, record_filter.since, ends), offset - newer
    ends = datetime.strptime(position.hour, "%Y%m%d%H").replace(tzinfo=UTC) + HOUR - timedelta(milliseconds=1)
    return RecordFilter(record_filter.template_id, record_filter.since, ends), offset - newest - position.newer


def build_cells(stored_at: datetime, created_at: datetime, template_id: str | None) -> list[tuple[str, str]]:
    """The counters that count a record, each with its cell."""
    month = f"{stored_at.astimezone(UTC):%Y%m}"
    cells = (month, f"{month}/{_hour_text(created_at)}")
    groups = [None] if template_id is None else [None, template_id]
    return [cell for group in groups for cell in zip(build_counters(group), cells, strict=True)]


def build_counters(template_id: str | None) -> tuple[str, str]:
    """The monthly counter and the hourly one."""
    group = "" if template_id is None else f"/{template_id}"
    return f"{COUNTER}/months{group}", f"{COUNTER}/hours{group}"


def _parse_position(text: str) -> tuple[datetime, str]:
    stored_at, _, id = text.partition(" ")
    return datetime.fromisoformat(stored_at), id


def _floor(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _ceil(instant: datetime) -> datetime:
    hour = _floor(instant)
    return hour if hour == instant else hour + HOUR


def _hour_text(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y%m%d%H}"
