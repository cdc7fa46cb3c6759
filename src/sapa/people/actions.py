"""How people come, sign in and leave. The console and the command line both come through here."""

import secrets
from hashlib import sha256

from msgspec import Struct

from sapa.access.types import CompanyNotFound
from sapa.db.pool import Connection, Database, Tx
from sapa.http.errors import Invalid, NotFound
from sapa.people import passwords, queries
from sapa.people.types import (
    AuditEntry,
    BelongsElsewhere,
    ConsoleSession,
    LastOwner,
    LinkUsed,
    Member,
    Membership,
    OneTimeLink,
    PasswordChanged,
    Purpose,
    Role,
    TooManyAttempts,
    WrongPassword,
)
from sapa.values.emails import BadEmail, parse_email

SESSION_SECONDS = 14 * 24 * 3600
LINK_SECONDS = {Purpose.SETUP: 7 * 24 * 3600, Purpose.INVITATION: 7 * 24 * 3600, Purpose.RESET: 3600}
WINDOW_SECONDS = 15 * 60
MOST_FAILURES = {"account": 10, "address": 50}
LONGEST_NAME = 100
LONGEST_EMAIL = 320
NOBODY = "-"
LANGUAGES = ("en", "id")
AUDIT_PAGE = 50


class Newcomer(Struct, frozen=True):
    """Who uses the set-up link: the first owner."""

    email: str
    name: str
    language: str = "en"


class Origin(Struct, frozen=True):
    """Where somebody signs in from."""

    address: str
    browser: str


async def sign_in(database: Database, email: str, password: str, origin: Origin) -> str:
    """A new session's secret."""
    key = fold_email(email)
    await _count_attempt(database, key, origin)
    async with database.connection() as db:
        stored = await queries.FIND_PASSWORD.find(db, key)
    if not await passwords.is_right(password, stored.password_hash if stored else None) or stored is None:
        raise WrongPassword
    async with database.transaction() as tx:
        await _take_back_attempt(tx, key, origin)
        return await _open_session(tx, stored.user_id, stored.organisation_id, origin)


async def _count_attempt(database: Database, key: str, origin: Origin) -> None:
    """By account and by address, before the password is looked at: whoever guesses many at once gets no more of them.
    What is refused does not count."""
    async with database.transaction() as tx:
        for kind, subject in _list_subjects(key, origin).items():
            if await queries.COUNT_FAILURE.value(tx, subject, WINDOW_SECONDS) > MOST_FAILURES[kind]:
                raise TooManyAttempts


async def _take_back_attempt(tx: Tx, key: str, origin: Origin) -> None:
    """It was the right password. The account's failures are forgotten, the address has its others still."""
    subjects = _list_subjects(key, origin)
    await queries.CLEAR_FAILURES.run(tx, subjects["account"])
    await queries.TAKE_BACK_FAILURE.run(tx, subjects["address"])


def _list_subjects(key: str, origin: Origin) -> dict[str, str]:
    return {"account": f"account {key}", "address": f"address {origin.address}"}


def fold_email(email: str) -> str:
    """An address as it is looked for; of what cannot be one, a word that is nobody's."""
    key = email.strip().casefold()
    return key if len(key) <= LONGEST_EMAIL and key.isprintable() else NOBODY


async def _open_session(tx: Tx, user_id: int, organisation_id: int, origin: Origin) -> str:
    secret = secrets.token_urlsafe(32)
    await queries.INSERT_SESSION.run(
        tx, _hash(secret), user_id, organisation_id, SESSION_SECONDS, origin.address, origin.browser[:300]
    )
    return secret


async def find_session(db: Connection, secret: str) -> ConsoleSession | None:
    return await queries.FIND_SESSION.find(db, _hash(secret))


async def sign_out(tx: Tx, secret: str) -> None:
    await queries.DELETE_SESSION.run(tx, _hash(secret))


async def sign_out_everywhere(tx: Tx, user_id: int) -> None:
    await queries.DELETE_SESSIONS_OF.run(tx, user_id)


async def list_places(db: Connection, user_id: int) -> list[Membership]:
    return await queries.LIST_PLACES.all(db, user_id)


