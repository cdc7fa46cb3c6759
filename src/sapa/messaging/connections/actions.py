"""Connects, verifies and disconnects channels."""

import re
import secrets
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from sapa.context import AppContext
from sapa.db.pool import Connection, Tx
from sapa.http.errors import FieldError, Invalid
from sapa.messaging.channels.abilities import Embeddable, Renewable
from sapa.messaging.channels.interface import (
    BadAccount,
    Channel,
    ChannelAccount,
    Source,
)
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.connections import accounts, queries
from sapa.messaging.connections.accounts import HOOKS, STORED, ConnectedChannel
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.connections.queries import StoredChannelConnection
from sapa.messaging.connections.types import (
    CONNECTION_ID,
    AccountRefused,
    ChannelConnection,
    ChannelNotConnected,
    NewChannelConnection,
    OtherAccount,
    SandboxChannel,
)
from sapa.outbound.client import NotSent, Unclear
from sapa.values.company import Company
from sapa.values.provider_accounts import AccountField
from sapa.values.sealing import ResealedBatch, Vault

PUBLIC_KEY = "public_key"
"""Beside the credentials of an embedded channel."""


class ConnectionDraft(Struct, frozen=True):
    """A connection before it is stored."""

    channel: Channel
    account: dict[str, str]
    credentials: dict[str, str]
    generated: dict[str, str]


async def prepare(
    context: AppContext, db: Connection, company: Company, source: Source, fields: Mapping[str, str]
) -> ConnectionDraft:
    """A missing field keeps its value if the same account is connected already and its secrets go to the same place."""
    if company.is_test:
        raise SandboxChannel
    channel = CHANNELS[source]
    existing = await STORED.find_by_source(context, db, company, source)
    stored = _list_stored_fields(channel, existing, fields)
    values = {name: value for name, value in {**stored, **fields}.items() if value}
    _check_destinations(channel, stored, fields, values)
    generated = {
        field.name: secrets.token_urlsafe(32)
        for field in channel.fields
        if field.is_generated and field.name not in values
    }
    return _build_draft(channel, {**values, **generated}, generated, stored)


def _list_stored_fields(
    channel: Channel, existing: ConnectedChannel | None, fields: Mapping[str, str]
) -> Mapping[str, str]:
    if existing is None:
        return {}
    known = {field.name for field in channel.fields}
    both = {**existing.connection.account, **existing.connection.credentials}
    stored = {name: value for name, value in both.items() if name in known}
    account_id = accounts.get_account_id(channel, {**stored, **fields})
    return stored if account_id == accounts.get_account_id(channel, stored) else {}


def _check_destinations(
    channel: Channel, stored: Mapping[str, str], fields: Mapping[str, str], values: Mapping[str, str]
) -> None:
    """Otherwise the stored secret could be read by sending it to a server of one's own."""
    for field in channel.fields:
        has_moved = any(stored.get(name) != values.get(name) for name in field.destination)
        if has_moved and field.name in stored and field.name not in fields:
            raise Invalid.field(field.name, "must be entered again, because the server that gets it changes")


def _build_draft(
    channel: Channel, values: dict[str, str], generated: dict[str, str], stored: Mapping[str, str]
) -> ConnectionDraft:
    """Raises Invalid for fields that are missing, unknown or malformed. A stored value was accepted before."""
    fields_by_name = {field.name: field for field in channel.fields}
    if unknown := sorted(values.keys() - fields_by_name.keys()):
        raise Invalid.field(unknown[0], f"is not a field of {channel.label}. Use {', '.join(fields_by_name)}")
    changed = [field for field in channel.fields if values.get(field.name, "") != stored.get(field.name)]
    problems = [FieldError(field.name, problem) for field in changed if (problem := _check(field, values))]
    if problems:
        raise Invalid(f"{problems[0].field}: {problems[0].message}", details=problems)
    account = {name: value for name, value in values.items() if not fields_by_name[name].is_secret}
    return ConnectionDraft(channel, account, {name: values[name] for name in values.keys() - account.keys()}, generated)


def _check(field: AccountField, values: Mapping[str, str]) -> str | None:
    """What is wrong with a field's value."""
    value = values.get(field.name, "")
    if not value:
        return f"is required: {field.label}" if field.is_required else None
    if len(value) <= field.max_length and value.isprintable() and re.fullmatch(field.pattern, value):
        return None
    return f"is not valid. {field.hint}" if field.hint else f"is not valid: {field.label}"


async def check(context: AppContext, company: Company, draft: ConnectionDraft) -> None:
    """Asks the channel to verify the account; raises AccountRefused. Makes an outbound call."""
    address = accounts.get_address(context, draft.channel, draft.account)
    trial = ChannelAccount(
        company, CONNECTION_ID.new(), draft.channel.source, address, draft.account, draft.credentials, context.client,
        context.database,
    )  # fmt: skip
    if (error := await verify(ConnectedChannel(draft.channel, trial))) is not None:
        raise AccountRefused(f"{draft.channel.label} does not accept the account: {error}")


