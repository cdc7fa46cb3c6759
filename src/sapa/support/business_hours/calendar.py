"""Counts time within business hours. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from sapa.support.business_hours.types import DAYS, Holiday, OpenHours

ONE_DAY = timedelta(days=1)


class Calendar(Struct, frozen=True):
    """Business hours, ready to count with."""

    zone: ZoneInfo
    hours_by_day: Mapping[int, Sequence[tuple[timedelta, timedelta]]]
    """Opening and closing since midnight, in order, by the day's number from Monday 0."""
    holidays: frozenset[date]


def build_calendar(time_zone: str, weekly: Sequence[OpenHours], holidays: Sequence[Holiday]) -> Calendar:
    """Without weekly hours every day is open around the clock."""
    whole_day = {day: [(timedelta(0), ONE_DAY)] for day in range(7)}
    hours = {
        day: sorted((parse_time(each.opens), parse_time(each.closes)) for each in weekly if each.day == name)
        for day, name in enumerate(DAYS)
    }
    return Calendar(ZoneInfo(time_zone), hours if weekly else whole_day, frozenset(each.date for each in holidays))


def parse_time(text: str) -> timedelta:
    """A time of day as the time since midnight."""
    hours, minutes = text.split(":")
    return timedelta(hours=int(hours), minutes=int(minutes))


def find_opening(calendar: Calendar, now: datetime) -> datetime | None:
    """When it opens again; None while it is open."""
    opens, _ = next(_list_spans(calendar, now))
    return opens if opens > now else None


def add_open_time(calendar: Calendar, start: datetime, duration: timedelta) -> datetime:
    """When as much open time has passed since the start. Ends, because holidays are few."""
    for opens, closes in _list_spans(calendar, start):
        if closes - opens >= duration:
            return opens + duration
        duration -= closes - opens
    raise AssertionError("the spans never end")


def count_open_time(calendar: Calendar, start: datetime, end: datetime) -> timedelta:
    total = timedelta(0)
    for opens, closes in _list_spans(calendar, start):
        if opens >= end:
            return total
        total += min(closes, end) - opens
    return total


def _list_spans(calendar: Calendar, start: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Open spans from the start on, without end. Spans never overlap, also where clocks are put forward."""
    reached = start.astimezone(UTC)
    day = start.astimezone(calendar.zone).date() - ONE_DAY
    while True:
        for opening, closing in () if day in calendar.holidays else calendar.hours_by_day[day.weekday()]:
            opens = max(_locate(calendar, day, opening), reached)
            closes = _locate(calendar, day, closing)
            if opens < closes:
                reached = closes
                yield opens, closes
        day += ONE_DAY


def _locate(calendar: Calendar, day: date, since_midnight: timedelta) -> datetime:
    """The instant at which the clock on the wall shows this time; the first one where it shows it twice."""
    return (datetime.combine(day, time()) + since_midnight).replace(tzinfo=calendar.zone).astimezone(UTC)