async def move(tx: Tx, session: ConsoleSession, secret: str, organisation_id: int, origin: Origin) -> str:
    """To another company of theirs: a new session there in place of the one here."""
    if organisation_id not in {place.id for place in await list_places(tx, session.user_id)}:
        raise NotFound
    await sign_out(tx, secret)
    return await _open_session(tx, session.user_id, organisation_id, origin)


async def make_setup_link(tx: Tx, company_id: int) -> str:
    """For the first owner of a company; the secret part of the link."""
    return await _make_link(tx, Purpose.SETUP, await get_organisation(tx, company_id), None)


async def invite(tx: Tx, organisation_id: int, email: str, name: str, role: Role) -> str:
    """Adds somebody who has still to come; the secret part of the link to do so. Whoever is known here from another
    company keeps the password, and gives it."""
    user_id = await _add_user(tx, organisation_id, Newcomer(email, name), role)
    return await _make_link(tx, Purpose.INVITATION, organisation_id, user_id)


async def renew_link(tx: Tx, organisation_id: int, user_id: int) -> tuple[Purpose, str]:
    """An owner's word for somebody who lost the invitation or the password: what the link is for, and its secret."""
    member = await get_member(tx, organisation_id, user_id)
    if not member.has_joined:
        return Purpose.INVITATION, await _make_link(tx, Purpose.INVITATION, organisation_id, user_id)
    if await queries.IS_ELSEWHERE.value(tx, organisation_id, user_id):
        raise BelongsElsewhere
    return Purpose.RESET, await _make_link(tx, Purpose.RESET, organisation_id, user_id)


async def make_reset_link(tx: Tx, organisation_id: int, user_id: int) -> str:
    """To choose a new password, whatever else it opens: for the person themselves, or on the operator's word."""
    await get_member(tx, organisation_id, user_id)
    return await _make_link(tx, Purpose.RESET, organisation_id, user_id)


async def _make_link(tx: Tx, purpose: Purpose, organisation_id: int, user_id: int | None) -> str:
    secret = secrets.token_urlsafe(32)
    await queries.INSERT_LINK.run(tx, _hash(secret), purpose, organisation_id, user_id, LINK_SECONDS[purpose])
    return secret


async def get_link(db: Connection, secret: str) -> OneTimeLink:
    link = await queries.FIND_LINK.find(db, _hash(secret))
    if link is None:
        raise LinkUsed
    return link


async def use_link(database: Database, secret: str, password: str, newcomer: Newcomer | None, origin: Origin) -> str:
    """Sets the password that was chosen, ends all other sessions, and signs in. Whoever has one from another company
    proves it instead, and it stays."""
    async with database.connection() as db:
        link = await get_link(db, secret)
        known = await queries.FIND_KNOWN.find(db, link.user_id, fold_email(newcomer.email) if newcomer else NOBODY)
    present = known.password_hash if known else None
    chosen = None
    if known is None or present is None or link.purpose == Purpose.RESET:
        passwords.check_strength(password)
        chosen = await passwords.build_hash(password)
    else:
        await _prove(database, known.email_key, password, present, origin)
    async with database.transaction() as tx:
        if not await queries.TAKE_LINK.value(tx, _hash(secret)):
            raise LinkUsed
        user_id = link.user_id or await _add_first_owner(tx, link, newcomer)
        if chosen is not None:
            await _replace_password(tx, user_id, chosen, present)
        await _let_in(tx, link, user_id, origin)
        return await _open_session(tx, user_id, link.organisation_id, origin)


async def _prove(database: Database, key: str, password: str, present: str, origin: Origin) -> None:
    await _count_attempt(database, key, origin)
    if not await passwords.is_right(password, present):
        raise WrongPassword
    async with database.transaction() as tx:
        await _take_back_attempt(tx, key, origin)


async def _replace_password(tx: Tx, user_id: int, chosen: str, present: str | None) -> None:
    if not await queries.SET_PASSWORD.value(tx, user_id, chosen, present):
        raise PasswordChanged
    await queries.DELETE_SESSIONS_OF.run(tx, user_id)


async def _let_in(tx: Tx, link: OneTimeLink, user_id: int, origin: Origin) -> None:
    if not await queries.JOIN.value(tx, link.organisation_id, user_id):
        raise LinkUsed
    await queries.DELETE_LINKS_OF.run(tx, user_id, link.organisation_id)
    member = await get_member(tx, link.organisation_id, user_id)
    action = "person.password" if link.purpose == Purpose.RESET else "person.joined"
    await queries.INSERT_AUDIT.run(
        tx, link.organisation_id, None, user_id, member.name, action, member.email, origin.address
    )