async def connect(
    context: AppContext, tx: Tx, company: Company, draft: ConnectionDraft, is_new_hook: bool = False
) -> NewChannelConnection:
    """Stores a connection. Connecting the same account again resumes the old connection."""
    source, account_id = draft.channel.source, accounts.get_account_id(draft.channel, draft.account)
    await queries.lock_company(tx, company.id)
    existing = await queries.find_connection(tx, company.id, source)
    if existing is not None and existing.account_id != account_id:
        raise OtherAccount
    stored = existing or await queries.find_by_account(tx, company.id, source, account_id)
    token = f"hook_{company.id}_{secrets.token_urlsafe(32)}" if existing is None or is_new_hook else None
    if isinstance(draft.channel, Embeddable):
        draft = await _keep_public_key(context, tx, company, draft, token)
    id = await _store(context, tx, company, draft, stored, token)
    address = context.settings.server.address
    hook_url = f"{address}{HOOKS}{token}" if token else None
    snippet = await find_snippet(context, tx, company, source)
    return NewChannelConnection(await get_info(context, tx, company, id), hook_url, draft.generated, snippet)


async def _keep_public_key(
    context: AppContext, tx: Tx, company: Company, draft: ConnectionDraft, token: str | None
) -> ConnectionDraft:
    """The key of an embedded chat is in every page that shows it: it is kept, so that it can be shown again."""
    existing = await STORED.find_by_source(context, tx, company, draft.channel.source)
    key = token or (existing.connection.credentials.get(PUBLIC_KEY) if existing else None)
    return msgspec.structs.replace(draft, credentials=draft.credentials | ({PUBLIC_KEY: key} if key else {}))


async def find_snippet(context: AppContext, db: Connection, company: Company, source: Source) -> str | None:
    """The HTML that shows an embedded channel; None for other channels, and where its key was not kept."""
    channel, accounts_of = CHANNELS[source], get_environment(company).accounts
    if not isinstance(channel, Embeddable):
        return None
    connected = await accounts_of.find_by_source(context, db, company, source)
    hook = accounts_of.find_hook(context, company, source)
    key = hook.rpartition("/")[2] if hook else connected and connected.connection.credentials.get(PUBLIC_KEY)
    return channel.build_snippet(context.settings.server.address, key) if key else None


async def _store(
    context: AppContext,
    tx: Tx,
    company: Company,
    draft: ConnectionDraft,
    stored: StoredChannelConnection | None,
    token: str | None,
) -> str:
    id = stored.id if stored else CONNECTION_ID.new()
    sealed = context.vault.seal(msgspec.json.encode(draft.credentials), company.id, id)
    account = msgspec.json.encode(draft.account).decode()
    hook_hash = accounts.hash_token(token) if token else None
    is_renewable = isinstance(draft.channel, Renewable) and bool(draft.credentials.get("refresh_token"))
    if stored is not None:
        await queries.replace_connection(tx, company.id, id, account, sealed, hook_hash, is_renewable)
    else:
        account_id = accounts.get_account_id(draft.channel, draft.account)
        source = draft.channel.source
        await queries.insert_connection(
            tx, company.id, id, source, account_id, account, sealed, hook_hash or b"", is_renewable
        )
    return id


async def disconnect(tx: Tx, company: Company, source: Source) -> None:
    """Deletes the account's credentials and the hook's address. Messages stay."""
    if company.is_test:
        raise SandboxChannel
    stored = await queries.find_connection(tx, company.id, source)
    if stored is None or not await queries.disconnect(tx, company.id, stored.id):
        raise ChannelNotConnected


async def reseal(tx: Tx, vault: Vault, company_id: int, after: str, limit: int) -> ResealedBatch:
    """One batch of a rotation of the secret key."""
    batch = vault.reseal(await queries.lock_sealed(tx, company_id, after, limit), company_id)
    await queries.replace_sealed(tx, company_id, batch.sealed)
    return batch


async def verify(connected: ConnectedChannel) -> str | None:
    """The channel's objection to the account; None if it accepts it. Makes an outbound call."""
    try:
        await connected.channel.verify(connected.connection)
    except (BadAccount, NotSent, Unclear) as error:
        return connected.connection.mask(str(error) or type(error).__name__)
    return None


async def record_verified(db: Connection, company: Company, connection_id: str, error: str | None) -> None:
    if error is None:
        await queries.record_verified(db, company.id, connection_id)
    else:
        await accounts.record_health(db, company.id, connection_id, error)


async def test(context: AppContext, company: Company, source: Source) -> ChannelConnection:
    """Verifies the account again and stores the result. Makes an outbound call."""
    async with context.database.connection() as db:
        connected = await get_environment(company).accounts.find_by_source(context, db, company, source)
    if connected is None:
        raise ChannelNotConnected
    error = await verify(connected)
    async with context.database.connection() as db:
        await record_verified(db, company, connected.connection.id, error)
        return await get_info(context, db, company, connected.connection.id)


def find_channel(name: str) -> Channel | None:
    return next((channel for source, channel in CHANNELS.items() if source == name), None)


def list_channels() -> list[Channel]:
    return list(CHANNELS.values())


async def get_info(context: AppContext, db: Connection, company: Company, id: str) -> ChannelConnection:
    infos = await get_environment(company).accounts.list_infos(context, db, company)
    info = next((each for each in infos if each.id == id), None)
    if info is None:
        raise ChannelNotConnected
    return info
