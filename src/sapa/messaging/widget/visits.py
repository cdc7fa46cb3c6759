"""Who stands behind a page: sessions of anonymous visitors, and of those whom the site vouches for."""

import hmac
import secrets
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated

from msgspec import Meta, Struct

from sapa.context import AppContext
from sapa.db.pool import Connection as Db
from sapa.db.pool import Tx
from sapa.http.errors import Invalid
from sapa.messaging.channels.interface import ChannelAccount, Source
from sapa.messaging.channels.widget.types import (
    VISITOR_ID,
    OriginNotAllowed,
    UnknownSession,
    Visitor,
    WidgetNotFound,
    WrongHash,
)
from sapa.messaging.connections.accounts import ConnectedChannel as Chat
from sapa.messaging.connections.accounts import find_by_token
from sapa.messaging.widget import queries as widget
from sapa.values.company import Company

SESSION_DAYS = 180
TOKEN_BYTES = 32
MOST_KEY_LENGTH = 200

Word = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*\Z")]


class VerifiedVisitor(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What the site says of somebody who is signed in there."""

    id: Word
    hash: Annotated[str, Meta(max_length=64)]
    """HMAC-SHA256 of the id."""
    name: Word | None = None
    email: Annotated[str, Meta(max_length=254)] | None = None
    email_hash: Annotated[str, Meta(max_length=64)] | None = None
    """HMAC-SHA256 of id, line feed, e-mail address: only with it the address counts."""


class VisitorSession(Struct, frozen=True):
    """A session that begins or goes on; the token only where it is new."""

    visitor: Visitor
    token: str | None


class WidgetVisit(Struct, frozen=True):
    """A page that is recognised."""

    opened: Chat
    session: bytes
    visitor: Visitor

    @property
    def company(self) -> Company:
        return self.opened.connection.company


async def find_chat(context: AppContext, db: Db, key: str, origin: str | None) -> Chat:
    """The connection that a public key belongs to, on a site that may show it."""
    opened = await find_by_token(context, db, key) if 0 < len(key) <= MOST_KEY_LENGTH else None
    if opened is None or opened.connection.source is not Source.WIDGET:
        raise WidgetNotFound
    if not is_allowed_origin(opened.connection.account, origin):
        raise OriginNotAllowed
    return opened


def is_allowed_origin(account: Mapping[str, str], origin: str | None) -> bool:
    """Sites are listed with commas or spaces between them; without a list, all may."""
    allowed = account.get("origins", "").replace(",", " ").split()
    return not allowed or (origin or "").lower() in {site.rstrip("/").lower() for site in allowed}


async def enter(db: Db, chat: Chat, token: str) -> WidgetVisit:
    """With the token of a session."""
    company_id, session = chat.connection.company.id, _hash(token)
    visitor = await widget.find_session(db, company_id, session, SESSION_DAYS)
    if visitor is None:
        raise UnknownSession
    await widget.record_use(db, company_id, session)
    return WidgetVisit(chat, session, visitor)


async def open_session(
    tx: Tx, connection: ChannelAccount, token: str | None, identified: VerifiedVisitor | None
) -> VisitorSession:
    """A page that brings no session, or an ended one, gets a new one. One that says who is signed in gets theirs.

    Whoever signs in gets a new token, and the one from before opens nothing any more: others may have seen it.
    """
    company_id = connection.company.id
    present = await widget.find_session(tx, company_id, _hash(token), SESSION_DAYS) if token else None
    if identified is None:
        return (
            VisitorSession(present, None)
            if present
            else await _begin(tx, company_id, await _make_visitor(tx, company_id))
        )
    visitor = await identify(tx, connection, identified, present)
    if present is not None and present.external_id == visitor.external_id:
        return VisitorSession(visitor, None)
    if present is not None and present.id == visitor.id:
        await widget.drop_sessions(tx, company_id, visitor.id)
    return await _begin(tx, company_id, visitor)


async def end_session(db: Db, visit: WidgetVisit) -> None:
    await widget.drop_session(db, visit.company.id, visit.session)


async def _begin(tx: Tx, company_id: int, visitor: Visitor) -> VisitorSession:
    token = secrets.token_urlsafe(TOKEN_BYTES)
    await widget.insert_session(tx, company_id, _hash(token), visitor.id)
    return VisitorSession(visitor, token)


async def _make_visitor(tx: Tx, company_id: int, identified: VerifiedVisitor | None = None) -> Visitor:
    id = VISITOR_ID.new()
    await widget.insert_visitor(tx, company_id, id, identified.id if identified else None)
    made = await widget.lock_visitor(tx, company_id, id)
    if made is None and identified:  # somebody else made the same person in this moment
        made = await widget.lock_identified(tx, company_id, identified.id)
    assert made is not None  # noqa: S101 - one of the two was inserted
    return made


async def identify(tx: Tx, connection: ChannelAccount, identified: VerifiedVisitor, present: Visitor | None) -> Visitor:
    """Whom the site vouches for. Somebody new keeps the conversation that they began before they signed in."""
    check_hash(connection.credentials, identified)
    company_id = connection.company.id
    known = await widget.lock_identified(tx, company_id, identified.id)
    if known is None and present is not None and present.external_id is None:
        known = await widget.lock_visitor(tx, company_id, present.id)
    known = known or await _make_visitor(tx, company_id, identified)
    email = identified.email if identified.email_hash else None
    described = await widget.describe(tx, company_id, known.id, identified.id, identified.name, email)
    assert described is not None  # noqa: S101 - the row is locked
    return described


def check_hash(credentials: Mapping[str, str], identified: VerifiedVisitor) -> None:
    secret = credentials.get("secret", "")
    if not secret or not _is_right(secret, identified.id, identified.hash):
        raise WrongHash
    if identified.email_hash is not None:
        if identified.email is None:
            raise Invalid.field("visitor.emailHash", "belongs to an email, and there is none")
        if not _is_right(secret, f"{identified.id}\n{identified.email}", identified.email_hash):
            raise WrongHash("The emailHash does not prove this e-mail address.")


def _is_right(secret: str, text: str, given: str) -> bool:
    right = hmac.new(secret.encode(), text.encode(), sha256).hexdigest()
    return hmac.compare_digest(right.encode(), given.lower().encode())


def _hash(token: str) -> bytes:
    return sha256(token.encode()).digest()
