"""How people are stored: a part of the directory, whose statements know no single company."""

from msgspec import Struct

from sapa.db.sql import sql
from sapa.people.types import (
    AuditEntry,
    ConsoleSession,
    Member,
    Membership,
    OneTimeLink,
)

DIRECTORY = "the directory of people"


class StoredPassword(Struct, frozen=True):
    user_id: int
    password_hash: str | None
    organisation_id: int


class KnownPassword(Struct, frozen=True):
    email_key: str
    password_hash: str | None


class CompanyOwner(Struct, frozen=True):
    user_id: int


# Whoever belongs to several companies begins where they were last, or in the oldest.
FIND_PASSWORD = sql(
    """
    SELECT u.id AS user_id, u.password_hash, m.organisation_id
      FROM users u
      JOIN memberships m ON m.user_id = u.id
      LEFT JOIN sessions s ON s.user_id = u.id AND s.organisation_id = m.organisation_id
     WHERE u.email_key = $1 AND m.joined_at IS NOT NULL
     ORDER BY s.created_at DESC NULLS LAST, m.created_at
     LIMIT 1""",
    row=StoredPassword,
    crosses=DIRECTORY,
)

# By the id where there is one; otherwise by the address that somebody gives.
FIND_KNOWN = sql(
    """
    SELECT email_key, password_hash FROM users
     WHERE id = $1::bigint OR ($1::bigint IS NULL AND email_key = $2)""",
    row=KnownPassword,
    crosses=DIRECTORY,
)

UPSERT_USER = sql(
    """
    INSERT INTO users AS u (email, email_key, name, language) VALUES ($1, $2, $3, $4)
        ON CONFLICT (email_key) DO UPDATE SET name = u.name
    RETURNING id""",
    crosses=DIRECTORY,
)

# In place of the one that was there when it was looked at, and of no other.
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

JOIN = sql(
    """
    UPDATE memberships SET joined_at = coalesce(joined_at, now())
     WHERE organisation_id = $1 AND user_id = $2
    RETURNING true""",
    crosses=DIRECTORY,
)

IS_ELSEWHERE = sql(
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

LIST_PLACES = sql(
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
    SELECT u.id AS user_id, u.email, u.name, u.language, m.role, o.id AS organisation_id, o.name AS organisation,
           live.company_id AS live_company_id, test.company_id AS test_company_id
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

# Whoever deletes it, and nobody else, has used it.
TAKE_LINK = sql("DELETE FROM one_time_links WHERE hash = $1 RETURNING true", crosses=DIRECTORY)

# Another company's invitation goes on: it asks for the password.
DELETE_LINKS_OF = sql(
    "DELETE FROM one_time_links WHERE user_id = $1 AND (organisation_id = $2 OR purpose = 'reset')", crosses=DIRECTORY
)

FIND_ORGANISATION = sql("SELECT organisation_id FROM companies WHERE company_id = $1", crosses=DIRECTORY)

HAS_MEMBERS = sql("SELECT EXISTS (SELECT FROM memberships WHERE organisation_id = $1)", crosses=DIRECTORY)

# A window begins with its first failure.
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

TAKE_BACK_FAILURE = sql(
    "UPDATE sign_in_attempts SET failures = greatest(failures - 1, 0) WHERE subject = $1", crosses=DIRECTORY
)

PURGE_FAILURES = sql(
    "DELETE FROM sign_in_attempts WHERE window_start < now() - make_interval(secs => $1)", crosses=DIRECTORY
)

CLEAR_FAILURES = sql("DELETE FROM sign_in_attempts WHERE subject = $1", crosses=DIRECTORY)

INSERT_AUDIT = sql(
    """
    INSERT INTO audit_entries (organisation_id, environment, user_id, user_name, action, subject, address)
    VALUES ($1, $2, $3, $4, $5, $6, $7)""",
    crosses=DIRECTORY,
)

LIST_AUDIT = sql(
    """
    SELECT id, environment, user_name, action, subject, address, created_at
      FROM audit_entries
     WHERE organisation_id = $1 AND ($2::bigint IS NULL OR id < $2)
     ORDER BY id DESC
     LIMIT $3""",
    row=AuditEntry,
    crosses=DIRECTORY,
)
