"""A company's accounts with channels, for sends, callbacks and people.

A live company's accounts are stored. A test company has an account with every simulator; the sandbox provides them
through the port in `environment.py`, and they never lead to a live address.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Protocol

import msgspec
from msgspec import Struct

from sapa.access.actions import get_company
from sapa.access.types import CompanyNotFound
from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.messaging.channels.abilities import OwnServer
from sapa.messaging.channels.interface import Channel, ChannelAccount, Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.connections import queries
from sapa.messaging.connections.queries import StoredChannelConnection
from sapa.messaging.connections.types import ChannelConnection, SimulatorAccount
from sapa.values.company import Company
from sapa.values.sealing import Vault

HOOKS = "/hooks/channels/"
MAX_ERROR_LENGTH = 500

_parse_token = re.compile(r"hook_(?P<company>[0-9]{1,18})_[0-9A-Za-z_-]{43}", re.ASCII).fullmatch


class ConnectedChannel(Struct, frozen=True):
    """A channel and a company's account with it."""

    channel: Channel
    connection: ChannelAccount
    has_error: bool = False
    """The channel rejected the account. Cleared when the channel accepts a message."""

    @property
    def own_name(self) -> str:
        """The company's side of a conversation as customers see it: a number, an address, a page's id."""
        account = self.connection.account
        names = next((account[field] for field in self.channel.own_fields if account.get(field)), None)
        return names or get_account_id(self.channel, account) or self.connection.source.lower()


class Accounts(Protocol):
    """The source of a company's accounts."""

    async def find_unstored(self, context: AppContext, company: Company, source: Source) -> ConnectedChannel | None:
        """An account that is known without the database; None if accounts are stored."""

    async def find_by_source(
        self, context: AppContext, db: Connection, company: Company, source: Source
    ) -> ConnectedChannel | None:
        """None if the company has no account with this channel."""

    async def find_by_id(
        self, context: AppContext, db: Connection, company: Company, connection_id: str
    ) -> ConnectedChannel | None:
        """For work that was started earlier, such as fetching the files of a message."""

    async def find_by_token(self, context: AppContext, db: Connection, token: str) -> ConnectedChannel | None:
        """The account whose callback address ends with this token."""

    async def list_sources(self, db: Connection, company: Company) -> Sequence[Source]:
        """The connected channels, oldest connection first."""

    async def list_infos(self, context: AppContext, db: Connection, company: Company) -> Sequence[ChannelConnection]:
        """All current and former connections, the newest last."""

    def find_hook(self, context: AppContext, company: Company, source: Source) -> str | None:
        """The callback address; None if it is shown only once."""

    def find_simulator(self, context: AppContext, company: Company, source: Source) -> SimulatorAccount | None:
        """The account for programs that use the simulator of a channel; None in a live environment."""


class StoredAccounts:
    async def find_unstored(self, context: AppContext, company: Company, source: Source) -> ConnectedChannel | None:
        return None

    async def find_by_source(
        self, context: AppContext, db: Connection, company: Company, source: Source
    ) -> ConnectedChannel | None:
        stored = await queries.find_connection(db, company.id, source)
        return _open(context, company, stored) if stored else None

    async def find_by_id(
        self, context: AppContext, db: Connection, company: Company, connection_id: str
    ) -> ConnectedChannel | None:
        stored = await queries.find_by_id(db, company.id, connection_id)
        return _open(context, company, stored) if stored and stored.status == "connected" else None

    async def find_by_token(self, context: AppContext, db: Connection, token: str) -> ConnectedChannel | None:
        """The token holds the company's id, so only that company's rows are searched."""
        parts = _parse_token(token)
        found = await queries.find_by_hook(db, int(parts["company"]), hash_token(token)) if parts else None
        if found is None:
            return None
        account = bytes(found.account)
        return open_account(
            context, found.company, Source(found.source), found.id, account, found.credentials, found.last_error
        )

    async def list_sources(self, db: Connection, company: Company) -> Sequence[Source]:
        stored = await queries.list_connections(db, company.id)
        return [Source(each.source) for each in stored if each.status == "connected"]

    async def list_infos(self, context: AppContext, db: Connection, company: Company) -> Sequence[ChannelConnection]:
        return [_build_info(context, stored) for stored in await queries.list_connections(db, company.id)]

    def find_hook(self, context: AppContext, company: Company, source: Source) -> str | None:
        return None

    def find_simulator(self, context: AppContext, company: Company, source: Source) -> SimulatorAccount | None:
        return None


