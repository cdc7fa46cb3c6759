"""How users of the console are stored. They are a directory of their own, not confined to one company."""

from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.people.types import AuditEntry, ConsoleSession, MailRecipient, Member, Membership, OneTimeLink, Purpose, Role

DIRECTORY = "the directory of people"


class StoredPassword(Struct, frozen=True):
    user_id: int
    password_hash: str | None
    organisation_id: int
    is_known_browser: bool


class ExistingPassword(Struct, frozen=True):
    email_key: str
    password_hash: str | None


class CompanyOwner(Struct, frozen=True):
    user_id: int


# A user of several companies starts in the one of the last session, or in the oldest.
FIND_PASSWORD = sql(
    """
    SELECT u.id AS user_id, u.password_hash, m.organisation_id,
           EXISTS (SELECT FROM known_browsers b WHERE b.hash = $2 AND b.user_id = u.id) AS is_known_browser
      FROM users u
      JOIN memberships m ON m.user_id = u.id
      LEFT JOIN sessions s ON s.user_id = u.id AND s.organisation_id = m.organisation_id
     WHERE u.email_key = $1 AND m.joined_at IS NOT NULL
     ORDER BY s.created_at DESC NULLS LAST, m.created_at
     LIMIT 1""",
    row=StoredPassword,
    crosses=DIRECTORY,
)

# By id if there is one, otherwise by e-mail address.
FIND_EXISTING_PASSWORD = sql(
    """
    SELECT email_key, password_hash FROM users
     WHERE id = $1::bigint OR ($1::bigint IS NULL AND email_key = $2)""",
    row=ExistingPassword,
    crosses=DIRECTORY,
)

# The oldest company that the user has joined, else the oldest invitation; the password is the same in all.
FIND_RECIPIENT = sql(
    """
    SELECT u.id AS user_id, u.email, u.name, u.language, o.id AS organisation_id, o.name AS organisation
      FROM users u
      JOIN memberships m ON m.user_id = u.id
      JOIN organisations o ON o.id = m.organisation_id
     WHERE u.email_key = $1
     ORDER BY m.joined_at IS NULL, m.created_at
     LIMIT 1""",
    row=MailRecipient,
    crosses=DIRECTORY,
)

LIST_OWNERS = sql(
    """
    SELECT u.id AS user_id, u.email, u.name, u.language, o.id AS organisation_id, o.name AS organisation
      FROM companies c
      JOIN organisations o ON o.id = c.organisation_id
      JOIN memberships m ON m.organisation_id = o.id
      JOIN users u ON u.id = m.user_id
     WHERE c.company_id = $1 AND m.role = 'owner' AND m.joined_at IS NOT NULL
     ORDER BY u.id""",
    row=MailRecipient,
)

UPSERT_USER = sql(
    """
    INSERT INTO users AS u (email, email_key, name, language) VALUES ($1, $2, $3, $4)
        ON CONFLICT (email_key) DO UPDATE SET name = u.name
    RETURNING id""",
    crosses=DIRECTORY,
)

# Only if the password is still the one that was read before.
SET_PASSWORD = sql(
    """
    UPDATE users SET password_hash = $2
     WHERE id = $1 AND password_hash IS NOT DISTINCT FROM $3
    RETURNING true""",
    crosses=DIRECTORY,
)

SET_LANGUAGE = sql("UPDATE users SET language = $2 WHERE id = $1", crosses=DIRECTORY)

INSERT_MEMBERSHIP = sql(
    "INSERT INTO memberships (organisation_id, user_id, role) VALUES ($1, $2, $3)", crosses=DIRECTORY
)

MARK_JOINED = sql(
    """
    UPDATE memberships SET joined_at = coalesce(joined_at, clock.now)
      FROM (SELECT now() AS now) AS clock
     WHERE organisation_id = $1 AND user_id = $2
    RETURNING true""",
    crosses=DIRECTORY,
)

HAS_JOINED_ANOTHER = sql(
    """
    SELECT EXISTS (SELECT FROM memberships
                    WHERE organisation_id <> $1 AND user_id = $2 AND joined_at IS NOT NULL)""",
    crosses=DIRECTORY,
)

SET_ROLE = sql(
    "UPDATE memberships SET role = $3 WHERE organisation_id = $1 AND user_id = $2 RETURNING true", crosses=DIRECTORY
)

