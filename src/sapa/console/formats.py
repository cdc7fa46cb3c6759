"""How pages write money, numbers, times and phone numbers: in the reader's language and time zone."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

import phonenumbers
from markupsafe import Markup, escape
from msgspec import Struct

from sapa.console.translations import build_translator
from sapa.values.money import DIGITS

SPACE = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
NONE = "–"
SYMBOLS = {"IDR": "Rp"}
WHOLE = {"IDR"}
"""Currencies whose decimals nobody writes, unless there are any."""
DEFAULT_ZONE = "Asia/Jakarta"
MONTHS = {
    "en": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    "id": ("Jan", "Feb", "Mar", "Apr", "Mei", "Jun", "Jul", "Agu", "Sep", "Okt", "Nov", "Des"),
}
SHORT = {"en": ((10**9, "B"), (10**6, "M")), "id": ((10**9, f"{SPACE}M"), (10**6, f"{SPACE}jt"))}
SHORT_FROM = 10**6
ZONES = {"Asia/Jakarta": "WIB", "Asia/Pontianak": "WIB", "Asia/Makassar": "WITA", "Asia/Jayapura": "WIT"}
"""What people call them; the others have the abbreviation of the time zone database."""

Number = int | float | Decimal
_DAYS = re.compile(r"(\d+(?:\s*[-–]\s*\d+)?)\s*(?:days?|hari)\b", re.IGNORECASE)
_HOURS = re.compile(r"(\d+(?:\s*[-–]\s*\d+)?)\s*(?:hours?|jam)\b", re.IGNORECASE)


@cache
def get_zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


class Formats(Struct, frozen=True):
    """One reader's way of writing."""

    language: str
    zone: str = DEFAULT_ZONE
    now: datetime | None = None

    def number(self, value: Number | str | None) -> str:
        """The API writes some numbers as text."""
        if value is None:
            return NONE
        number = Decimal(value) if isinstance(value, str) else value
        return point_number(self.language, f"{number:,f}" if isinstance(number, Decimal) else f"{number:,}")

    def money(self, value: Number | None, currency: str) -> Markup:
        """A currency that is always whole shows decimals only if it has any, the others all of theirs."""
        return escape(NONE) if value is None else _write_money(self.language, str(value), currency)

    def short_money(self, value: Number, currency: str) -> str:
        """For tiles: Rp 4.8M, Rp 4,8 jt."""
        amount = Decimal(str(value))
        for size, unit in SHORT[self.language]:
            if abs(amount) >= max(size, SHORT_FROM):
                short = f"{abs(amount) / size:,.1f}".removesuffix(".0")
                return _sign(self.language, amount, currency, short) + unit
        return _sign(self.language, amount, currency, f"{abs(amount):,.0f}")

    def instant(self, value: str | datetime | date | None) -> Markup:
        """How long ago within the last hour, else the time of the day, else the day."""
        return self._show(value, is_relative=True)

    def at(self, value: str | datetime | date | None) -> Markup:
        """As `instant`, with the time of the day also within the last hour: it stays the same while a page is open."""
        return self._show(value, is_relative=False)

    def stamp(self, value: str | datetime | None, *, seconds: bool = False) -> str:
        """The whole instant with its zone; in logs with seconds."""
        if value is None:
            return NONE
        return self._stamp(self._localise(value), seconds=seconds)

    def _stamp(self, local: datetime, *, seconds: bool = False) -> str:
        clock = self._clock(local, seconds=seconds)
        return f"{self.day(local)}, {clock} {ZONES.get(self.zone) or local.tzname()}"

    def clock(self, value: str | datetime) -> str:
        """The time of the day."""
        return self._clock(self._localise(value))

    def day(self, value: date) -> str:
        return f"{value.day} {MONTHS[self.language][value.month - 1]} {value.year}"

    def day_of(self, value: str | date) -> str:
        """A day, or the day of an instant, which the API writes as text."""
        if not isinstance(value, str):
            return self.day(value)
        is_day = len(value) == len("2026-11-18")
        return self.day(date.fromisoformat(value) if is_day else self._localise(value))

    def ago(self, value: str | datetime | None) -> Markup | str:
        return build_translator(self.language)("never") if value is None else self.instant(value)

    def phone(self, value: str | None) -> str:
        """+62 812-9876-5432; what is no phone number stays as it is."""
        return group_phone(value) if value and value.startswith("+") else value or NONE

    def estimate(self, value: str) -> str:
        """How long a carrier says that it takes, with its days and hours in the reader's language."""
        say = build_translator(self.language)
        in_days = _DAYS.sub(lambda found: say("{n} days", n=found[1]), value)
        return _HOURS.sub(lambda found: say("{n} hours", n=found[1]), in_days)

    def _show(self, value: str | datetime | date | None, *, is_relative: bool) -> Markup:
        if value is None:
            return escape(NONE)
        if isinstance(value, date) and not isinstance(value, datetime):
            return escape(self.day(value))
        local, tag = _open_time_tag(self.language, self.zone, value)
        return Markup(f"{tag}{self._say(local, is_relative=is_relative)}</time>")  # noqa: S704 - words of ours

    def _say(self, local: datetime, *, is_relative: bool) -> str:
        say = build_translator(self.language)
        now = (self.now or datetime.now(UTC)).astimezone(local.tzinfo)
        seconds, days = (now - local).total_seconds(), (now.date() - local.date()).days
        if is_relative and 0 <= seconds < 60:
            return say("just now")
        if is_relative and 0 <= seconds < 3600:
            return say("{n} min ago", n=int(seconds // 60))
        if days == 0:
            return self._clock(local)
        if days == 1:
            return say("Yesterday {time}", time=self._clock(local))
        if local.year == now.year:
            return f"{local.day} {MONTHS[self.language][local.month - 1]} {self._clock(local)}"
        return f"{self.day(local)} {self._clock(local)}"

    def _localise(self, value: str | datetime) -> datetime:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else value
        zone = get_zone(self.zone)
        try:
            return instant.astimezone(zone)
        except (OverflowError, ValueError):  # on the first or the last day of the calendar, some hours are of no year
            return instant.replace(tzinfo=zone)

    def _clock(self, local: datetime, *, seconds: bool = False) -> str:
        mark = ":" if self.language == "en" else "."
        clock = f"{local.hour:02}{mark}{local.minute:02}"
        return f"{clock}{mark}{local.second:02}" if seconds else clock


@lru_cache(maxsize=10_000)
def _open_time_tag(language: str, zone: str, value: str | datetime) -> tuple[datetime, str]:
    """The local time, and the tag that has it in full. Lists show the same times again and again."""
    formats = Formats(language, zone)
    local = formats._localise(value)
    return local, f'<time datetime="{local.isoformat(timespec="seconds")}" title="{formats._stamp(local)}">'


@lru_cache(maxsize=10_000)
def _write_money(language: str, number: str, currency: str) -> Markup:
    """Lists show the same amounts again and again."""
    amount = Decimal(number)
    digits = DIGITS.get(currency, 2)
    if (currency in WHOLE and amount == amount.to_integral_value()) or -_exponent(amount) > digits:
        digits = max(0, -_exponent(amount.normalize()))
    text = _sign(language, amount, currency, f"{abs(amount):,.{digits}f}")
    return Markup(f'<span class="amount">{escape(text)}</span>')  # noqa: S704 - escaped


def _sign(language: str, amount: Decimal, currency: str, text: str) -> str:
    sign = MINUS if amount < 0 else ""
    return f"{sign}{SYMBOLS.get(currency, currency)}{SPACE}{point_number(language, text)}"


def point_number(language: str, text: str) -> str:
    return text if language == "en" else text.translate({ord(","): ".", ord("."): ","})


@lru_cache(maxsize=10_000)
def group_phone(number: str) -> str:
    """Parsing is slow, and lists show the same numbers again and again."""
    try:
        parsed = phonenumbers.parse(number)
    except phonenumbers.NumberParseException:
        return number
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.INTERNATIONAL)


def _exponent(amount: Decimal) -> int:
    exponent = amount.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0
