"""Reading the log of API calls, a page at a time."""

import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, datetime

from sapa.access.calls import queries
from sapa.access.calls.queries import CallFilter, CallPosition
from sapa.access.calls.types import ApiCall, ApiCallsQuery
from sapa.db.pool import Connection
from sapa.http.allow_list import parse_address
from sapa.http.errors import Invalid
from sapa.http.query_string import BadValue, parse_date_time
from sapa.http.responses import CursorPage, build_cursor_page

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 12, 31, tzinfo=UTC)
_AFTER_ALL_IDS = "~"


async def list_page(
    db: Connection, company_id: int, query: ApiCallsQuery, slices: Sequence[int] | None = None
) -> CursorPage[ApiCall]:
    """Newest first. However rare what the filters describe is, a page reads only some slices of the log, and the next
    one goes on from there: so it may have fewer calls than its limit although there are more."""
    filter = _build_filter(query)
    start = CallPosition(_clamp(query.called_from or EARLIEST), "")
    end = _get_end(query)
    found: list[ApiCall] = []
    for size in slices or queries.get_slices(filter):
        slice_start = await queries.find_slice(db, company_id, filter, start, end, size)
        wanted = query.limit + 1 - len(found)
        found += await queries.list_calls(db, company_id, filter, slice_start or start, end, wanted)
        if len(found) > query.limit:
            return build_cursor_page(found[:-1], query.limit, _build_cursor(_position_of(found[-2])))
        if slice_start is None:
            return build_cursor_page(found, query.limit, None)
        end = slice_start
    return build_cursor_page(found, query.limit, _build_cursor(end))


def _build_filter(query: ApiCallsQuery) -> CallFilter:
    lowest, highest = 100, 599
    if query.status is not None:
        lowest, highest = int(query.status.replace("xx", "00")), int(query.status.replace("xx", "99"))
    return CallFilter(
        key_id=query.key_id,
        route=query.route,
        method=query.method and query.method.upper(),
        lowest_status=lowest,
        highest_status=highest,
        code=query.code,
        address=query.address and str(parse_address(query.address) or query.address),
        request_id=query.request_id,
    )


def _get_end(query: ApiCallsQuery) -> CallPosition:
    """The earlier of the cursor and the end of the period."""
    last = CallPosition(_clamp(query.called_to or LATEST), _AFTER_ALL_IDS)
    if query.before is None:
        return last
    return min(_parse_cursor(query.before), last, key=lambda position: (position.called_at, position.request_id))


def _clamp(instant: datetime) -> datetime:
    return min(max(instant, EARLIEST), LATEST)


def _position_of(call: ApiCall) -> CallPosition:
    return CallPosition(parse_date_time(call.called_at), call.request_id)


def _build_cursor(position: CallPosition) -> str:
    text = f"{position.called_at.isoformat()} {position.request_id}"
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def _parse_cursor(cursor: str) -> CallPosition:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
        instant, _, request_id = text.partition(" ")
        if "\0" not in request_id:
            return CallPosition(_clamp(parse_date_time(instant)), request_id)
    except (binascii.Error, ValueError, BadValue):
        pass
    raise Invalid.field("before", "is not a cursor of this list; send the nextBefore of a response")
