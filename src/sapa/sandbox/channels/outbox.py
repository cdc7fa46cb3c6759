"""What the simulators of channels were asked, exactly as it arrived, and what else they remember."""

from datetime import datetime

import msgspec

from sapa.db.pool import Connection, Database, Tx
from sapa.http.hooks import HookAnswer, HookCall
from sapa.sandbox.channels import queries
from sapa.sandbox.channels.queries import OutboxRow

KEPT_DAYS = 30
_HIDDEN = {"authorization", "access-token", "password"}
_NOISE = {"host", "accept", "accept-encoding", "user-agent", "content-length", "connection"}


async def forget_old(database: Database) -> None:
    """The worker's job."""
    async with database.connection() as db:
        companies = [record[0] for record in await db.fetch(queries.LIST_TO_FORGET.text, KEPT_DAYS)]
        for company_id in companies:
            await queries.FORGET.run(db, company_id, KEPT_DAYS)


async def get_now(tx: Connection, company_id: int) -> datetime:
    """The company's time."""
    return datetime.fromisoformat(await queries.NOW.value(tx, company_id))


async def record(tx: Tx, company_id: int, source: str, call: HookCall, answer: HookAnswer) -> None:
    headers = {name: _shown(name, value) for name, value in call.headers.items() if name not in _NOISE}
    await queries.INSERT.run(
        tx, company_id, source, call.method, call.path, msgspec.json.encode(headers).decode(),
        _text(call.body), answer.status, _text(answer.body),
    )  # fmt: skip


async def count(tx: Tx, company_id: int, name: str) -> int:
    """How often this has happened, this time included."""
    number: int = await queries.COUNT.value(tx, company_id, name)
    return number


async def list_page(db: Connection, company_id: int, limit: int, offset: int) -> tuple[list[OutboxRow], int]:
    total: int = await queries.COUNT_ALL.value(db, company_id)
    return await queries.LIST.all(db, company_id, limit, offset), total


def _shown(name: str, value: str) -> str:
    """Tokens open nothing but the simulators; even so they are not shown."""
    return value[:12].rpartition(" ")[0] + " …" if name in _HIDDEN else value


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace").replace("\0", "\ufffd")
