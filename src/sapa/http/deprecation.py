"""Declares that an operation will end: its responses say so in headers, the documents mark it."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sapa.http.keys import Retirement

NOTICE = timedelta(days=365)


def deprecate(since: date, ends: date) -> Callable[[Any], Any]:
    """For a handler, below the declaration of its route. An operation works for at least a year after the release that
    deprecates it."""
    if ends - since < NOTICE:
        raise TypeError(f"From {since} to {ends} is less than the year that callers have been promised")

    def mark(handler: Any) -> Any:
        handler.retirement = Retirement(_midnight(since), _midnight(ends))
        return handler

    return mark


def _midnight(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
