"""How users join, sign in and leave; used by the console and the command line."""

import secrets
from hashlib import sha256

from msgspec import Struct

from sapa.access import actions as access
from sapa.access.types import CompanyNotFound, ManagementChange
from sapa.db.pool import Connection, Database, Tx
from sapa.http.allow_list import get_network
from sapa.http.errors import Invalid, NotFound
from sapa.people import passwords, queries
from sapa.people.types import (
    AuditEntry,
    BelongsElsewhere,
    ConsoleSession,
    LastOwner,
    LinkUsed,
    MailRecipient,
    Member,
    Membership,
    OneTimeLink,
    PasswordChanged,
    Purpose,
    Role,
    TooManyAttempts,
    WrongPassword,
)
from sapa.values.company import Company
from sapa.values.emails import BadEmail, parse_email

SESSION_SECONDS = 14 * 24 * 3600
LINK_SECONDS = {Purpose.SETUP: 7 * 24 * 3600, Purpose.INVITATION: 7 * 24 * 3600, Purpose.RESET: 3600}
BROWSER_SECONDS = 180 * 24 * 3600
MAX_BROWSERS = 20
WINDOW_SECONDS = 15 * 60
MAX_FAILURES = {"account and network": 10, "network": 50, "account": 100, "browser": 10}
"""Within a window. A browser in which the user has signed in before counts on its own, and nothing else counts for it:
strangers who guess do not keep the user out."""
LONGEST_NAME = 100
LONGEST_EMAIL = 320
NOBODY = "-"
LANGUAGES = ("en", "id")
AUDIT_PAGE = 50


class Newcomer(Struct, frozen=True):
    """What a user enters when they use the set-up link."""

    email: str
    name: str
    language: str = "en"


class Origin(Struct, frozen=True):
    """Where a sign-in comes from."""

    address: str
    browser: str
    browser_key: str = ""
    """A secret of that browser, by which it is known again; empty if it has none."""


async def sign_in(database: Database, email: str, password: str, origin: Origin) -> str:
    """Returns the new session's secret."""
    key = fold_email(email)
    async with database.connection() as db:
        stored = await queries.find_password(db, key, _hash(origin.browser_key))
    is_known = stored is not None and stored.is_known_browser
    subjects = _list_browser_subjects(origin) if is_known else _list_stranger_subjects(key, origin)
    queue = passwords.KNOWN_BROWSERS if is_known else passwords.STRANGERS
    queue.check_room()  # before it counts: an attempt that is refused now is no failure
    await _count_attempt(database, subjects)
    with queue.place():
        is_correct = await queue.is_correct(password, stored.password_hash if stored else None)
    if not is_correct or stored is None:
        raise WrongPassword
    async with database.transaction() as tx:
        await _uncount_attempt(tx, subjects)
        return await _open_session(tx, stored.user_id, stored.organisation_id, origin)


async def _count_attempt(database: Database, subjects: dict[str, str]) -> None:
    """Counts before the password is checked, so that parallel guesses are limited too. A refused attempt does not
    count."""
    async with database.transaction() as tx:
        for kind, subject in subjects.items():
            if await queries.count_failure(tx, subject, WINDOW_SECONDS) > MAX_FAILURES[kind]:
                raise TooManyAttempts


async def _uncount_attempt(tx: Tx, subjects: dict[str, str]) -> None:
    """After the right password: clears the failures from here, and takes this one off the account and the network."""
    for kind, subject in subjects.items():
        if kind in {"account and network", "browser"}:
            await queries.clear_failures(tx, subject)
        else:
            await queries.uncount_failure(tx, subject)


def _list_stranger_subjects(key: str, origin: Origin) -> dict[str, str]:
    network = get_network(origin.address)
    return {
        "account and network": f"account {key} from {network}",
        "network": f"network {network}",
        "account": f"account {key}",
    }


def _list_browser_subjects(origin: Origin) -> dict[str, str]:
    return {"browser": f"browser {_hash(origin.browser_key).hex()}"}


def fold_email(email: str) -> str:
    """The key of an e-mail address; NOBODY for text that cannot be one."""
    key = email.strip().casefold()
    return key if len(key) <= LONGEST_EMAIL and key.isprintable() else NOBODY


async def _open_session(tx: Tx, user_id: int, organisation_id: int, origin: Origin) -> str:
    secret = secrets.token_urlsafe(32)
    await queries.insert_session(
        tx, _hash(secret), user_id, organisation_id, SESSION_SECONDS, origin.address, origin.browser[:300]
    )
    if origin.browser_key:
        await queries.remember_browser(tx, _hash(origin.browser_key), user_id, MAX_BROWSERS)
    return secret


async def find_session(db: Connection, secret: str) -> ConsoleSession | None:
    return await queries.find_session(db, _hash(secret))


async def sign_out(tx: Tx, secret: str) -> None:
    await queries.delete_session(tx, _hash(secret))


async def sign_out_everywhere(tx: Tx, user_id: int) -> None:
    await queries.delete_sessions_of(tx, user_id)


async def list_memberships(db: Connection, user_id: int) -> list[Membership]:
    return await queries.list_memberships(db, user_id)