async def _add_first_owner(tx: Tx, link: OneTimeLink, newcomer: Newcomer | None) -> int:
    if newcomer is None:
        raise Invalid.field("email", "is required")
    return await _add_user(tx, link.organisation_id, newcomer, Role.OWNER)


async def _add_user(tx: Tx, organisation_id: int, newcomer: Newcomer, role: Role) -> int:
    email, name = _checked_email(newcomer.email), _checked_name(newcomer.name)
    user_id: int = await queries.UPSERT_USER.value(tx, email, email.casefold(), name, newcomer.language)
    await queries.INSERT_MEMBERSHIP.run(tx, organisation_id, user_id, role)
    return user_id


async def change_role(tx: Tx, organisation_id: int, user_id: int, role: Role) -> Member:
    await _keep_an_owner(tx, organisation_id, user_id, stays=role is Role.OWNER)
    await queries.SET_ROLE.value(tx, organisation_id, user_id, role)
    return await get_member(tx, organisation_id, user_id)


async def remove(tx: Tx, organisation_id: int, user_id: int) -> None:
    """Takes somebody out of a company; their sessions there end."""
    await _keep_an_owner(tx, organisation_id, user_id, stays=False)
    if not await queries.DELETE_MEMBERSHIP.value(tx, organisation_id, user_id):
        raise NotFound
    await queries.DELETE_LINKS_OF.run(tx, user_id, organisation_id)


async def _keep_an_owner(tx: Tx, organisation_id: int, user_id: int, stays: bool) -> None:
    owners = [owner.user_id for owner in await queries.LOCK_OWNERS.all(tx, organisation_id)]
    if owners == [user_id] and not stays:
        raise LastOwner


async def set_language(tx: Tx, user_id: int, language: str) -> None:
    if language not in LANGUAGES:
        raise Invalid.field("language", f"must be one of {', '.join(LANGUAGES)}")
    await queries.SET_LANGUAGE.run(tx, user_id, language)


async def list_members(db: Connection, organisation_id: int) -> list[Member]:
    return await queries.LIST_MEMBERS.all(db, organisation_id)


async def get_member(db: Connection, organisation_id: int, user_id: int) -> Member:
    found = next((member for member in await list_members(db, organisation_id) if member.id == user_id), None)
    if found is None:
        raise NotFound
    return found


async def get_member_by_email(db: Connection, organisation_id: int, email: str) -> Member:
    key = fold_email(email)
    for member in await list_members(db, organisation_id):
        if member.email.casefold() == key:
            return member
    raise NotFound("Nobody in this company has this e-mail address; `sapa user list` shows who is there.")


async def get_organisation(db: Connection, company_id: int) -> int:
    """The organisation that an environment belongs to."""
    found: int | None = await queries.FIND_ORGANISATION.value(db, company_id)
    if found is None:
        raise CompanyNotFound
    return found


async def has_members(db: Connection, organisation_id: int) -> bool:
    return bool(await queries.HAS_MEMBERS.value(db, organisation_id))


async def record(
    tx: Tx, session: ConsoleSession, environment: str | None, action: str, subject: str, address: str
) -> None:
    """Notes who changed what, in the transaction that changes it."""
    await queries.INSERT_AUDIT.run(
        tx, session.organisation_id, environment, session.user_id, session.name, action, subject, address
    )


async def list_audit(db: Connection, organisation_id: int, before: int | None) -> list[AuditEntry]:
    return await queries.LIST_AUDIT.all(db, organisation_id, before, AUDIT_PAGE)


async def purge_old(database: Database) -> None:
    """The worker's job: sessions, links and failed attempts whose time is over."""
    async with database.connection() as db:
        await queries.PURGE_SESSIONS.run(db)
        await queries.PURGE_LINKS.run(db)
        await queries.PURGE_FAILURES.run(db, WINDOW_SECONDS)


def _checked_email(email: str) -> str:
    try:
        return parse_email(email.strip(), needs_public_domain=True)
    except BadEmail as error:
        raise Invalid.field("email", f"cannot be used: {error}") from None


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise Invalid.field("name", f"must have 1 to {LONGEST_NAME} printable characters")
    return name


def _hash(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
