"""Receives callbacks: checks the signature, stores the raw body, responds, and leaves the processing to a worker."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from sapa.context import AppContext
from sapa.db.group_commit import GroupCommit
from sapa.db.pool import Database, Tx
from sapa.http.errors import ApiError, MethodNotAllowed, NotFound
from sapa.http.hooks import Hook, HookTarget
from sapa.messaging.connections.accounts import HOOKS as PREFIX
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.connections.environment import find_by_token
from sapa.messaging.inbound import queries
from sapa.messaging.inbound.account_lookups import AccountLookups
from sapa.messaging.inbound.queries import ReceivedCallback, build_received
from sapa.values.hook_calls import HookAnswer, HookCall
from sapa.values.provider_accounts import BadSignature

_TEXT = {"content-type": "text/plain; charset=utf-8"}
_BATCH = 500
SMALL_BODY = 65_536
"""Up to here hashing a body takes less time than handing it to a thread."""
_DROPPED_HEADERS = {"cookie", "authorization", "x-api-key"}
"""Headers that are not stored."""


class InvalidSignature(ApiError):
    """The callback's signature is not valid."""

    status = 401
    code = "INVALID_SIGNATURE"
    fix = "Check the secret with which the channel was connected, and that no proxy changes the body."


class NotConfirmed(ApiError):
    """The verify token is not the one with which this channel was connected."""

    status = 403
    code = "INVALID_VERIFY_TOKEN"
    fix = "Enter the same verify token on both sides."


async def handle(context: AppContext, call: HookCall) -> HookAnswer:
    connected: ConnectedChannel | None = call.account or await _find_account(context, call.path)
    if connected is None:
        raise NotFound
    if call.method == "GET":
        return _confirm(connected, call)
    if call.method != "POST":
        raise MethodNotAllowed(headers={"allow": "GET, POST"})
    await _check(connected, call)
    received = _build_received(connected, call)
    if len(call.body) < SMALL_BODY:
        await CALLBACKS.run(context.database, connected.connection.company.id, received)
    else:
        async with context.database.statement() as tx:
            await queries.insert_callbacks(tx, connected.connection.company.id, [received])
    return HookAnswer(200, b'{"status":"received"}')


def _confirm(connected: ConnectedChannel, call: HookCall) -> HookAnswer:
    """Responds to the channel's verification of the callback address."""
    challenge = connected.channel.confirm(connected.connection.credentials, call.query)
    if challenge is None:
        raise NotConfirmed
    return HookAnswer(200, challenge.encode(), _TEXT)


async def _find_target(context: AppContext, path: str) -> HookTarget | None:
    connected = await _find_account(context, path)
    max_bytes = connected.channel.capabilities.max_callback_bytes if connected else None
    return None if max_bytes is None else HookTarget(connected, max_bytes)


async def _find_account(context: AppContext, path: str) -> ConnectedChannel | None:
    return await ACCOUNTS.find(context, path.removeprefix(PREFIX))


async def _read_account(context: AppContext, token: str) -> ConnectedChannel | None:
    async with context.database.connection() as db:
        return await find_by_token(context, db, token)


ACCOUNTS = AccountLookups(_read_account)


async def _check(connected: ConnectedChannel, call: HookCall) -> None:
    """Checks the signature only. Large bodies are hashed in a thread, so that other requests do not wait."""
    check, credentials = connected.channel.check_callback, connected.connection.credentials
    try:
        if len(call.body) < SMALL_BODY:
            check(credentials, call.headers, call.body)
        else:
            await asyncio.to_thread(check, credentials, call.headers, call.body)
    except BadSignature:
        raise InvalidSignature from None


def _build_received(connected: ConnectedChannel, call: HookCall) -> ReceivedCallback:
    connection = connected.connection
    headers = {name: value for name, value in call.headers.items() if name not in _DROPPED_HEADERS}
    return build_received(connection.id, connection.source, headers, call.body)


async def _store(tx: Tx, company_id: int, received: Sequence[ReceivedCallback]) -> Sequence[None]:
    await queries.insert_callbacks(tx, company_id, received)
    return [None] * len(received)


CALLBACKS = GroupCommit(_store, lambda received: received.connection_id, is_one_statement=True)
"""Those that arrive together are stored by one statement."""


async def replay(tx: Tx, connected: ConnectedChannel, since: datetime, until: datetime | None = None) -> int:
    """Processes the callbacks of a period again; items that are stored already do not change."""
    connection = connected.connection
    return await queries.replay(tx, connection.company.id, connection.id, since, until or datetime.now(UTC))


async def purge_old(database: Database) -> None:
    """Worker job: callbacks are kept for a month."""
    async with database.connection() as db:
        companies = await queries.list_companies_to_purge(db)
    for company_id in companies:
        gone = _BATCH
        while gone == _BATCH:
            async with database.transaction() as tx:
                gone = await queries.purge(tx, company_id, _BATCH)


HOOKS: list[Hook[AppContext]] = [Hook(PREFIX, handle, _find_target, keeps_order=True)]
