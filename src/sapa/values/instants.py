"""Instants: in UTC, with milliseconds, as the database's codec writes them."""

from datetime import UTC, datetime

_WITHOUT_OFFSET = -len("+00:00")


def format_instant(instant: datetime) -> str:
    if instant.tzinfo is not UTC:
        instant = instant.astimezone(UTC)
    return instant.isoformat(timespec="milliseconds")[:_WITHOUT_OFFSET] + "Z"


def truncate_to_milliseconds(instant: datetime) -> datetime:
    """In UTC, at the precision in which instants are stored."""
    if instant.tzinfo is not UTC:
        instant = instant.astimezone(UTC)
    rest = instant.microsecond % 1_000
    return instant.replace(microsecond=instant.microsecond - rest) if rest else instant
