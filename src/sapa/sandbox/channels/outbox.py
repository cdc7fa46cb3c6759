"""Records the requests that channel simulators receive."""

from collections.abc import Sequence

import msgspec

from sapa.db.pool import Connection, Database, Tx
from sapa.sandbox.callbacks import announce_scheduled
from sapa.sandbox.channels import queries
from sapa.sandbox.channels.accounts import SandboxAccount
from sapa.sandbox.channels.queries import OutboxRow
from sapa.sandbox.types import PlannedCallback
from sapa.values.hook_calls import HookAnswer, HookCall

RETENTION_DAYS = 30
MEDIA_BATCH = 100
_HIDDEN = {"authorization", "access-token", "password"}
_NOISE = {"host", "accept", "accept-encoding", "user-agent", "content-length", "connection"}


async def purge_old(database: Database) -> None:
    async with database.connection() as db:
        for company_id in await queries.list_companies_to_purge(db, RETENTION_DAYS):
            await queries.delete_old_requests(db, company_id, RETENTION_DAYS)
        while await queries.purge_media(db, RETENTION_DAYS, MEDIA_BATCH) == MEDIA_BATCH:
            pass


async def record(tx: Tx, company_id: int, source: str, call: HookCall, response: HookAnswer) -> None:
    await queries.insert_request(tx, company_id, _build_request(source, call, response))


async def record_with_callbacks(
    tx: Tx, account: SandboxAccount, call: HookCall, response: HookAnswer, planned: Sequence[PlannedCallback]
) -> None:
    """One statement."""
    request = _build_request(account.source, call, response)
    has_copies = await queries.insert_request(tx, account.company_id, request, account.hook, planned)
    if planned:
        announce_scheduled(tx, planned, has_copies=has_copies)


def _build_request(source: str, call: HookCall, response: HookAnswer) -> dict[str, object]:
    headers = {name: _shown(name, value) for name, value in call.headers.items() if name not in _NOISE}
    return {
        "source": source,
        "method": call.method,
        "path": call.path,
        "headers": msgspec.json.encode(headers).decode(),
        "body": _text(call.body),
        "status": response.status,
        "answer": _text(response.body),
    }


async def list_page(db: Connection, company_id: int, limit: int, offset: int) -> tuple[list[OutboxRow], int]:
    total = await queries.count_requests(db, company_id)
    return await queries.list_requests(db, company_id, limit, offset), total


def _shown(name: str, value: str) -> str:
    """Tokens are masked, although they are valid for simulators only."""
    return value[:12].rpartition(" ")[0] + " …" if name in _HIDDEN else value


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace").replace("\0", "\ufffd")
