"""The messages of a web chat, outbound and inbound."""

from datetime import datetime

import msgspec

from sapa.db.pool import Connection, Tx, notify_after_commit
from sapa.messaging.channels.widget import queries
from sapa.messaging.channels.widget.types import MessageView, Visitor, WidgetMessage

NOTIFY_CHANNEL = "sapa_widget"
"""Notified when a page has new messages to show."""
TYPING_CHANNEL = "sapa_widget_typing"
"""Notified of a visitor to whom somebody is writing."""


async def append_outbound(
    tx: Tx, company_id: int, visitor_id: str, reference: str, view: MessageView
) -> WidgetMessage | None:
    """Once for each reference; None if the visitor does not exist."""
    if await queries.find_locked_visitor(tx, company_id, visitor_id) is None:
        return None
    existing = await queries.find_message(tx, company_id, visitor_id, reference)
    return existing or await _append(tx, company_id, visitor_id, reference, "out", view)


async def append_inbound(
    tx: Tx, company_id: int, visitor: Visitor, reference: str, view: MessageView, at: datetime
) -> WidgetMessage:
    """The visitor's row has to be locked."""
    return await _append(tx, company_id, visitor.id, reference, "in", view, at)


async def find_locked_visitor(tx: Tx, company_id: int, id: str) -> Visitor | None:
    return await queries.find_locked_visitor(tx, company_id, id)


async def find_message(db: Connection, company_id: int, visitor_id: str, reference: str) -> WidgetMessage | None:
    return await queries.find_message(db, company_id, visitor_id, reference)


async def _append(
    tx: Tx,
    company_id: int,
    visitor_id: str,
    reference: str,
    direction: str,
    view: MessageView,
    at: datetime | None = None,
) -> WidgetMessage:
    message = await queries.append(tx, company_id, visitor_id, reference, direction, msgspec.json.encode(view), at)
    notify_after_commit(tx, NOTIFY_CHANNEL)
    return message


def build_typing_payload(company_id: int, visitor_id: str) -> str:
    return f"{company_id} {visitor_id}"


def build_message_id(visitor_id: str, number: int) -> str:
    """The channel's id of a message."""
    return f"{visitor_id}.{number}"
