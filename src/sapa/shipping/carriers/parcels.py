"""Converts parts of a request into the forms that carriers use."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import ROUND_CEILING, Decimal

from sapa.shipping.carriers.interface import Coordinates, Parcel
from sapa.values.phones import BadPhone, parse_phone

WESTERN_TIME = timezone(timedelta(hours=7), "WIB")
"""Jakarta's time, which the carriers use."""

MIN_GRAMS = 1
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""Plausible bounds of a carrier's timestamps."""

_LATEST_MS = int(LATEST.timestamp() * 1000)


def grams(parcel: Parcel) -> int:
    return max(MIN_GRAMS, _up(parcel.weight * 1000))


def volumetric_grams(parcel: Parcel, divisor: int = 6) -> int:
    """Cubic centimetres divided by the divisor: 6 by road and air, 4 by truck."""
    return _up((parcel.length or 0) * (parcel.width or 0) * (parcel.height or 0) / Decimal(divisor))


def centimetres(length: Decimal | None, least: int = 1) -> int:
    return max(least, _up(length or 0))


def whole(amount: Decimal | None) -> int:
    return _up(amount or 0)


def digits_of_phone(phone: str | None, region: str) -> str:
    """Country code and number without a plus: 628123456789."""
    return international_phone(phone, region).removeprefix("+")


def local_phone(phone: str | None, region: str) -> str:
    """An Indonesian number in its national form: 08123456789. Any other number is international."""
    number = international_phone(phone, region)
    return "0" + number.removeprefix("+62") if number.startswith("+62") else number


def international_phone(phone: str | None, region: str) -> str:
    """E.164; an invalid number is left for the carrier to refuse."""
    try:
        return parse_phone(phone or "", region)
    except BadPhone:
        return "".join(char for char in phone or "" if char.isdigit() or char == "+")


def written(point: Coordinates) -> str:
    return f"{point.lat},{point.lng}"


def parse_local(text: str | None) -> datetime | None:
    """A carrier's timestamp; in Jakarta's time if it names no zone."""
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return _within(found if found.tzinfo else found.replace(tzinfo=WESTERN_TIME))


def parse_milliseconds(instant: int | None) -> datetime | None:
    """Milliseconds since 1970."""
    return _within(datetime.fromtimestamp(min(instant, _LATEST_MS) / 1000, UTC)) if instant and instant > 0 else None


def _within(instant: datetime) -> datetime | None:
    return None if instant < EARLIEST else min(instant, LATEST)


def _up(amount: Decimal | int) -> int:
    return int(Decimal(amount).to_integral_value(rounding=ROUND_CEILING))
