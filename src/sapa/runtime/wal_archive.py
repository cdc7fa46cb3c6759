"""The archive of everything that the embedded server writes, from which it can be brought to any instant."""

import os
import shlex
from pathlib import Path

from sapa.runtime.processes import ProcessUser

CHANGES = "changes"


def build_archive_settings(archive: Path) -> dict[str, str]:
    """Changes are there after a minute at most. A file appears when it is complete, and never changes."""
    folder = _quote(archive)
    copy = f"cp %p {folder}/.%f.new && sync {folder}/.%f.new && mv {folder}/.%f.new {folder}/%f"
    return {
        "archive_mode": "on",
        "archive_command": f"cmp -s %p {folder}/%f || {{ test ! -e {folder}/%f && {copy}; }}",
        "archive_timeout": "60",
    }


def build_recovery_settings(archive: Path, until: str | None) -> dict[str, str]:
    """Without an instant: to the end of the archive."""
    settings = {"restore_command": f"cp {_quote(archive)}/%f %p", "recovery_target_action": "promote"}
    return settings | ({"recovery_target_time": until} if until else {})


def _quote(archive: Path) -> str:
    return shlex.quote(str(archive / CHANGES)).replace("%", "%%")


def make_archive(archive: Path, account: ProcessUser | None) -> None:
    """Only the server's user may read it."""
    changes = archive / CHANGES
    changes.mkdir(mode=0o700, parents=True, exist_ok=True)
    if account:
        os.chown(changes, account.uid, account.gid)


def has_changes(archive: Path) -> bool:
    changes = archive / CHANGES
    return changes.exists() and any(changes.iterdir())


def purge_changes(archive: Path, first: str) -> None:
    """Those before this file, which the oldest base copy begins with. The first eight characters name a timeline."""
    for path in (archive / CHANGES).iterdir():
        if len(path.name) >= len(first) and not path.name.startswith(".") and path.name[8:24] < first[8:]:
            path.unlink()
