"""What a backup consists of."""

from typing import Literal

from msgspec import Struct

FORMAT = 1


class BackupFailed(Exception):
    """A backup that cannot be made, read or restored; the text says why, and what to do."""


class BackupPart(Struct, frozen=True, rename="camel"):
    """One object of a table's rows: lines of PostgreSQL's COPY, compressed with gzip."""

    name: str
    size: int
    sha256: str


class TableContent(Struct, frozen=True, rename="camel"):
    """The rows of a table, whatever their order."""

    rows: int
    checksum: str


class BackupTable(Struct, frozen=True, rename="camel"):
    name: str
    columns: list[str]
    content: TableContent
    parts: list[BackupPart]


class TablePartition(Struct, frozen=True, rename="camel"):
    parent: str
    name: str
    bounds: str


class SequenceValue(Struct, frozen=True, rename="camel"):
    name: str
    value: int


class AppliedChecksum(Struct, frozen=True, rename="camel"):
    """A migration that the database had applied."""

    number: int
    checksum: str


class Manifest(Struct, frozen=True, rename="camel"):
    """The list of contents, which is written last: a backup without it is not complete."""

    format: int
    name: str
    created_at: str
    sapa_version: str
    postgresql_version: str
    migrations: list[AppliedChecksum]
    tables: list[BackupTable]
    partitions: list[TablePartition]
    sequences: list[SequenceValue]
    files_in_bucket: int
    """Files whose content is in the bucket of SAPA_FILES_URL: this backup does not have it."""
    key_ids: list[str]
    sealed_key: str
    """SAPA_SECRET_KEY, sealed with the passphrase."""

    @property
    def schema_version(self) -> int:
        return max(migration.number for migration in self.migrations)

    @property
    def rows(self) -> int:
        return sum(table.content.rows for table in self.tables)

    @property
    def size(self) -> int:
        return sum(part.size for table in self.tables for part in table.parts)


class BackupRun(Struct, frozen=True, rename="camel"):
    """One backup that was made, or tried."""

    number: int
    started_at: str
    finished_at: str | None
    status: Literal["running", "done", "failed"]
    place: str
    rows: int
    bytes: int
    error: str | None


LATE_ROUNDS = 2


class BackupState(Struct, frozen=True, rename="camel"):
    """How an operator knows whether there is a backup."""

    newest: BackupRun | None
    """The newest one that was made."""
    last: BackupRun | None
    """The last one that has finished or failed."""
    age_seconds: float | None
    """Of the newest one."""
    since_last_seconds: float | None

    def is_late(self, every_hours: int) -> bool:
        return self.age_seconds is None or self.age_seconds > LATE_ROUNDS * every_hours * 3600
