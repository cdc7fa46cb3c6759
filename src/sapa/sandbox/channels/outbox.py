"""What the simulators of channels were asked, exactly as it arrived, and what else they remember."""

from datetime import datetime

import msgspec
from msgspec import Struct

from sapa.db.pool import Connection, Database, Tx
from sapa.db.sql import sql
from sapa.values.hook_calls import HookAnswer, HookCall

KEPT_DAYS = 30
_HIDDEN = {"authorization", "access-token", "password"}
_NOISE = {"host", "accept", "accept-encoding", "user-agent", "content-length", "connection"}


class OutboxRow(Struct, frozen=True):
    id: int
    source: str
    method: str
    path: str
    headers: msgspec.Raw
    body: str
    status: int
    answer: str
    asked_at: str


NOW = sql("SELECT clock_timestamp() + clock_offset FROM companies WHERE company_id = $1")

INSERT = sql(
    """
    INSERT INTO sandbox_outbox (company_id, source, method, path, headers, body, status, answer, asked_at)
    SELECT $1, $2, $3, $4, $5::text::json, $6, $7, $8, clock_timestamp() + clock_offset
      FROM companies WHERE company_id = $1"""
)

LIST = sql(
    """
    SELECT id, source, method, path, headers, body, status, answer, asked_at
      FROM sandbox_outbox
     WHERE company_id = $1
     ORDER BY id DESC
     LIMIT $2 OFFSET $3""",
    row=OutboxRow,
)

COUNT_ALL = sql("SELECT count(*) FROM sandbox_outbox WHERE company_id = $1")

COUNT = sql(
    """
    INSERT INTO sandbox_counts AS c (company_id, name, count) VALUES ($1, $2, 1)
        ON CONFLICT (company_id, name) DO UPDATE SET count = c.count + 1
    RETURNING count"""
)


LIST_TO_FORGET = sql(
    "SELECT DISTINCT company_id FROM sandbox_outbox WHERE asked_at < now() - make_interval(days => $1)",
    crosses="the worker forgets what was asked long ago, in every company's test environment",
)

FORGET = sql("DELETE FROM sandbox_outbox WHERE company_id = $1 AND asked_at < now() - make_interval(days => $2)")


async def forget_old(database: Database) -> None:
    """The worker's job."""
    async with database.connection() as db:
        companies = [record[0] for record in await db.fetch(LIST_TO_FORGET.text, KEPT_DAYS)]
        for company_id in companies:
            await FORGET.run(db, company_id, KEPT_DAYS)


async def get_now(tx: Connection, company_id: int) -> datetime:
    """The company's time."""
    return datetime.fromisoformat(await NOW.value(tx, company_id))


async def record(tx: Tx, company_id: int, source: str, call: HookCall, answer: HookAnswer) -> None:
    headers = {name: _shown(name, value) for name, value in call.headers.items() if name not in _NOISE}
    await INSERT.run(
        tx, company_id, source, call.method, call.path, msgspec.json.encode(headers).decode(),
        _text(call.body), answer.status, _text(answer.body),
    )  # fmt: skip


async def count(tx: Tx, company_id: int, name: str) -> int:
    """How often this has happened, this time included."""
    number: int = await COUNT.value(tx, company_id, name)
    return number


async def list_page(db: Connection, company_id: int, limit: int, offset: int) -> tuple[list[OutboxRow], int]:
    total: int = await COUNT_ALL.value(db, company_id)
    return await LIST.all(db, company_id, limit, offset), total


def _shown(name: str, value: str) -> str:
    """Tokens open nothing but the simulators; even so they are not shown."""
    return value[:12].rpartition(" ")[0] + " …" if name in _HIDDEN else value


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace").replace("\0", "\ufffd")
