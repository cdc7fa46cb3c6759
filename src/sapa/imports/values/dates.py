"""Dates as shops, marketplaces and spreadsheets write them."""

import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sapa.imports.cells import BadCell
from sapa.values.enum_names import EnumName

DayOrder = Annotated[Literal["dmy", "mdy"], EnumName("DayOrder")]

ADVICE = "must be a date, such as 2026-08-17 10:15 or 17/08/2026"
LONGEST = 60
EPOCH = datetime(1899, 12, 30)
"""Day 0 of a spreadsheet: 25569 is 1970-01-01."""

_MONTHS = {
    name: number
    for number, names in enumerate(
        [
            "jan januari january", "feb februari february pebruari", "mar mrt maret march", "apr april", "mei may",
            "jun juni june", "jul juli july", "agu agt ags agustus aug august", "sep sept september",
            "okt oktober oct october", "nov nop november nopember", "des desember dec december",
        ],
        1,
    )
    for name in names.split()
}  # fmt: skip

_TIME = (
    r"(?:[T ,]+(?:pukul |jam |at )?(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2})(?:\.\d+)?)?"
    r"(?: ?(?P<half>[AP]\.?M\.?))?(?: ?(?P<zone>Z|UTC|GMT|WIB|WITA|WIT|[+-]\d{2}(?::?\d{2})?))?)?"
)
_ISO = re.compile(rf"(?P<year>\d{{4}})[-/.](?P<month>\d{{1,2}})[-/.](?P<day>\d{{1,2}}){_TIME}", re.IGNORECASE)
_NUMBERS = re.compile(
    rf"(?P<first>\d{{1,2}})[-/.](?P<next>\d{{1,2}})[-/.](?P<year>\d{{4}}|\d{{2}}){_TIME}", re.IGNORECASE
)
_WORDS = re.compile(
    rf"(?:\w+, ?)?(?P<day>\d{{1,2}})[ -](?P<name>[A-Za-z]+)\.?[ ,-]+(?P<year>\d{{4}}|\d{{2}}){_TIME}", re.IGNORECASE
)
_AMERICAN = re.compile(
    rf"(?P<name>[A-Za-z]+)\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}}){_TIME}", re.IGNORECASE
)
_SERIAL = re.compile(r"(?P<days>\d{5})(?:[.,](?P<fraction>\d+))?")
_OFFSETS = {"Z": 0, "UTC": 0, "GMT": 0, "WIB": 7, "WITA": 8, "WIT": 9}


def get_zone(name: str) -> tzinfo:
    """Raises BadCell for an unknown name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadCell(f"{name[:60]!r} is not a time zone; use a name such as Asia/Jakarta") from None


def parse_date_cell(text: str, zone: tzinfo, order: DayOrder | None = None) -> datetime:
    """The instant; without an offset the time is the zone's. `order` is that of the column: 3/4/2026 is 3 April."""
    text = " ".join(text[: LONGEST + 1].split())
    if len(text) > LONGEST:
        raise BadCell(f"{ADVICE}; it is {text[:40]!r}")
    if serial := _SERIAL.fullmatch(text):
        days = float(f"{serial['days']}.{serial['fraction'] or 0}")
        local = EPOCH + timedelta(seconds=round(days * 86_400))
        return local.replace(tzinfo=zone).astimezone(UTC)
    for pattern in (_ISO, _NUMBERS, _WORDS, _AMERICAN):
        if match := pattern.fullmatch(text):
            return _build_instant(match, zone, order)
    raise BadCell(f"{ADVICE}; it is {text[:40]!r}")


def _build_instant(match: re.Match[str], zone: tzinfo, order: DayOrder | None) -> datetime:
    parts = match.groupdict()
    year = int(parts["year"]) + (2000 if len(parts["year"]) == 2 else 0)
    month, day = _month_and_day(parts, order)
    hour = _hour(int(parts["hour"] or 0), parts["half"])
    try:
        local = datetime(year, month, day, hour, int(parts["minute"] or 0), int(parts["second"] or 0))
        return local.replace(tzinfo=_offset(parts["zone"]) or zone).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadCell(f"{ADVICE}; it is {match[0][:40]!r}") from None


def _month_and_day(parts: dict[str, str], order: DayOrder | None) -> tuple[int, int]:
    if name := parts.get("name"):
        if name.lower() not in _MONTHS:
            raise BadCell(f"{ADVICE}; {name[:20]!r} is not a month")
        return _MONTHS[name.lower()], int(parts["day"])
    if "first" not in parts:
        return int(parts["month"]), int(parts["day"])
    first, second = int(parts["first"]), int(parts["next"])
    is_american = order == "mdy" if first <= 12 and second <= 12 else second > 12
    return (first, second) if is_american else (second, first)


def _hour(hour: int, half: str | None) -> int:
    if half is None:
        return hour
    return hour % 12 + (12 if half[0].lower() == "p" else 0)


def _offset(text: str | None) -> tzinfo | None:
    if text is None:
        return None
    if text.upper() in _OFFSETS:
        return timezone(timedelta(hours=_OFFSETS[text.upper()]))
    minutes = int(text[1:3]) * 60 + int(text[3:].lstrip(":") or 0)
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def decide_day_order(texts: Iterable[str]) -> DayOrder | None:
    """The order of a column's dates, by those that can be read in one way only."""
    orders: list[DayOrder] = []
    for text in texts:
        match = _NUMBERS.fullmatch(" ".join(text[:LONGEST].split()))
        if match and max(int(match["first"]), int(match["next"])) > 12:
            orders.append("mdy" if int(match["next"]) > 12 else "dmy")
    return Counter(orders).most_common(1)[0][0] if orders else None
