"""How the timeline is read, and notes are added."""

import base64
import binascii
from typing import Annotated

from msgspec import Meta, Struct

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Invalid, NotFound
from sapa.http.query_string import POSITION, BadValue, PageLimit, parse_date_time
from sapa.timeline import actions, queries
from sapa.timeline.queries import Position
from sapa.timeline.types import (
    TIMELINE_ID,
    Category,
    TimelineEntry,
    TimelineMeta,
    TimelineNoteIn,
    TimelinePage,
)
from sapa.values.ids import CustomerId

routes = Routes(
    "/loyalty/customers",
    base=Base.CUSTOMER,
    tag="Timeline",
    about="What happened to one customer, newest first.",
    resource="customers",
)

Cursor = Annotated[str, Meta(max_length=200), POSITION]
Months = Annotated[int, Meta(ge=1, le=120, description="How many months to look back.")]


class TimelineQuery(Struct, frozen=True, kw_only=True):
    """Which part of the timeline to read."""

    category: Annotated[Category, Meta(description="Only entries of this category.")] | None = None
    limit: PageLimit = 20
    after: Annotated[Cursor, Meta(description="Return entries after this cursor, which are older.")] | None = None
    before: Annotated[Cursor, Meta(description="Return entries before this cursor, which are newer.")] | None = None
    months: Months | None = None


@routes.get("/{customerId}/timeline", scope=Scope.CUSTOMERS_READ, raises=[NotFound])
async def list_timeline_entries(call: Call, customer_id: CustomerId, query: TimelineQuery) -> TimelinePage:
    """List the entries of a customer's timeline.

    Newest first. For the next page send the response's endCursor as `after`; for the previous page send its startCursor
    as `before`. An entry has the time of its change, which may be shortly before it becomes visible. If you poll a
    timeline, overlap by a few seconds; use webhooks to miss nothing.
    """
    if query.after is not None and query.before is not None:
        raise Invalid.field("before", "cannot be combined with after; send one of them")
    after, before = _parse_cursor("after", query.after), _parse_cursor("before", query.before)
    if not await queries.has_customer(call.db, call.company.id, customer_id):
        raise NotFound
    filters = (call.db, call.company.id, customer_id, query.category, query.months)
    total = await queries.count_entries(*filters)
    if before is not None:
        found = await queries.list_newer(*filters, query.limit + 1, before)
        entries = found[: query.limit][::-1]
        # Without entries before the cursor, all entries are after it.
        has_older = bool(await queries.list_older(*filters, 1, _position_of(entries[-1])) if entries else total)
        return _build_page(entries, len(found) > query.limit, has_older, total)
    found = await queries.list_older(*filters, query.limit + 1, after)
    entries = found[: query.limit]
    has_newer = after is not None and bool(
        await queries.list_newer(*filters, 1, _position_of(entries[0])) if entries else total
    )
    return _build_page(entries, has_newer, len(found) > query.limit, total)


@routes.post("/{customerId}/timeline", scope=Scope.CUSTOMERS_WRITE, raises=[NotFound])
async def add_timeline_note(call: Call, customer_id: CustomerId, body: TimelineNoteIn) -> TimelineEntry:
    """Add a note to a customer's timeline.

    Only the company's people see it.
    """
    return await actions.add_note(call.db, call.company, customer_id, body, call.actor)


def _build_page(entries: list[TimelineEntry], has_previous: bool, has_next: bool, total: int) -> TimelinePage:
    start, end = (_cursor(entries[0]), _cursor(entries[-1])) if entries else (None, None)
    return TimelinePage(entries, TimelineMeta(start, end, has_next, has_previous, total))


def _cursor(entry: TimelineEntry) -> str:
    return base64.urlsafe_b64encode(f"{entry.created_at} {entry.id}".encode()).rstrip(b"=").decode()


def _position_of(entry: TimelineEntry) -> Position:
    return parse_date_time(entry.created_at), entry.id


def _parse_cursor(name: str, cursor: str | None) -> Position | None:
    if cursor is None:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
        instant, _, id = text.partition(" ")
        if TIMELINE_ID.matches(id):
            return parse_date_time(instant), id
    except (binascii.Error, ValueError, BadValue):
        pass
    raise Invalid.field(name, "is not a cursor of this list; send a startCursor or endCursor from a response")
