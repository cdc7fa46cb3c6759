"""The history of a company that sends a lot: records as the API leaves them, sealed, with their messages and totals."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
from msgspec import Struct

from bench.ground import Ground, SeededCompany, make_company
from sapa.messaging.history_queries import build_cells
from sapa.vault import Vault

MONTHS = 10
TEMPLATES = 20
BATCH = 50_000
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
        rows = Rows(Vault(ground.server.secret_key), company.id, records, first, last)
        for start in range(0, records, BATCH):
            part = rows.build(start, min(start + BATCH, records))
            await connection.copy_records_to_table(TABLE, records=part, columns=COLUMNS)
        await connection.execute(MESSAGES, company.id, timeout=3600)
        await connection.execute(CELLS, company.id, *rows.list_cells())
        await connection.execute("ANALYZE api_requests, messages, counter_cells", timeout=600)
    finally:
        await connection.close()
    return History(company, records, first, last, [str(rows.id(n * 7 % records, 1)) for n in range(1, 200)])


class Rows:
    """What is copied in, and how much of it falls into each hour."""

    def __init__(self, vault: Vault, company_id: int, records: int, first: datetime, last: datetime) -> None:
        self._vault = vault
        self._company_id = company_id
        self._first = first
        self._step = (last - first) / records
        self._counts: Counter[tuple[str, str]] = Counter()
        self._snapshot = _build_snapshot()

    def id(self, number: int, kind: int) -> UUID:
        """The same in every run; of a record (0) or its message (1)."""
        at = int((self._first + number * self._step).timestamp() * 1000)
        return UUID(int=at << 80 | 7 << 76 | kind << 64 | 2 << 62 | number)

    def build(self, start: int, end: int) -> Iterator[tuple[Any, ...]]:
        for number in range(start, end):
            at = self._first + number * self._step
            at = at.replace(microsecond=at.microsecond // 1000 * 1000)
            template = f"template_{number // 3 % TEMPLATES}" if number % 3 == 0 else None
            is_refused = number % 20 == 19
            id = str(self.id(number, 0))
            self._count(at, template)
            yield (
                self._company_id, at, id, at, None if is_refused else str(self.id(number, 1)), template,
                "MSGAPP_CLOUD", "send_message_template" if template else "send_message", at if is_refused else None,
                self._vault.seal(self._snapshot, self._company_id, id),
            )  # fmt: skip

    def _count(self, at: datetime, template: str | None) -> None:
        for place in build_cells(at, at, template):
            self._counts[place] += 1

    def list_cells(self) -> tuple[list[str], list[str], list[int]]:
        counted = list(self._counts.items())
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
