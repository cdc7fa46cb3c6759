"""Queries for the messages of the web chat."""

from datetime import datetime

from msgspec import Raw

from sapa.access.statement_parts import CLOCK
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.messaging.channels.widget.types import Visitor, WidgetMessage

LOCK_VISITOR = sql(
    """
    SELECT id, external_id, name, email, stated_name, last_number
      FROM widget_visitors
     WHERE company_id = $1 AND id = $2
       FOR UPDATE""",
    row=Visitor,
)

APPEND = sql(
    f"""
    WITH {CLOCK}, visitor AS (
        UPDATE widget_visitors
           SET last_number = last_number + 1, seen_at = now(), typing_at = CASE WHEN $4 = 'out' THEN typing_at END
         WHERE company_id = $1 AND id = $2
        RETURNING last_number
    )
    INSERT INTO widget_lines (company_id, visitor_id, number, reference, direction, content, at)
    SELECT $1, $2, visitor.last_number, $3, $4, $5, coalesce($6, clock.now)
      FROM visitor
     CROSS JOIN clock
    RETURNING number, reference, direction, content, at, read_at IS NOT NULL AS is_read""",
    row=WidgetMessage,
)

FIND_MESSAGE = sql(
    """
    SELECT number, reference, direction, content, at, read_at IS NOT NULL AS is_read
      FROM widget_lines
     WHERE company_id = $1 AND visitor_id = $2 AND reference = $3""",
    row=WidgetMessage,
)


async def find_locked_visitor(tx: Tx, company_id: int, id: str) -> Visitor | None:
    return await LOCK_VISITOR.find(tx, company_id, id)


async def append(
    tx: Tx, company_id: int, visitor_id: str, reference: str, direction: str, content: bytes, at: datetime | None
) -> WidgetMessage:
    """Appends a message, at the company's time if `at` is None. The visitor's row has to be locked."""
    message = await APPEND.find(tx, company_id, visitor_id, reference, direction, Raw(content), at)
    assert message is not None  # noqa: S101 - the visitor was locked before
    return message


async def find_message(db: Connection, company_id: int, visitor_id: str, reference: str) -> WidgetMessage | None:
    return await FIND_MESSAGE.find(db, company_id, visitor_id, reference)