DELETE_MEMBERSHIP = sql(
    "DELETE FROM memberships WHERE organisation_id = $1 AND user_id = $2 RETURNING true", crosses=DIRECTORY
)

LOCK_OWNERS = sql(
    """
    SELECT user_id FROM memberships
     WHERE organisation_id = $1 AND role = 'owner' AND joined_at IS NOT NULL
       FOR UPDATE""",
    row=CompanyOwner,
    crosses=DIRECTORY,
)

LIST_MEMBERS = sql(
    """
    SELECT u.id, u.email, u.name, m.role, m.joined_at IS NOT NULL AS has_joined, m.created_at
      FROM memberships m
      JOIN users u ON u.id = m.user_id
     WHERE m.organisation_id = $1
     ORDER BY m.created_at, u.id""",
    row=Member,
    crosses=DIRECTORY,
)

LIST_MEMBERSHIPS = sql(
    """
    SELECT o.id, o.name, m.role
      FROM memberships m
      JOIN organisations o ON o.id = m.organisation_id
     WHERE m.user_id = $1 AND m.joined_at IS NOT NULL
     ORDER BY o.name""",
    row=Membership,
    crosses=DIRECTORY,
)

INSERT_SESSION = sql(
    """
    INSERT INTO sessions (hash, user_id, organisation_id, expires_at, address, browser)
    VALUES ($1, $2, $3, now() + make_interval(secs => $4), $5, $6)""",
    crosses=DIRECTORY,
)

FIND_SESSION = sql(
    """
    SELECT u.id AS user_id, u.email, u.name, u.language, u.time_zone, u.currency, m.role, o.id AS organisation_id,
           o.name AS organisation, live.company_id AS live_company_id, test.company_id AS test_company_id
      FROM sessions s
      JOIN users u ON u.id = s.user_id
      JOIN memberships m ON m.organisation_id = s.organisation_id AND m.user_id = s.user_id
      JOIN organisations o ON o.id = s.organisation_id
      JOIN companies live ON live.organisation_id = o.id AND live.environment = 'live'
      JOIN companies test ON test.organisation_id = o.id AND test.environment = 'test'
     WHERE s.hash = $1 AND s.expires_at > now()""",
    row=ConsoleSession,
    crosses=DIRECTORY,
)

DELETE_SESSION = sql("DELETE FROM sessions WHERE hash = $1", crosses=DIRECTORY)

DELETE_SESSIONS_OF = sql("DELETE FROM sessions WHERE user_id = $1", crosses=DIRECTORY)

REMEMBER_BROWSER = sql(
    """
    INSERT INTO known_browsers (hash, user_id) VALUES ($1, $2)
        ON CONFLICT (hash, user_id) DO UPDATE SET used_at = excluded.used_at""",
    crosses=DIRECTORY,
)

TRIM_BROWSERS = sql(
    """
    DELETE FROM known_browsers
     WHERE user_id = $1
       AND hash IN (SELECT hash FROM known_browsers WHERE user_id = $1 ORDER BY used_at DESC OFFSET $2)""",
    crosses=DIRECTORY,
)

DELETE_BROWSERS_OF = sql("DELETE FROM known_browsers WHERE user_id = $1", crosses=DIRECTORY)

PURGE_BROWSERS = sql("DELETE FROM known_browsers WHERE used_at < now() - make_interval(secs => $1)", crosses=DIRECTORY)

PURGE_SESSIONS = sql("DELETE FROM sessions WHERE expires_at < now()", crosses=DIRECTORY)

PURGE_LINKS = sql("DELETE FROM one_time_links WHERE expires_at < now()", crosses=DIRECTORY)

INSERT_LINK = sql(
    """
    INSERT INTO one_time_links (hash, purpose, organisation_id, user_id, expires_at)
    VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5))""",
    crosses=DIRECTORY,
)

FIND_LINK = sql(
    """
    SELECT l.purpose, l.organisation_id, o.name AS organisation, l.user_id, u.email, u.name,
           u.password_hash IS NOT NULL AS is_known
      FROM one_time_links l
      JOIN organisations o ON o.id = l.organisation_id
      LEFT JOIN users u ON u.id = l.user_id
     WHERE l.hash = $1 AND l.expires_at > now()""",
    row=OneTimeLink,
    crosses=DIRECTORY,
)