STORED = StoredAccounts()


async def record_health(db: Connection, company_id: int, connection_id: str, error: str | None) -> None:
    """Stores the channel's last complaint about the account; None clears it."""
    await queries.record_health(db, company_id, connection_id, error[:MAX_ERROR_LENGTH] if error else None)


def hash_token(token: str) -> bytes:
    return sha256(token.encode()).digest()


def get_account_id(channel: Channel, account: Mapping[str, str]) -> str:
    """The channel's id of the account: the first field that is required and not secret."""
    names = (account.get(field.name, "") for field in channel.fields if field.is_required and not field.is_secret)
    return next(names, "")


def get_address(context: AppContext, channel: Channel, account: Mapping[str, str]) -> str:
    own = _find_own_server(channel.source)
    if own is not None:
        return own.get_server(account)
    return context.settings.upstreams.get(channel.source.lower(), channel.address)


# Remembered: comparing an object with a protocol takes many times as long as everything else here.
@lru_cache
def _find_own_server(source: Source) -> OwnServer | None:
    channel = CHANNELS[source]
    return channel if isinstance(channel, OwnServer) else None


async def find_company(db: Connection, company_id: int) -> Company | None:
    try:
        return await get_company(db, company_id)
    except CompanyNotFound:
        return None


def _open(context: AppContext, company: Company, stored: StoredChannelConnection) -> ConnectedChannel:
    source, credentials = Source(stored.source), stored.credentials or b""
    return open_account(context, company, source, stored.id, bytes(stored.account), credentials, stored.last_error)


def open_account(
    context: AppContext,
    company: Company,
    source: Source,
    id: str,
    account: bytes,
    credentials: bytes,
    last_error: str | None,
) -> ConnectedChannel:
    """The account of a stored connection."""
    channel, public = CHANNELS[source], _decode_account(account)
    connection = ChannelAccount(
        company=company,
        id=id,
        source=source,
        address=get_address(context, channel, public),
        account=public,
        credentials=_open_credentials(context.vault, credentials, company.id, id),
        client=context.client,
        database=context.database,
    )
    return ConnectedChannel(channel, connection, has_error=last_error is not None)


# Remembered by what is stored: a changed account is another one.
@lru_cache(maxsize=1024)
def _decode_account(account: bytes) -> Mapping[str, str]:
    return msgspec.json.decode(account, type=dict[str, str])


@lru_cache(maxsize=1024)
def _open_credentials(vault: Vault, sealed: bytes, company_id: int, id: str) -> Mapping[str, str]:
    return msgspec.json.decode(vault.open(sealed, company_id, id), type=dict[str, str])


def _build_info(context: AppContext, stored: StoredChannelConnection) -> ChannelConnection:
    return ChannelConnection(
        id=stored.id,
        company_id=stored.company_id,
        source=Source(stored.source),
        channel=CHANNELS[Source(stored.source)].label,
        account=msgspec.json.decode(stored.account, type=dict[str, str]),
        secrets=_list_secrets(context, stored),
        status=stored.status,
        health=_get_health(stored),
        last_error=stored.last_error,
        last_error_at=stored.last_error_at,
        verified_at=stored.verified_at,
        connected_at=stored.connected_at,
        disconnected_at=stored.disconnected_at,
    )


def _list_secrets(context: AppContext, stored: StoredChannelConnection) -> list[str]:
    if stored.credentials is None:
        return []
    connected = context.vault.open(stored.credentials, stored.company_id, stored.id)
    known = {field.name for field in CHANNELS[Source(stored.source)].fields}
    return sorted(known & msgspec.json.decode(connected, type=dict[str, str]).keys())


def _get_health(stored: StoredChannelConnection) -> str:
    if stored.status != "connected":
        return stored.status
    if stored.last_error is not None:
        return "failing"
    return "ok" if stored.verified_at else "unverified"
