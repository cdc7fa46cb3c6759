"""A company's accounts with channels: opened for a call, found for a callback, watched over.

A test environment has an account with every simulator, without anybody opening it and without a row; it never leads
to a live address.
"""

import re
from collections.abc import Mapping
from hashlib import sha256

import msgspec
from msgspec import Struct

from sapa.access.actions import get_company
from sapa.access.types import CompanyNotFound
from sapa.context import Kit
from sapa.db.pool import Connection as Database
from sapa.messaging.channels.interface import Channel, Connection, Source
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.connections import queries, sandbox_accounts
from sapa.messaging.connections.queries import StoredConnection
from sapa.values.company import Company

LONGEST_ERROR = 500

_parse_token = re.compile(r"hook_(?P<company>[0-9]{1,18})_[0-9A-Za-z_-]{43}", re.ASCII).fullmatch


class Opened(Struct, frozen=True):
    """A channel together with a company's account with it."""

    channel: Channel
    connection: Connection
    has_error: bool = False
    """The channel complained of the account, and all is well again once it takes something."""

    @property
    def own_name(self) -> str:
        """Our side of a conversation, as the channel's people see it: a number, an address, a page's id."""
        account = self.connection.account
        known = account.get("phone_number") or account.get("address") or find_account_id(self.channel, account)
        return known or self.connection.source.lower()


async def open_connection(kit: Kit, db: Database, company: Company, source: Source) -> Opened | None:
    """None when the company has no account with this channel."""
    if company.environment == "test":
        return await _open_sandbox(kit, company, source)
    stored = await queries.find_connection(db, company.id, source)
    return _open(kit, company, stored) if stored else None


async def list_connected(kit: Kit, db: Database, company: Company) -> list[Source]:
    """The channels that a company can send over, the oldest connection first."""
    if company.environment == "test":
        return [source for source in Source if source in CHANNELS]
    stored = await queries.list_connections(db, company.id)
    return [Source(each.source) for each in stored if each.status == "connected"]


async def find_by_token(kit: Kit, db: Database, token: str) -> Opened | None:
    """Whose callbacks come to this address; it names its company, so nobody else's rows are looked at."""
    if (found := sandbox_accounts.find_hook(kit, token)) is not None:
        company = await _find_company(db, found.company_id)
        return await _open_sandbox(kit, company, found.source) if company else None
    parts = _parse_token(token)
    company = await _find_company(db, int(parts["company"])) if parts else None
    stored = await queries.find_by_hook(db, company.id, hash_token(token)) if company else None
    return _open(kit, company, stored) if company and stored else None


async def open_by_id(kit: Kit, db: Database, company: Company, connection_id: str) -> Opened | None:
    """For work that was begun before, such as fetching the files of a message."""
    if company.environment == "test":
        source = sandbox_accounts.find_source(company.id, connection_id)
        return await _open_sandbox(kit, company, source) if source else None
    stored = await queries.find_by_id(db, company.id, connection_id)
    return _open(kit, company, stored) if stored and stored.status == "connected" else None


async def note_health(db: Database, company_id: int, connection_id: str, error: str | None) -> None:
    """What the channel last complained of, for people to see; None once all is well."""
    await queries.note_health(db, company_id, connection_id, error[:LONGEST_ERROR] if error else None)


def hash_token(token: str) -> bytes:
    return sha256(token.encode()).digest()


def find_account_id(channel: Channel, account: Mapping[str, str]) -> str:
    """The account as the channel names it: the first field that has to be given and is no secret."""
    named = (account.get(field.name, "") for field in channel.fields if field.is_required and not field.is_secret)
    return next(named, "")


async def _open_sandbox(kit: Kit, company: Company, source: Source) -> Opened | None:
    channel = CHANNELS.get(source)
    if channel is None or company.environment != "test":
        return None
    return Opened(channel, await sandbox_accounts.build_connection(kit, company, channel))


def _open(kit: Kit, company: Company, stored: StoredConnection) -> Opened:
    channel = CHANNELS[Source(stored.source)]
    sealed = kit.vault.open(stored.credentials or b"", company.id, stored.id)
    account = msgspec.json.decode(stored.account, type=dict[str, str])
    connection = Connection(
        company=company,
        id=stored.id,
        source=channel.source,
        address=find_address(kit, channel, account),
        account=account,
        credentials=msgspec.json.decode(sealed, type=dict[str, str]),
        client=kit.client,
        database=kit.database,
    )
    return Opened(channel, connection, has_error=stored.last_error is not None)


def find_address(kit: Kit, channel: Channel, account: Mapping[str, str]) -> str:
    """The operator's word comes first; a mail server is the company's own."""
    if (host := account.get("smtp_host")) is not None:
        return f"{host}:{account.get('smtp_port') or (465 if account.get('security') == 'tls' else 587)}"
    return kit.settings.upstreams.get(channel.source.lower(), channel.address)


async def _find_company(db: Database, company_id: int) -> Company | None:
    try:
        return await get_company(db, company_id)
    except CompanyNotFound:
        return None