async def switch_company(tx: Tx, session: ConsoleSession, secret: str, organisation_id: int, origin: Origin) -> str:
    """Switches to another company of the user: replaces the session with a new one there."""
    if organisation_id not in {membership.id for membership in await list_memberships(tx, session.user_id)}:
        raise NotFound
    await sign_out(tx, secret)
    return await _open_session(tx, session.user_id, organisation_id, origin)


async def make_setup_link(tx: Tx, company_id: int) -> str:
    """For the first owner of a company; returns the secret part of the link."""
    return await _make_link(tx, Purpose.SETUP, await get_organisation(tx, company_id), None)


async def invite(tx: Tx, organisation_id: int, email: str, name: str, role: Role) -> str:
    """Adds a user who has not joined yet; returns the secret part of the link. A user of another company keeps their
    password and enters it."""
    user_id = await _add_user(tx, organisation_id, Newcomer(email, name), role)
    return await _make_link(tx, Purpose.INVITATION, organisation_id, user_id)


async def renew_link(tx: Tx, organisation_id: int, user_id: int) -> tuple[Purpose, str]:
    """For a user who lost the invitation or the password; returns what the link is for, and its secret."""
    member = await get_member(tx, organisation_id, user_id)
    if not member.has_joined:
        return Purpose.INVITATION, await _make_link(tx, Purpose.INVITATION, organisation_id, user_id)
    if await queries.has_joined_another(tx, organisation_id, user_id):
        raise BelongsElsewhere
    return Purpose.RESET, await _make_link(tx, Purpose.RESET, organisation_id, user_id)


async def make_reset_link(tx: Tx, organisation_id: int, user_id: int) -> str:
    """To choose a new password for all their companies: for the users themselves, or at the operator's request."""
    await get_member(tx, organisation_id, user_id)
    return await _make_link(tx, Purpose.RESET, organisation_id, user_id)


async def _make_link(tx: Tx, purpose: Purpose, organisation_id: int, user_id: int | None) -> str:
    secret = secrets.token_urlsafe(32)
    await queries.insert_link(tx, _hash(secret), purpose, organisation_id, user_id, LINK_SECONDS[purpose])
    return secret


async def get_link(db: Connection, secret: str) -> OneTimeLink:
    link = await queries.find_link(db, _hash(secret))
    if link is None:
        raise LinkUsed
    return link


async def use_link(database: Database, secret: str, password: str, newcomer: Newcomer | None, origin: Origin) -> str:
    """Sets the chosen password, ends all other sessions, and signs in. A user who has a password from another company
    enters that one instead, and it stays."""
    async with database.connection() as db:
        link = await get_link(db, secret)
        email_key = fold_email(newcomer.email) if newcomer else NOBODY
        existing = await queries.find_existing_password(db, link.user_id, email_key)
    present = existing.password_hash if existing else None
    chosen = None
    with passwords.STRANGERS.place() as queue:
        if existing is None or present is None or link.purpose == Purpose.RESET:
            await queue.check_strength(password, _list_personal(link, newcomer))
            chosen = await queue.hash(password)
        else:
            await _verify_password(database, existing.email_key, password, present, origin)
    async with database.transaction() as tx:
        if not await queries.use_link(tx, _hash(secret)):
            raise LinkUsed
        user_id = link.user_id or await _add_first_owner(tx, link, newcomer)
        if chosen is not None:
            await _replace_password(tx, user_id, chosen, present)
        if newcomer is not None and present is None:
            await set_language(tx, user_id, newcomer.language)
        await _join(tx, link, user_id, origin)
        return await _open_session(tx, user_id, link.organisation_id, origin)


async def change_password(
    database: Database, session: ConsoleSession, present: str, chosen: str, origin: Origin
) -> str:
    """After the present one. Ends all sessions and links for a new password; returns the secret of a session here."""
    async with database.connection() as db:
        existing = await queries.find_existing_password(db, session.user_id, NOBODY)
    if existing is None or existing.password_hash is None:
        raise WrongPassword
    await _verify_password(database, existing.email_key, present, existing.password_hash, origin)
    with passwords.STRANGERS.place() as queue:
        await queue.check_strength(chosen, [session.organisation, session.email, session.name])
        hash = await queue.hash(chosen)
    async with database.transaction() as tx:
        await _replace_password(tx, session.user_id, hash, existing.password_hash)
        await queries.delete_links_of(tx, session.user_id, session.organisation_id)
        await queries.insert_audit(
            tx, session.organisation_id, None, session.user_id, session.name, "person.password", session.email,
            origin.address,
        )  # fmt: skip
        return await _open_session(tx, session.user_id, session.organisation_id, origin)


async def _verify_password(database: Database, key: str, password: str, present: str, origin: Origin) -> None:
    subjects = _list_stranger_subjects(key, origin)
    await _count_attempt(database, subjects)
    if not await passwords.STRANGERS.is_correct(password, present):
        raise WrongPassword
    async with database.transaction() as tx:
        await _uncount_attempt(tx, subjects)


