"""How instants are written: in UTC, with milliseconds, as the database's codec writes them."""

from datetime import UTC, datetime


def format_instant(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
