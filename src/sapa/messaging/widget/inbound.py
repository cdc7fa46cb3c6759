"""What visitors send: words, choices, and acknowledgements of what they were shown.

A page's message is stored, and announced as message.received, in the transaction that answers the page. A provider's
callback is kept as it came and understood later, because it would not wait and may say anything; a page is ours, what
it sends is checked before it is taken, and it sends again with the same id until it was told that it was taken.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http.errors import Invalid
from sapa.messaging.channels.interface import Interaction, Source, Status, StatusReport
from sapa.messaging.channels.widget import calls
from sapa.messaging.channels.widget import messages as lines
from sapa.messaging.channels.widget.types import (
    MessageView,
    NoSuchChoice,
    UnknownSession,
    WidgetMessage,
)
from sapa.messaging.inbound.actions import CallbackContext, receive_item
from sapa.messaging.messages import actions as messages
from sapa.messaging.widget import queries as widget
from sapa.messaging.widget.queries import MarkedMessages
from sapa.messaging.widget.visits import WidgetVisit

LONGEST_TEXT = 4096
MOST_ACKNOWLEDGED = 100

Numbers = Annotated[list[Annotated[int, Meta(ge=1, le=2**53)]], Meta(max_length=MOST_ACKNOWLEDGED)]


class ChosenOption(Struct, frozen=True, forbid_unknown_fields=True):
    """A button or row of a message."""

    number: Annotated[int, Meta(ge=1, le=2**53)]
    id: Annotated[str, Meta(min_length=1, max_length=256)]


class VisitorMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """A message of a visitor; the page makes up its id, and uses it again when it does not know what became of it."""

    id: Annotated[str, Meta(pattern=r"^p_[0-9a-zA-Z-]{16,64}\Z")]
    text: Annotated[str, Meta(max_length=LONGEST_TEXT, pattern=r"^[^\x00]*\Z")] = ""
    choice: ChosenOption | None = None


class VisitorReceipt(Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers of lines that reached a page, and of those that somebody looked at."""

    delivered: Numbers = []
    read: Numbers = []


async def take(tx: Tx, context: AppContext, visit: WidgetVisit, said: VisitorMessage) -> WidgetMessage:
    """Once for each id."""
    company = visit.company
    visitor = await widget.lock_visitor(tx, company.id, visit.visitor.id)
    if visitor is None:
        raise UnknownSession
    if known := await widget.find_message(tx, company.id, visitor.id, said.id):
        return known
    choice = None if said.choice is None else await _choose(tx, visit, said.choice)
    text = said.text.strip() if choice is None else choice.title
    if not text:
        raise Invalid.field("text", "must not be empty")
    line = await lines.hear(tx, company.id, visitor, said.id, MessageView(text=text))
    await _receive(tx, context, visit, line, text, choice, said.choice)
    return line


async def _choose(tx: Tx, visit: WidgetVisit, chosen: ChosenOption) -> Interaction:
    """Only what the message offered can be chosen, and under the title that it had there."""
    line = await widget.find_message_by_number(tx, visit.company.id, visit.visitor.id, chosen.number)
    if line is None or line.direction != "out":
        raise NoSuchChoice
    shown = msgspec.json.decode(line.content, type=MessageView)
    for button in shown.buttons:
        if button.id == chosen.id:
            return Interaction("button", button.id, button.title)
    for row in (row for section in shown.sections for row in section.rows):
        if row.id == chosen.id:
            return Interaction("list", row.id, row.title)
    raise NoSuchChoice


async def _receive(
    tx: Tx,
    context: AppContext,
    visit: WidgetVisit,
    line: WidgetMessage,
    text: str,
    choice: Interaction | None,
    chosen: ChosenOption | None,
) -> None:
    """The same way that every channel's messages take from here."""
    visitor, at = visit.visitor, datetime.fromisoformat(line.at)
    quoted = lines.build_message_id(visitor.id, chosen.number) if chosen else None
    inbound = calls.build_inbound(
        lines.build_message_id(visitor.id, line.number), visitor.id, at, text, choice, quoted,
        name=visitor.name, email=visitor.email,
    )  # fmt: skip
    await receive_item(tx, CallbackContext(context, visit.company, visit.opened, at), inbound)


async def acknowledge(tx: Tx, visit: WidgetVisit, acknowledged: VisitorReceipt) -> None:
    """What was read was delivered, too. Each is reported once, however often a page says it."""
    company_id, visitor_id = visit.company.id, visit.visitor.id
    arrived = sorted({*acknowledged.delivered, *acknowledged.read})
    delivered = await widget.mark_delivered(tx, company_id, visitor_id, arrived)
    await _report(tx, visit, "delivered", delivered)
    read = await widget.mark_read(tx, company_id, visitor_id, sorted(set(acknowledged.read)))
    await _report(tx, visit, "read", read)


async def _report(tx: Tx, visit: WidgetVisit, status: Status, marked: Sequence[MarkedMessages]) -> None:
    for line in marked:
        at = datetime.fromisoformat(line.at)
        message_id = lines.build_message_id(visit.visitor.id, line.number)
        report = StatusReport(status, at, message_id=message_id, reference=line.reference)
        await messages.apply(tx, visit.company, Source.WIDGET, report, at)