def _list_personal(link: OneTimeLink, newcomer: Newcomer | None) -> list[str]:
    entered = [newcomer.email, newcomer.name] if newcomer else []
    return [text for text in (link.organisation, link.email, link.name, *entered) if text]


async def _replace_password(tx: Tx, user_id: int, chosen: str, present: str | None) -> None:
    if not await queries.set_password(tx, user_id, chosen, present):
        raise PasswordChanged
    await queries.delete_sessions_of(tx, user_id)


async def _join(tx: Tx, link: OneTimeLink, user_id: int, origin: Origin) -> None:
    if not await queries.mark_joined(tx, link.organisation_id, user_id):
        raise LinkUsed
    await queries.delete_links_of(tx, user_id, link.organisation_id)
    member = await get_member(tx, link.organisation_id, user_id)
    action = "person.password" if link.purpose == Purpose.RESET else "person.joined"
    await queries.insert_audit(
        tx, link.organisation_id, None, user_id, member.name, action, member.email, origin.address
    )


async def _add_first_owner(tx: Tx, link: OneTimeLink, newcomer: Newcomer | None) -> int:
    if newcomer is None:
        raise Invalid.field("email", "is required")
    return await _add_user(tx, link.organisation_id, newcomer, Role.OWNER)


async def _add_user(tx: Tx, organisation_id: int, newcomer: Newcomer, role: Role) -> int:
    email, name = _checked_email(newcomer.email), _checked_name(newcomer.name)
    user_id = await queries.upsert_user(tx, email, name, newcomer.language)
    await queries.insert_membership(tx, organisation_id, user_id, role)
    return user_id


async def change_role(tx: Tx, organisation_id: int, user_id: int, role: Role) -> Member:
    await _require_owner(tx, organisation_id, user_id, stays=role is Role.OWNER)
    await queries.set_role(tx, organisation_id, user_id, role)
    return await get_member(tx, organisation_id, user_id)


async def remove(tx: Tx, organisation_id: int, user_id: int) -> None:
    """Removes a user from a company; their sessions there end."""
    await _require_owner(tx, organisation_id, user_id, stays=False)
    if not await queries.delete_membership(tx, organisation_id, user_id):
        raise NotFound
    await queries.delete_links_of(tx, user_id, organisation_id)


async def _require_owner(tx: Tx, organisation_id: int, user_id: int, stays: bool) -> None:
    if await queries.lock_owners(tx, organisation_id) == [user_id] and not stays:
        raise LastOwner


async def set_language(tx: Tx, user_id: int, language: str) -> None:
    if language not in LANGUAGES:
        raise Invalid.field("language", f"must be one of {', '.join(LANGUAGES)}")
    await queries.set_language(tx, user_id, language)


async def list_members(db: Connection, organisation_id: int) -> list[Member]:
    return await queries.list_members(db, organisation_id)


async def list_owners(db: Connection, company_id: int) -> list[MailRecipient]:
    """Owners who have joined, with what a mail to them needs."""
    return await queries.list_owners(db, company_id)


async def get_member(db: Connection, organisation_id: int, user_id: int) -> Member:
    for member in await list_members(db, organisation_id):
        if member.id == user_id:
            return member
    raise NotFound


async def get_member_by_email(db: Connection, organisation_id: int, email: str) -> Member:
    key = fold_email(email)
    for member in await list_members(db, organisation_id):
        if member.email.casefold() == key:
            return member
    raise NotFound("No user of this company has this e-mail address; `sapa user list` shows the users.")


async def get_organisation(db: Connection, company_id: int) -> int:
    """The organisation that an environment belongs to."""
    organisation_id = await queries.find_organisation(db, company_id)
    if organisation_id is None:
        raise CompanyNotFound
    return organisation_id


async def has_members(db: Connection, organisation_id: int) -> bool:
    return await queries.has_members(db, organisation_id)


async def record(
    tx: Tx, session: ConsoleSession, environment: str | None, action: str, subject: str, address: str
) -> None:
    """Records who changed what, in the transaction of the change."""
    await queries.insert_audit(
        tx, session.organisation_id, environment, session.user_id, session.name, action, subject, address
    )


async def record_program(tx: Tx, company: Company, change: ManagementChange) -> None:
    """Records what a program changed with an API key, in the transaction of the change."""
    key = await access.get_key(tx, company.id, change.key_id)
    organisation_id = await get_organisation(tx, company.id)
    await queries.insert_audit(
        tx, organisation_id, company.environment, None, key.name, change.action, change.subject, change.address, key.id
    )


async def list_audit(db: Connection, organisation_id: int, before: int | None) -> list[AuditEntry]:
    return await queries.list_audit(db, organisation_id, before, AUDIT_PAGE)


async def purge_old(database: Database) -> None:
    """The worker's job: purges expired sessions, links, browsers and failed attempts."""
    async with database.connection() as db:
        await queries.purge_expired(db, WINDOW_SECONDS, BROWSER_SECONDS)


def _checked_email(email: str) -> str:
    try:
        return parse_email(email.strip())
    except BadEmail as error:
        raise Invalid.field("email", f"cannot be used: {error}") from None


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise Invalid.field("name", f"must have 1 to {LONGEST_NAME} printable characters")
    return name


def _hash(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
