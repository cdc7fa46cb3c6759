"""The window of a report: two instants, both included, and the whole days between them."""

import re
from datetime import UTC, date, datetime, time, timedelta

from msgspec import Struct

from sapa.http.errors import Invalid
from sapa.http.query_string import BadValue, parse_date_time
from sapa.http.responses import Timestamp
from sapa.values.instants import format_instant

DEFAULT_LENGTH = timedelta(days=30)
DAY = timedelta(days=1)
INSTANT = timedelta(microseconds=1)
EARLIEST = datetime.min.replace(tzinfo=UTC)
LAST = datetime(9999, 1, 1, tzinfo=UTC)
"""The latest end of a window; later there is no next month in `datetime`."""

ADVICE = (
    "must be an ISO 8601 date-time with an offset, such as 2026-01-31T09:30:00Z, or a date in UTC, such as 2026-01-31"
)

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII).fullmatch


class SampleRange(Struct, frozen=True):
    """A period; both ends are included."""

    start: datetime
    end: datetime

    @property
    def first_day(self) -> date:
        """The first whole day (UTC) of the window."""
        start = min(self.start, LAST)
        return start.date() if start.time() == time() else (start + DAY).date()

    @property
    def past_day(self) -> date:
        """The day after the last whole day. Without a whole day it equals `first_day`: everything lies before or after
        it."""
        return max((min(self.end, LAST) + INSTANT).date(), self.first_day)

    @property
    def months(self) -> tuple[date, date]:
        """The first day of the first whole month, and of the month after the last one. Without a whole month both are
        the day after the last whole day, so that all days lie before."""
        first, past = self.first_day, self.past_day
        begin, end = first if first.day == 1 else _next_month(first), past.replace(day=1)
        return (begin, end) if begin < end else (past, past)

    @property
    def timestamps(self) -> tuple[Timestamp, Timestamp]:
        return format_instant(self.start), format_instant(self.end)


def parse_window(start_at: str | None, end_at: str | None, now: datetime) -> SampleRange:
    """Without `end_at` the window ends now; without `start_at` it begins 30 days before its end."""
    end = parse_instant("endAt", end_at, is_end=True) if end_at is not None else now
    start = parse_instant("startAt", start_at, is_end=False) if start_at is not None else _before(end)
    if start > end:
        raise Invalid.field("startAt", f"must not be after endAt, which is {format_instant(end)}")
    return SampleRange(start, end)


def parse_instant(name: str, text: str, is_end: bool) -> datetime:
    """A date means its first instant at the start of the window and its last instant at the end."""
    try:
        if _DATE(text):
            return datetime.combine(date.fromisoformat(text), time.max if is_end else time.min, UTC)
        return parse_date_time(text)
    except (BadValue, ValueError):
        raise Invalid.field(name, ADVICE) from None


def _before(end: datetime) -> datetime:
    return EARLIEST if end - EARLIEST < DEFAULT_LENGTH else end - DEFAULT_LENGTH


def _next_month(day: date) -> date:
    return (day.replace(day=28) + 4 * DAY).replace(day=1)