# The one transaction that deletes the link has used it.
USE_LINK = sql("DELETE FROM one_time_links WHERE hash = $1 RETURNING true", crosses=DIRECTORY)

# Another company's invitation stays valid: it asks for the password.
DELETE_LINKS_OF = sql(
    "DELETE FROM one_time_links WHERE user_id = $1 AND (organisation_id = $2 OR purpose = 'reset')", crosses=DIRECTORY
)

FIND_ORGANISATION = sql("SELECT organisation_id FROM companies WHERE company_id = $1", crosses=DIRECTORY)

HAS_MEMBERS = sql("SELECT EXISTS (SELECT FROM memberships WHERE organisation_id = $1)", crosses=DIRECTORY)

# A window starts with its first failure.
COUNT_FAILURE = sql(
    """
    INSERT INTO sign_in_attempts AS a (subject, failures, window_start) VALUES ($1, 1, now())
        ON CONFLICT (subject) DO UPDATE
       SET failures = CASE WHEN a.window_start < now() - make_interval(secs => $2) THEN 1 ELSE a.failures + 1 END,
           window_start = CASE WHEN a.window_start < now() - make_interval(secs => $2) THEN now()
                               ELSE a.window_start END
    RETURNING failures""",
    crosses=DIRECTORY,
)

UNCOUNT_FAILURE = sql(
    "UPDATE sign_in_attempts SET failures = greatest(failures - 1, 0) WHERE subject = $1", crosses=DIRECTORY
)

PURGE_FAILURES = sql(
    "DELETE FROM sign_in_attempts WHERE window_start < now() - make_interval(secs => $1)", crosses=DIRECTORY
)

CLEAR_FAILURES = sql("DELETE FROM sign_in_attempts WHERE subject = $1", crosses=DIRECTORY)

INSERT_AUDIT = sql(
    """
    INSERT INTO audit_entries (organisation_id, environment, user_id, user_name, action, subject, address, key_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)""",
    crosses=DIRECTORY,
)

LIST_AUDIT = sql(
    """
    SELECT id, environment, user_name, key_id, action, subject, address, created_at
      FROM audit_entries
     WHERE organisation_id = $1 AND ($2::bigint IS NULL OR id < $2)
     ORDER BY id DESC
     LIMIT $3""",
    row=AuditEntry,
    crosses=DIRECTORY,
)


async def find_password(db: Connection, email_key: str, browser_hash: bytes) -> StoredPassword | None:
    return await FIND_PASSWORD.find(db, email_key, browser_hash)


async def find_existing_password(db: Connection, user_id: int | None, email_key: str) -> ExistingPassword | None:
    return await FIND_EXISTING_PASSWORD.find(db, user_id, email_key)


async def find_recipient(db: Connection, email_key: str) -> MailRecipient | None:
    return await FIND_RECIPIENT.find(db, email_key)


async def list_owners(db: Connection, company_id: int) -> list[MailRecipient]:
    return await LIST_OWNERS.all(db, company_id)


async def upsert_user(tx: Tx, email: str, name: str, language: str) -> int:
    user_id: int = await UPSERT_USER.value(tx, email, email.casefold(), name, language)
    return user_id


async def set_password(tx: Tx, user_id: int, password_hash: str, replaced_hash: str | None) -> bool:
    """False when the password is not `replaced_hash` any more."""
    return bool(await SET_PASSWORD.value(tx, user_id, password_hash, replaced_hash))


async def set_language(tx: Tx, user_id: int, language: str) -> None:
    await SET_LANGUAGE.run(tx, user_id, language)


async def insert_membership(tx: Tx, organisation_id: int, user_id: int, role: Role) -> None:
    await INSERT_MEMBERSHIP.run(tx, organisation_id, user_id, role)


async def mark_joined(tx: Tx, organisation_id: int, user_id: int) -> bool:
    """False when the user is not a member any more."""
    return bool(await MARK_JOINED.value(tx, organisation_id, user_id))


async def has_joined_another(db: Connection, organisation_id: int, user_id: int) -> bool:
    return bool(await HAS_JOINED_ANOTHER.value(db, organisation_id, user_id))


