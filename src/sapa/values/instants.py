"""Instants: in UTC, with milliseconds, as the database's codec writes them."""

from datetime import UTC, datetime


def format_instant(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def truncate_to_milliseconds(instant: datetime) -> datetime:
    """In UTC, at the precision in which instants are stored."""
    return instant.astimezone(UTC).replace(microsecond=instant.microsecond // 1_000 * 1_000)
