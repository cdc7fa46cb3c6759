"""Sessions of the web chat: anonymous visitors, and visitors that the site verifies."""

import hmac
import secrets
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated

from msgspec import Meta, Struct

from sapa.context import AppContext
from sapa.customers.types import CustomerRemoved
from sapa.db.pool import Connection, Tx, notify_after_commit
from sapa.http.errors import Invalid
from sapa.messaging.channels.identities import parse_mailbox, parse_number
from sapa.messaging.channels.interface import BadIdentity, ChannelAccount, Source
from sapa.messaging.channels.widget import messages
from sapa.messaging.channels.widget.types import (
    VISITOR_ID,
    OriginNotAllowed,
    UnknownSession,
    Visitor,
    WidgetNotFound,
    WrongHash,
)
from sapa.messaging.connections.accounts import ConnectedChannel as Chat
from sapa.messaging.connections.environment import find_by_token
from sapa.messaging.tickets import build_tickets_channel
from sapa.messaging.widget import queries as widget
from sapa.values.company import Company

SESSION_DAYS = 180
TYPING_SECONDS = 8.0
"""How long after the last sign of it a visitor counts as writing."""
TOKEN_BYTES = 32
MAX_KEY_LENGTH = 200

Word = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*\Z")]


class VerifiedVisitor(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A visitor who is signed in at the site."""

    id: Word
    hash: Annotated[str, Meta(max_length=64)]
    """HMAC-SHA256 of the id."""
    name: Word | None = None
    email: Annotated[str, Meta(max_length=254)] | None = None
    email_hash: Annotated[str, Meta(max_length=64)] | None = None
    """HMAC-SHA256 of id, line feed and e-mail address; without it the address is ignored."""


class VisitorStatement(Struct, frozen=True, forbid_unknown_fields=True):
    """The answers to the form before the chat."""

    name: Word
    contact: Word | None = None


class VisitorSession(Struct, frozen=True):
    """A new or resumed session; the token is set for a new one only."""

    visitor: Visitor
    token: str | None


class WidgetVisit(Struct, frozen=True):
    """An authenticated page."""

    connected: Chat
    session: bytes
    visitor: Visitor

    @property
    def company(self) -> Company:
        return self.connected.connection.company


async def get_chat(context: AppContext, db: Connection, key: str, origin: str | None) -> Chat:
    """The connection with this public key, if the site may show it."""
    connected = await find_by_token(context, db, key) if 0 < len(key) <= MAX_KEY_LENGTH else None
    if connected is None or connected.connection.source is not Source.WIDGET:
        raise WidgetNotFound
    if not is_allowed_origin(connected.connection.account, origin):
        raise OriginNotAllowed
    return connected


def is_allowed_origin(account: Mapping[str, str], origin: str | None) -> bool:
    """Origins are separated by commas or spaces; without a list, all are allowed."""
    allowed = account.get("origins", "").replace(",", " ").split()
    return not allowed or (origin or "").lower() in {site.rstrip("/").lower() for site in allowed}


async def authenticate(db: Connection, chat: Chat, token: str) -> WidgetVisit:
    company_id, session = chat.connection.company.id, _hash(token)
    visitor = await widget.find_session(db, company_id, session, SESSION_DAYS)
    if visitor is None:
        raise UnknownSession
    await widget.record_use(db, company_id, session)
    return WidgetVisit(chat, session, visitor)


async def open_session(
    tx: Tx, connection: ChannelAccount, token: str | None, identified: VerifiedVisitor | None
) -> VisitorSession:
    """A page without a valid session gets a new one. A page with a verified visitor gets the visitor's session.

    Signing in replaces the token, and the old one becomes invalid: others may have seen it.
    """
    company_id = connection.company.id
    current = await widget.find_session(tx, company_id, _hash(token), SESSION_DAYS) if token else None
    if identified is None:
        return (
            VisitorSession(current, None)
            if current
            else await _create_session(tx, company_id, await _create_visitor(tx, company_id))
        )
    visitor = await identify(tx, connection, identified, current)
    if current is not None and current.external_id == visitor.external_id:
        return VisitorSession(visitor, None)
    if current is not None and current.id == visitor.id:
        await widget.drop_sessions(tx, company_id, visitor.id)
    return await _create_session(tx, company_id, visitor)


async def end_session(db: Connection, visit: WidgetVisit) -> None:
    await widget.drop_session(db, visit.company.id, visit.session)


async def record_statement(tx: Tx, visit: WidgetVisit, statement: VisitorStatement) -> None:
    """Nobody has verified it, so it links the visitor to no customer."""
    name, connection = statement.name.strip(), visit.connected.connection
    if not name:
        raise Invalid.field("name", "must not be blank")
    if statement.contact is None and connection.account.get("form") == "contact":
        raise Invalid.field("contact", "is required")
    contact = parse_contact(statement.contact, visit.company.region) if statement.contact else None
    await widget.state(tx, visit.company.id, visit.visitor.id, name, contact)


def parse_contact(text: str, region: str) -> str:
    """An e-mail address or a phone number in its international form."""
    try:
        return parse_mailbox(text.strip(), region) if "@" in text else parse_number(text, region)
    except BadIdentity:
        raise Invalid.field("contact", "must be an e-mail address or a phone number") from None


async def add_simulated(tx: Tx, company_id: int, visitor_id: str, name: str, contact: str) -> None:
    """A simulated visitor who answered the form."""
    await widget.insert_visitor(tx, company_id, visitor_id)
    await widget.state(tx, company_id, visitor_id, name, contact)


async def purge_customer(tx: Tx, company: Company, removed: CustomerRemoved) -> None:
    """Subscribes to deleted customers."""
    await widget.purge_statements(tx, company.id, removed.customer_id)


async def mark_typing(tx: Tx, visit: WidgetVisit) -> None:
    """Notifies the pages that show the visitor's ticket."""
    await widget.mark_typing(tx, visit.company.id, visit.visitor.id)
    notify_after_commit(tx, build_tickets_channel(visit.company.id))


async def list_typing(db: Connection, company_id: int, visitor_ids: list[str]) -> list[str]:
    """Those of the visitors who are writing now."""
    return await widget.list_typing(db, company_id, visitor_ids, TYPING_SECONDS)


async def _create_session(tx: Tx, company_id: int, visitor: Visitor) -> VisitorSession:
    token = secrets.token_urlsafe(TOKEN_BYTES)
    await widget.insert_session(tx, company_id, _hash(token), visitor.id)
    return VisitorSession(visitor, token)


async def _create_visitor(tx: Tx, company_id: int, identified: VerifiedVisitor | None = None) -> Visitor:
    id = VISITOR_ID.new()
    await widget.insert_visitor(tx, company_id, id, identified.id if identified else None)
    visitor = await messages.find_locked_visitor(tx, company_id, id)
    if visitor is None and identified:  # another transaction created the same visitor
        visitor = await widget.find_locked_identified(tx, company_id, identified.id)
    assert visitor is not None  # noqa: S101 - one of the two was inserted
    return visitor


async def identify(tx: Tx, connection: ChannelAccount, identified: VerifiedVisitor, current: Visitor | None) -> Visitor:
    """The verified visitor. A new one keeps the conversation from before signing in."""
    check_hash(connection.credentials, identified)
    company_id = connection.company.id
    visitor = await widget.find_locked_identified(tx, company_id, identified.id)
    if visitor is None and current is not None and current.external_id is None:
        visitor = await messages.find_locked_visitor(tx, company_id, current.id)
    visitor = visitor or await _create_visitor(tx, company_id, identified)
    email = identified.email if identified.email_hash else None
    described = await widget.describe(tx, company_id, visitor.id, identified.id, identified.name, email)
    assert described is not None  # noqa: S101 - the row is locked
    return described


def check_hash(credentials: Mapping[str, str], identified: VerifiedVisitor) -> None:
    secret = credentials.get("secret", "")
    if not secret or not _is_valid_hash(secret, identified.id, identified.hash):
        raise WrongHash
    if identified.email_hash is not None:
        if identified.email is None:
            raise Invalid.field("visitor.emailHash", "must be absent without an email")
        if not _is_valid_hash(secret, f"{identified.id}\n{identified.email}", identified.email_hash):
            raise WrongHash("The emailHash does not prove this e-mail address.")


def _is_valid_hash(secret: str, text: str, received: str) -> bool:
    expected = hmac.new(secret.encode(), text.encode(), sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), received.lower().encode())


def _hash(token: str) -> bytes:
    return sha256(token.encode()).digest()
