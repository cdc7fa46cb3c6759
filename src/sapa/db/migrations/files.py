"""The migrations of this version: numbered SQL files."""

import re
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

FOLDER = Path(__file__).parent
_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql").fullmatch
_RUNS_WITH = re.compile(r"^-- runs with code since: (\d{4})$", re.MULTILINE).search
_STEP = re.compile(r"^-- step: (.*)$", re.MULTILINE).search
_OVER = re.compile(r"^-- over: ([a-z_]+)$", re.MULTILINE).search
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)

StepKind = Literal["transaction", "concurrently", "batches"]
BATCH = "{batch}"
"""In the statement of a step in batches: the condition that chooses the rows of one batch."""


class MigrationRefused(Exception):
    """This version of Sapa cannot run on the database; the text says why."""


class Migration(Struct, frozen=True):
    number: int
    name: str
    text: str

    @property
    def runs_with_code_since(self) -> int:
        """The oldest version, named by its newest migration, whose code still runs once this one is applied."""
        found = _RUNS_WITH(self.text)
        return int(found[1]) if found else self.number

    @property
    def step(self) -> str:
        """How it is applied: in one transaction, statement by statement outside of one, or in batches of rows."""
        found = _STEP(self.text)
        return found[1] if found else "transaction"

    @property
    def over(self) -> str | None:
        """The table whose rows a step in batches walks over, in the order of its primary key."""
        found = _OVER(self.text)
        return found[1] if found else None

    @property
    def statements(self) -> list[str]:
        """Of a step outside a transaction. Each ends a line with its semicolon."""
        text = _COMMENT.sub("", self.text)
        return [statement for part in text.split(";\n") if (statement := part.strip())]

    @property
    def checksum(self) -> str:
        return sha256(self.text.encode()).hexdigest()


@cache
def list_migrations(folder: Path = FOLDER) -> list[Migration]:
    """All migrations of this version, in order and without gaps."""
    files = sorted(path for path in folder.iterdir() if _NAME(path.name))
    migrations = [Migration(int(path.name[:4]), path.stem, path.read_text()) for path in files]
    if [migration.number for migration in migrations] != list(range(1, len(migrations) + 1)):
        raise MigrationRefused("The migrations are not numbered 1, 2, 3 … without gaps.")
    for migration in migrations:
        _check_header(migration)
    return migrations


def _check_header(migration: Migration) -> None:
    if not 1 <= migration.runs_with_code_since <= migration.number:
        raise MigrationRefused(f"Migration {migration.name} names a version that is not between 1 and its own.")
    if migration.step not in get_args(StepKind):
        raise MigrationRefused(f"Migration {migration.name} has no step of a known kind: {migration.step}.")
    is_whole = migration.over is not None and len(migration.statements) == 1 and BATCH in migration.text
    if migration.step == "batches" and not is_whole:
        raise MigrationRefused(
            f"Migration {migration.name} needs a table, `-- over: …`, and one statement with {BATCH}."
        )
