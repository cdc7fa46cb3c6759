"""Merges a channel's reports on an account. Pure: no database.

Reports come late, twice and out of order: each value is the one of the newest report that mentions it.
"""

from datetime import datetime

from msgspec.structs import replace

from sapa.messaging.channel_status.types import StoredStatus, StoredWarning
from sapa.messaging.channels.account_reports import AccountReport, AccountWarning

FIELDS = {"quality": "quality", "messaging_limit": "messagingLimit", "throughput": "throughput"}
"""The values of a status, and their public names."""


def merge_report(stored: StoredStatus, report: AccountReport) -> StoredStatus:
    newer = [name for name in FIELDS if getattr(report, name) is not None and _is_newer(stored, name, report.at)]
    values = {name: getattr(report, name) for name in newer}
    return replace(stored, **values, **{f"{name}_at": report.at for name in newer})


def _is_newer(stored: StoredStatus, name: str, at: datetime) -> bool:
    stored_at: datetime | None = getattr(stored, f"{name}_at")
    return stored_at is None or at >= stored_at


def list_changes(before: StoredStatus, after: StoredStatus) -> list[str]:
    return [public for name, public in FIELDS.items() if getattr(before, name) != getattr(after, name)]


def merge_warning(stored: StoredWarning | None, warning: AccountWarning, at: datetime) -> StoredWarning | None:
    """None if it changes nothing: it is stored, a later one is, or it ends a warning that there never was."""
    if warning.is_over if stored is None else at < stored.reported_at:
        return None
    merged = StoredWarning(warning.code, warning.severity, warning.message, at, warning.expires_at, warning.is_over)
    return None if merged == stored else merged