async def set_role(tx: Tx, organisation_id: int, user_id: int, role: Role) -> None:
    await SET_ROLE.value(tx, organisation_id, user_id, role)


async def delete_membership(tx: Tx, organisation_id: int, user_id: int) -> bool:
    return bool(await DELETE_MEMBERSHIP.value(tx, organisation_id, user_id))


async def lock_owners(tx: Tx, organisation_id: int) -> list[int]:
    """The user ids of the owners who have joined."""
    return [owner.user_id for owner in await LOCK_OWNERS.all(tx, organisation_id)]


async def list_members(db: Connection, organisation_id: int) -> list[Member]:
    return await LIST_MEMBERS.all(db, organisation_id)


async def list_memberships(db: Connection, user_id: int) -> list[Membership]:
    return await LIST_MEMBERSHIPS.all(db, user_id)


async def insert_session(
    tx: Tx, hash: bytes, user_id: int, organisation_id: int, seconds: int, address: str, browser: str
) -> None:
    await INSERT_SESSION.run(tx, hash, user_id, organisation_id, seconds, address, browser)


async def find_session(db: Connection, hash: bytes) -> ConsoleSession | None:
    return await FIND_SESSION.find(db, hash)


async def delete_session(tx: Tx, hash: bytes) -> None:
    await DELETE_SESSION.run(tx, hash)


async def delete_sessions_of(tx: Tx, user_id: int) -> None:
    """The browsers are not known any more either."""
    await DELETE_SESSIONS_OF.run(tx, user_id)
    await DELETE_BROWSERS_OF.run(tx, user_id)


async def remember_browser(tx: Tx, hash: bytes, user_id: int, most: int) -> None:
    """Of a user's browsers, those that were used last are remembered."""
    await REMEMBER_BROWSER.run(tx, hash, user_id)
    await TRIM_BROWSERS.run(tx, user_id, most)


async def insert_link(
    tx: Tx, hash: bytes, purpose: Purpose, organisation_id: int, user_id: int | None, seconds: int
) -> None:
    await INSERT_LINK.run(tx, hash, purpose, organisation_id, user_id, seconds)


async def find_link(db: Connection, hash: bytes) -> OneTimeLink | None:
    return await FIND_LINK.find(db, hash)


async def use_link(tx: Tx, hash: bytes) -> bool:
    """False when another transaction has used the link."""
    return bool(await USE_LINK.value(tx, hash))


async def delete_links_of(tx: Tx, user_id: int, organisation_id: int) -> None:
    await DELETE_LINKS_OF.run(tx, user_id, organisation_id)


async def find_organisation(db: Connection, company_id: int) -> int | None:
    organisation_id: int | None = await FIND_ORGANISATION.value(db, company_id)
    return organisation_id


async def has_members(db: Connection, organisation_id: int) -> bool:
    return bool(await HAS_MEMBERS.value(db, organisation_id))


async def count_failure(tx: Tx, subject: str, window_seconds: int) -> int:
    """The failures of the window, this one included."""
    failures: int = await COUNT_FAILURE.value(tx, subject, window_seconds)
    return failures


async def uncount_failure(tx: Tx, subject: str) -> None:
    await UNCOUNT_FAILURE.run(tx, subject)


async def clear_failures(tx: Tx, subject: str) -> None:
    await CLEAR_FAILURES.run(tx, subject)


async def purge_expired(db: Connection, window_seconds: int, browser_seconds: int) -> None:
    """Sessions, browsers, links and failures."""
    await PURGE_SESSIONS.run(db)
    await PURGE_BROWSERS.run(db, browser_seconds)
    await PURGE_LINKS.run(db)
    await PURGE_FAILURES.run(db, window_seconds)


async def insert_audit(
    tx: Tx, organisation_id: int, environment: str | None, user_id: int | None, user_name: str, action: str,
    subject: str, address: str, key_id: str | None = None,
) -> None:  # fmt: skip
    await INSERT_AUDIT.run(tx, organisation_id, environment, user_id, user_name, action, subject, address, key_id)


async def list_audit(db: Connection, organisation_id: int, before: int | None, limit: int) -> list[AuditEntry]:
    return await LIST_AUDIT.all(db, organisation_id, before, limit)
