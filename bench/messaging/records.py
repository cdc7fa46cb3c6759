"""The history of a company that sends a lot: records as the API leaves them, sealed, with their messages and totals."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import msgspec
from msgspec import Struct

from bench.ground import Ground, SeededCompany, make_company
from sapa.messaging.history.queries import build_cells
from sapa.values.sealing import Vault

MONTHS = 10
TEMPLATES = 20
BATCH = 50_000
HOUR_MILLIS = 3_600_000
TABLE = "api_requests"
COLUMNS = [
    "company_id", "stored_at", "id", "created_at", "message_id", "template_id", "source", "endpoint_type", "failed_at",
    "snapshot",
]  # fmt: skip

PARTITION = """
    CREATE TABLE IF NOT EXISTS api_requests_{month:%Y%m} PARTITION OF api_requests
       FOR VALUES FROM ('{month:%Y-%m-%d}') TO ('{next:%Y-%m-%d}')"""

# One message for each record that has one, sent, delivered and mostly read.
MESSAGES = """
    INSERT INTO messages (company_id, id, direction, source, connection_id, identity_kind, identity, client_number,
                          connected_number, provider_id, type, body, template_id, feature_source, status, created_at,
                          accepted_at, sent_at, delivered_at, read_at, request_id, request_stored_at)
    SELECT company_id, message_id, 'out', source, 'chan_01jc9y3q5me8w92v7x4t6r0n1k', 'phone', number, number,
           '+622150001234', 'wamid.' || message_id, 'text', 'Halo Ayu, pesanan INV-1042 sudah dikirim.', template_id,
           'API', 'read', created_at, created_at, created_at, created_at + interval '1 second',
           created_at + interval '9 seconds', id, stored_at
      FROM api_requests
     CROSS JOIN LATERAL (SELECT '+62811' || lpad((hashtext(id) & 9999999)::text, 7, '0') AS number) AS n
     WHERE company_id = $1 AND message_id IS NOT NULL"""

CELLS = """
    INSERT INTO counter_cells (company_id, counter, cell, total)
    SELECT $1, * FROM unnest($2::text[], $3::text[], $4::bigint[])"""


class History(Struct, frozen=True):
    company: SeededCompany
    records: int
    first: datetime
    last: datetime
    message_ids: list[str]
    """Some of them."""


async def make_history(ground: Ground, name: str, records: int) -> History:
    company = await make_company(ground, name)
    last = datetime.now(UTC).replace(microsecond=0)
    first = last - timedelta(days=30 * MONTHS - 15)
    connection = await asyncpg.connect(ground.server.owner_url)
    try:
        for month in _months(first, last):
            following = (month + timedelta(days=32)).replace(day=1)
            await connection.execute(PARTITION.format(month=month, next=following))
        # Put in order once, when all is there: that is faster than row by row.
        indexes = await _drop_indexes(connection, "messages")
        rows = Rows(Vault(ground.server.secret_key), company.id, records, first, last)
        for start in range(0, records, BATCH):
            part = rows.build(start, min(start + BATCH, records))
            await connection.copy_records_to_table(TABLE, records=part, columns=COLUMNS)
        await connection.execute(MESSAGES, company.id, timeout=3600)
        for definition in indexes:
            await connection.execute(definition, timeout=3600)
        await connection.execute(CELLS, company.id, *rows.list_cells())
        await connection.execute("ANALYZE api_requests, messages, counter_cells", timeout=600)
    finally:
        await connection.close()
    return History(company, records, first, last, [rows.id(n * 7 % records, 1) for n in range(1, 200)])


async def _drop_indexes(connection: "asyncpg.Connection[asyncpg.Record]", table: str) -> list[str]:
    """All but the primary key; what makes them again."""
    query = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = $1 AND indexname <> $1 || '_pkey'"
    found = await connection.fetch(query, table)
    for row in found:
        await connection.execute(f"DROP INDEX {row['indexname']}")
    return [row["indexdef"] for row in found]


class Rows:
    """What is copied in, and how much of it falls into each hour."""

    def __init__(self, vault: Vault, company_id: int, records: int, first: datetime, last: datetime) -> None:
        self._vault = vault
        self._company_id = company_id
        self._first = first
        self._millis = int(first.timestamp()) * 1000
        self._step = (last - first) // timedelta(microseconds=1) // records
        """Microseconds from one record to the next."""
        self._counts: Counter[tuple[int, str | None]] = Counter()
        """By hour and template."""
        self._snapshot = _build_snapshot()

    def id(self, number: int, kind: int) -> str:
        """A UUID, the same in every run; of a record (0) or its message (1)."""
        at = f"{self._millis + number * self._step // 1000:012x}"
        return f"{at[:8]}-{at[8:]}-7{kind:03x}-8000-{number:012x}"

    def build(self, start: int, end: int) -> Iterator[tuple[Any, ...]]:
        for number in range(start, end):
            millis = number * self._step // 1000
            at = self._first + timedelta(milliseconds=millis)
            template = f"template_{number // 3 % TEMPLATES}" if number % 3 == 0 else None
            is_refused = number % 20 == 19
            id = self.id(number, 0)
            self._counts[(self._millis + millis) // HOUR_MILLIS, template] += 1
            yield (
                self._company_id, at, id, at, None if is_refused else self.id(number, 1), template,
                "MSGAPP_CLOUD", "send_message_template" if template else "send_message", at if is_refused else None,
                self._vault.seal(self._snapshot, self._company_id, id),
            )  # fmt: skip

    def list_cells(self) -> tuple[list[str], list[str], list[int]]:
        cells: Counter[tuple[str, str]] = Counter()
        for (hour, template), count in self._counts.items():
            at = datetime.fromtimestamp(hour * HOUR_MILLIS / 1000, UTC)
            for place in build_cells(at, at, template):
                cells[place] += count
        counted = list(cells.items())
        return [name for (name, _), _ in counted], [cell for (_, cell), _ in counted], [n for _, n in counted]


def _months(first: datetime, last: datetime) -> Iterator[datetime]:
    month = first.replace(day=1, hour=0, minute=0, second=0)
    while month <= last:
        yield month
        month = (month + timedelta(days=32)).replace(day=1)


def _build_snapshot() -> bytes:
    """As large as those of real calls."""
    headers = {"x-api-key": "svc_live_" + "x" * 38, "content-type": "application/json", "user-agent": "shop/1.0"}
    request = {
        "ip": "203.0.113.7", "ips": ["203.0.113.7"],
        "body": {"to": "+628123456789", "message": "Halo Ayu, pesanan INV-1042 sudah dikirim."},
        "query": {}, "baseUrl": "/messaging/v1", "headers": headers, "hostname": "sapa.example.com",
    }  # fmt: skip
    data = {"ack": 1, "body": "Halo Ayu, pesanan INV-1042 sudah dikirim.", "type": "text", "status": "sent"}
    return msgspec.json.encode({"request": request, "response": {"data": data}})
