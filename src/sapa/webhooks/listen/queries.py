"""How a stream reads events."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from sapa.db.pool import Connection
from sapa.db.sql import sql

LONGEST_TRANSACTION_SECONDS = 30


class EventScan(Struct, frozen=True):
    """One row of a scan; without an event, the fields from `id` on are None.

    Events recorded before `settled`, and events of transactions before `oldest`, are all visible by now.
    """

    settled: datetime
    oldest: int
    id: str | None
    created_at: datetime | None
    number: int | None


# No row at all means that the token is no longer valid. `xmin` holds the last 32 bits of a transaction's number.
SCAN = sql(
    f"""
    SELECT now() - interval '{LONGEST_TRANSACTION_SECONDS} seconds' AS settled, here.oldest,
           seen.id, seen.created_at, seen.number
      FROM developer_tokens t
      JOIN companies c ON c.company_id = $1
     CROSS JOIN LATERAL (
           SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest,
                  pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next) AS here
      LEFT JOIN LATERAL (
           SELECT v.id, v.created_at, v.number
             FROM events v
            WHERE v.company_id = $1
              AND v.created_at >= coalesce($3::timestamptz,
                                           now() - interval '{LONGEST_TRANSACTION_SECONDS} seconds')
              AND ($3 IS NULL OR (v.created_at, v.number) > ($3::timestamptz, $4))
              AND (v.kind = ANY($5) OR $5 = '{{}}')
              AND ((here.next - v.xmin::text::bigint) & 4294967295 <= here.next - $6 OR $6 > here.next)
            ORDER BY v.created_at, v.number
            LIMIT $7) AS seen ON true
     WHERE t.company_id = $1 AND t.hash = $2 AND t.expires_at > now() + c.clock_offset""",
    row=EventScan,
)


class RecordedEvent(Struct, frozen=True):
    id: str
    kind: str
    resource_id: str
    body: bytes
    created_at: str


READ = sql(
    """
    SELECT v.id, v.kind, v.resource_id, v.body, v.created_at
      FROM unnest($2::text[], $3::timestamptz[]) AS w (id, created_at)
      JOIN events v ON v.id = w.id AND v.created_at = w.created_at
     WHERE v.company_id = $1
       AND v.created_at BETWEEN $4 AND $5
     ORDER BY v.created_at, v.number""",
    row=RecordedEvent,
)


async def scan_events(
    db: Connection, company_id: int, token: bytes, after: tuple[datetime | None, int], kinds: list[str], oldest: int,
    limit: int,
) -> list[EventScan]:  # fmt: skip
    """Events after a time and number that were written by the transaction `oldest` or later ones."""
    created_at, number = after
    return await SCAN.all(db, company_id, token, created_at, number, kinds, oldest, limit)


async def list_events(db: Connection, company_id: int, events: Sequence[EventScan]) -> list[RecordedEvent]:
    if not events:
        return []
    ids, times = [event.id for event in events], [event.created_at for event in events]
    return await READ.all(db, company_id, ids, times, times[0], times[-1])
