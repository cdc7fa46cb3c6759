"""Queries for visitors of the web chat, their sessions and their receipts."""

from datetime import datetime

from msgspec import Struct

from sapa.db.due import build_clock
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.messaging.channels.widget.types import Visitor, WidgetMessage


class MarkedMessages(Struct, frozen=True):
    """A message that was acknowledged for the first time."""

    number: int
    reference: str
    at: datetime


class ConversationPosition(Struct, frozen=True):
    """The number of the last message in a visitor's conversation."""

    company_id: int
    visitor_id: str
    last_number: int


_MESSAGE_COLUMNS = "number, reference, direction, content, at, read_at IS NOT NULL AS is_read"

INSERT_VISITOR = sql(
    """
    INSERT INTO widget_visitors (company_id, id, external_id, name, email)
    VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT DO NOTHING"""
)

LOCK_IDENTIFIED = sql(
    """
    SELECT id, external_id, name, email, stated_name, last_number
      FROM widget_visitors
     WHERE company_id = $1 AND external_id = $2
       FOR UPDATE""",
    row=Visitor,
)

# Fields that the site leaves out keep their values.
DESCRIBE = sql(
    """
    UPDATE widget_visitors
       SET external_id = $3, name = coalesce($4, name), email = coalesce($5, email), seen_at = now()
     WHERE company_id = $1 AND id = $2
    RETURNING id, external_id, name, email, stated_name, last_number""",
    row=Visitor,
)

STATE = sql(
    """
    UPDATE widget_visitors
       SET stated_name = $3, stated_contact = $4, seen_at = now()
     WHERE company_id = $1 AND id = $2"""
)

# The contacts were named after their statements.
PURGE_STATEMENTS = sql(
    """
    WITH erased AS (
        UPDATE widget_visitors v
           SET stated_name = NULL, stated_contact = NULL
          FROM contacts c
          JOIN contact_identities i ON i.company_id = $1 AND i.contact_id = c.id AND i.kind = 'visitor'
         WHERE v.company_id = $1 AND v.id = i.key AND v.stated_name IS NOT NULL
           AND c.company_id = $1 AND c.customer_id = $2
        RETURNING c.id
    )
    UPDATE contacts SET name = NULL WHERE company_id = $1 AND id IN (SELECT id FROM erased)"""
)

MARK_TYPING = sql("UPDATE widget_visitors SET typing_at = now() WHERE company_id = $1 AND id = $2")

LIST_TYPING = sql(
    """
    SELECT id
      FROM widget_visitors
     WHERE company_id = $1 AND id = ANY($2::text[]) AND typing_at > now() - make_interval(secs => $3)
     ORDER BY id"""
)

INSERT_SESSION = sql("INSERT INTO widget_sessions (company_id, hash, visitor_id) VALUES ($1, $2, $3)")

DROP_SESSION = sql("DELETE FROM widget_sessions WHERE company_id = $1 AND hash = $2")

DROP_SESSIONS = sql("DELETE FROM widget_sessions WHERE company_id = $1 AND visitor_id = $2")

FIND_SESSION = sql(
    """
    SELECT v.id, v.external_id, v.name, v.email, v.stated_name, v.last_number
      FROM widget_sessions s
      JOIN widget_visitors v ON v.company_id = $1 AND v.id = s.visitor_id
     WHERE s.company_id = $1 AND s.hash = $2 AND s.used_at > now() - make_interval(days => $3)""",
    row=Visitor,
)

# Once a day is enough to show that the session is in use.
RECORD_USE = sql(
    """
    UPDATE widget_sessions SET used_at = now()
     WHERE company_id = $1 AND hash = $2 AND used_at < now() - interval '1 day'"""
)

FIND_MESSAGE_BY_NUMBER = sql(
    f"""
    SELECT {_MESSAGE_COLUMNS}
      FROM widget_lines
     WHERE company_id = $1 AND visitor_id = $2 AND number = $3""",
    row=WidgetMessage,
)

LIST_AFTER = sql(
    f"""
    SELECT {_MESSAGE_COLUMNS}
      FROM widget_lines
     WHERE company_id = $1 AND visitor_id = $2 AND number > $3
     ORDER BY number
     LIMIT $4""",
    row=WidgetMessage,
)

LIST_BEFORE = sql(
    f"""
    SELECT {_MESSAGE_COLUMNS}
      FROM widget_lines
     WHERE company_id = $1 AND visitor_id = $2 AND number < $3
     ORDER BY number DESC
     LIMIT $4""",
    row=WidgetMessage,
)

MARK_DELIVERED = sql(
    f"""
    UPDATE widget_lines SET delivered_at = clock.now
      FROM {build_clock()}
     WHERE company_id = $1 AND visitor_id = $2 AND number = ANY($3) AND direction = 'out' AND delivered_at IS NULL
    RETURNING number, reference, delivered_at AS at""",
    row=MarkedMessages,
)

MARK_READ = sql(
    f"""
    UPDATE widget_lines SET read_at = clock.now
      FROM {build_clock()}
     WHERE company_id = $1 AND visitor_id = $2 AND number = ANY($3) AND direction = 'out' AND read_at IS NULL
    RETURNING number, reference, read_at AS at""",
    row=MarkedMessages,
)

LIST_POSITIONS = sql(
    """
    SELECT v.company_id, v.id AS visitor_id, v.last_number
      FROM unnest($1::bigint[], $2::text[]) AS open (company_id, id)
      JOIN widget_visitors v ON v.company_id = open.company_id AND v.id = open.id""",
    row=ConversationPosition,
    crosses="one query serves all pages that this process streams to, of all companies",
)

