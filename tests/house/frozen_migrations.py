"""Migrations that are history: the checksum of each. `python -m tests.house.frozen_migrations` adds the new ones."""

from collections.abc import Iterable
from pathlib import Path

from sapa.db.migrations.files import Migration, list_migrations

FILE = Path(__file__).with_suffix(".txt")


def read_frozen() -> dict[str, str]:
    """The checksum by the migration's name."""
    pairs = (line.split() for line in FILE.read_text().splitlines())
    return {name: checksum for checksum, name in pairs}


def list_changed(migrations: Iterable[Migration], frozen: dict[str, str]) -> list[str]:
    checksums = {migration.name: migration.checksum for migration in migrations}
    return [f"{name} was changed or removed" for name, checksum in frozen.items() if checksums.get(name) != checksum]


def freeze() -> None:
    """Those that are frozen stay as they are."""
    lines = {migration.name: migration.checksum for migration in list_migrations()} | read_frozen()
    FILE.write_text("".join(f"{checksum}  {name}\n" for name, checksum in sorted(lines.items())))


if __name__ == "__main__":
    freeze()
