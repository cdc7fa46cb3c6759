"""The window of a report: two instants, both included, and the whole days between them."""

from datetime import UTC, date, datetime, time, timedelta

from msgspec import Struct

from sapa.http.query_string import check_period
from sapa.http.responses import Timestamp
from sapa.values.instants import format_instant

DEFAULT_LENGTH = timedelta(days=30)
DAY = timedelta(days=1)
INSTANT = timedelta(microseconds=1)
EARLIEST = datetime.min.replace(tzinfo=UTC)
LAST = datetime(9999, 1, 1, tzinfo=UTC)
"""The latest end of a window; later there is no next month in `datetime`."""


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


def build_window(start_at: datetime | None, end_at: datetime | None, now: datetime) -> SampleRange:
    """Without `end_at` the window ends now; without `start_at` it begins 30 days before its end."""
    end = now if end_at is None else end_at
    start = _before(end) if start_at is None else start_at
    check_period("startAt", start, "endAt", end)
    return SampleRange(start, end)


def _before(end: datetime) -> datetime:
    return EARLIEST if end - EARLIEST < DEFAULT_LENGTH else end - DEFAULT_LENGTH


def _next_month(day: date) -> date:
    return (day.replace(day=28) + 4 * DAY).replace(day=1)