COUNT = sql(
    """
    INSERT INTO widget_windows AS w (company_id, subject, window_start, used)
    VALUES ($1, $2, date_trunc('minute', clock_timestamp()), 1)
        ON CONFLICT (company_id, subject) DO UPDATE
       SET window_start = GREATEST(w.window_start, excluded.window_start),
           used = CASE WHEN w.window_start >= excluded.window_start THEN w.used + 1 ELSE 1 END
    RETURNING used"""
)

PURGE_WINDOWS = sql(
    "DELETE FROM widget_windows WHERE window_start < now() - interval '10 minutes'",
    crosses="the worker purges past minutes of all companies",
)

PURGE_SESSIONS = sql(
    """
    DELETE FROM widget_sessions
     WHERE (company_id, hash) IN (
           SELECT company_id, hash FROM widget_sessions
            WHERE used_at < now() - make_interval(days => $1)
            ORDER BY used_at LIMIT $2)""",
    crosses="the worker purges ended sessions of all companies",
)

# Their sessions are older still, and go with them.
PURGE_VISITORS = sql(
    """
    DELETE FROM widget_visitors
     WHERE (company_id, id) IN (
           SELECT company_id, id FROM widget_visitors
            WHERE last_number = 0 AND seen_at < now() - make_interval(days => $1)
            ORDER BY seen_at LIMIT $2)""",
    crosses="the worker purges visitors without messages of all companies",
)


async def insert_visitor(
    tx: Tx, company_id: int, id: str, external_id: str | None = None, name: str | None = None, email: str | None = None
) -> None:
    """An existing visitor stays unchanged."""
    await INSERT_VISITOR.run(tx, company_id, id, external_id, name, email)


async def find_locked_identified(tx: Tx, company_id: int, external_id: str) -> Visitor | None:
    return await LOCK_IDENTIFIED.find(tx, company_id, external_id)


async def describe(
    tx: Tx, company_id: int, id: str, external_id: str, name: str | None, email: str | None
) -> Visitor | None:
    return await DESCRIBE.find(tx, company_id, id, external_id, name, email)


async def state(tx: Tx, company_id: int, visitor_id: str, name: str, contact: str | None) -> None:
    await STATE.run(tx, company_id, visitor_id, name, contact)


async def purge_statements(tx: Tx, company_id: int, customer_id: str) -> None:
    await PURGE_STATEMENTS.run(tx, company_id, customer_id)


async def mark_typing(tx: Tx, company_id: int, visitor_id: str) -> None:
    await MARK_TYPING.run(tx, company_id, visitor_id)


async def list_typing(db: Connection, company_id: int, visitor_ids: list[str], seconds: float) -> list[str]:
    return [row[0] for row in await db.fetch(LIST_TYPING.text, company_id, visitor_ids, seconds)]


async def insert_session(tx: Tx, company_id: int, hash: bytes, visitor_id: str) -> None:
    await INSERT_SESSION.run(tx, company_id, hash, visitor_id)


async def drop_session(db: Connection, company_id: int, hash: bytes) -> None:
    await DROP_SESSION.run(db, company_id, hash)


async def drop_sessions(tx: Tx, company_id: int, visitor_id: str) -> None:
    await DROP_SESSIONS.run(tx, company_id, visitor_id)


async def find_session(db: Connection, company_id: int, hash: bytes, days: int) -> Visitor | None:
    return await FIND_SESSION.find(db, company_id, hash, days)


async def record_use(db: Connection, company_id: int, hash: bytes) -> None:
    await RECORD_USE.run(db, company_id, hash)


async def find_message_by_number(db: Connection, company_id: int, visitor_id: str, number: int) -> WidgetMessage | None:
    return await FIND_MESSAGE_BY_NUMBER.find(db, company_id, visitor_id, number)


async def list_after(db: Connection, company_id: int, visitor_id: str, number: int, limit: int) -> list[WidgetMessage]:
    return await LIST_AFTER.all(db, company_id, visitor_id, number, limit)


async def list_before(db: Connection, company_id: int, visitor_id: str, number: int, limit: int) -> list[WidgetMessage]:
    """The last messages before a number, oldest first."""
    return (await LIST_BEFORE.all(db, company_id, visitor_id, number, limit))[::-1]


async def mark_delivered(tx: Tx, company_id: int, visitor_id: str, numbers: list[int]) -> list[MarkedMessages]:
    return await MARK_DELIVERED.all(tx, company_id, visitor_id, numbers)


async def mark_read(tx: Tx, company_id: int, visitor_id: str, numbers: list[int]) -> list[MarkedMessages]:
    return await MARK_READ.all(tx, company_id, visitor_id, numbers)


async def list_positions(db: Connection, visitors: list[tuple[int, str]]) -> list[ConversationPosition]:
    return await LIST_POSITIONS.all(db, [company for company, _ in visitors], [id for _, id in visitors])


async def count(db: Connection, company_id: int, subject: str) -> int:
    """Counts this call, and returns the calls in the current minute."""
    used: int = await COUNT.value(db, company_id, subject)
    return used


async def purge_windows(tx: Tx) -> None:
    await PURGE_WINDOWS.run(tx)


async def purge_sessions(tx: Tx, days: int, limit: int) -> int:
    return await PURGE_SESSIONS.run(tx, days, limit)


async def purge_visitors(tx: Tx, days: int, limit: int) -> int:
    return await PURGE_VISITORS.run(tx, days, limit)
