"""Receives visitors' messages, choices and receipts.

A message is stored, and announced as message.received, in the transaction of the page's request. A provider's callback
is stored raw and processed later, because the provider does not wait and may send anything. A page is our own: what it
sends is validated first, and it repeats a message with the same id until it gets a response.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http.errors import Invalid
from sapa.messaging.channels.files import FileDescription
from sapa.messaging.channels.interface import InboundMedia, Interaction, Source, Status, StatusReport
from sapa.messaging.channels.widget import calls
from sapa.messaging.channels.widget import messages as widget_messages
from sapa.messaging.channels.widget.types import (
    MessageView,
    NoSuchChoice,
    UnknownSession,
    WidgetMessage,
)
from sapa.messaging.files import actions as files
from sapa.messaging.files.file_types import get_family
from sapa.messaging.inbound.actions import CallbackContext, receive_item
from sapa.messaging.messages import actions as messages
from sapa.messaging.messages.types import MESSAGE_ID
from sapa.messaging.widget import queries as widget
from sapa.messaging.widget.queries import MarkedMessages
from sapa.messaging.widget.visits import WidgetVisit

MAX_TEXT_LENGTH = 4096
MAX_ACKNOWLEDGED = 100
MAX_FILES = 5

Numbers = Annotated[list[Annotated[int, Meta(ge=1, le=2**53)]], Meta(max_length=MAX_ACKNOWLEDGED)]


class ChosenOption(Struct, frozen=True, forbid_unknown_fields=True):
    """A button or row of a message."""

    number: Annotated[int, Meta(ge=1, le=2**53)]
    id: Annotated[str, Meta(min_length=1, max_length=256)]


class VisitorMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """A visitor's message. The page generates the id, and uses it again for a retry."""

    id: Annotated[str, Meta(pattern=r"^p_[0-9a-zA-Z-]{16,64}\Z")]
    text: Annotated[str, Meta(max_length=MAX_TEXT_LENGTH, pattern=r"^[^\x00]*\Z")] = ""
    files: Annotated[list[Annotated[str, Meta(max_length=64)]], Meta(max_length=MAX_FILES)] = []
    """The ids of files that this visitor uploaded."""
    choice: ChosenOption | None = None


class VisitorReceipt(Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers of messages that a page received, and of those that the visitor read."""

    delivered: Numbers = []
    read: Numbers = []


async def receive(tx: Tx, context: AppContext, visit: WidgetVisit, message: VisitorMessage) -> WidgetMessage:
    """Idempotent by the message's id."""
    company = visit.company
    visitor = await widget_messages.find_locked_visitor(tx, company.id, visit.visitor.id)
    if visitor is None:
        raise UnknownSession
    if existing := await widget_messages.find_message(tx, company.id, visitor.id, message.id):
        return existing
    chosen = message.choice
    choice = None if chosen is None else await _choose(tx, visit, chosen)
    text = message.text.strip() if choice is None else choice.title
    media = await _list_files(tx, visit, message.files) if choice is None else []
    if not text and not media:
        raise Invalid.field("text", "must not be blank without files")
    now, message_id = (await read_clock(tx, company.id)).now, MESSAGE_ID.new()
    view = MessageView(text=text, files=calls.build_file_views(message_id, [_describe(each) for each in media]))
    stored = await widget_messages.append_inbound(tx, company.id, visitor, message.id, view, now)
    # From here on the message is processed like a message of any other channel.
    inbound = calls.build_inbound(
        widget_messages.build_message_id(visitor.id, stored.number), visitor.id, now, text, choice,
        None if chosen is None else widget_messages.build_message_id(visitor.id, chosen.number),
        name=visit.visitor.name or visit.visitor.stated_name, email=visit.visitor.email, media=media,
    )  # fmt: skip
    await receive_item(tx, CallbackContext(context, company, visit.connected, now), inbound, message_id)
    return stored


async def _list_files(tx: Tx, visit: WidgetVisit, ids: Sequence[str]) -> list[InboundMedia]:
    """Only files that this visitor uploaded."""
    found = await files.get_files(tx, visit.company, "files", ids)
    if any(file.visitor_id != visit.visitor.id for file in found):
        raise Invalid.field("files", files.NOT_THERE)
    return [
        InboundMedia(
            get_family(file.media_type), file.media_type, filename=file.filename, file_id=file.id, size=file.size
        )
        for file in found
    ]


def _describe(media: InboundMedia) -> FileDescription:
    return FileDescription(media.type, media.filename or "", media.mime_type or "", media.size or 0)


async def _choose(tx: Tx, visit: WidgetVisit, chosen: ChosenOption) -> Interaction:
    """Only options of the message can be chosen, with their titles."""
    stored = await widget.find_message_by_number(tx, visit.company.id, visit.visitor.id, chosen.number)
    if stored is None or stored.direction != "out":
        raise NoSuchChoice
    view = msgspec.json.decode(stored.content, type=MessageView)
    for button in view.buttons:
        if button.id == chosen.id:
            return Interaction("button", button.id, button.title)
    for row in (row for section in view.sections for row in section.rows):
        if row.id == chosen.id:
            return Interaction("list", row.id, row.title)
    raise NoSuchChoice


async def acknowledge(tx: Tx, visit: WidgetVisit, acknowledged: VisitorReceipt) -> None:
    """A read message is also delivered. Each receipt is reported once, however often the page sends it."""
    company_id, visitor_id = visit.company.id, visit.visitor.id
    arrived = sorted({*acknowledged.delivered, *acknowledged.read})
    delivered = await widget.mark_delivered(tx, company_id, visitor_id, arrived)
    await _report(tx, visit, "delivered", delivered)
    read = await widget.mark_read(tx, company_id, visitor_id, sorted(set(acknowledged.read)))
    await _report(tx, visit, "read", read)


async def _report(tx: Tx, visit: WidgetVisit, status: Status, marked: Sequence[MarkedMessages]) -> None:
    for stored in marked:
        message_id = widget_messages.build_message_id(visit.visitor.id, stored.number)
        report = StatusReport(status, stored.at, message_id=message_id, reference=stored.reference)
        await messages.apply(tx, visit.company, Source.WIDGET, report, stored.at)
