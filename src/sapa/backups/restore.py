"""Restores a backup into an empty database: all of it, or nothing."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from hashlib import sha256

from sapa.backups import queries
from sapa.backups.storage import FAILURES, BackupStorage
from sapa.backups.types import BackupFailed, BackupPart, BackupTable, Manifest
from sapa.backups.write import open_session
from sapa.db.migrations import migrate, migrate_to
from sapa.db.migrations.files import list_migrations
from sapa.db.pool import Connection, Tx

_GZIP = zlib.MAX_WBITS | 16


async def restore_backup(owner_url: str, app_url: str, storage: BackupStorage, manifest: Manifest) -> None:
    """Makes the tables as the backup's version had them, loads the rows, compares them with the manifest, and only then
    brings the schema up to this version."""
    _refuse_unfit(manifest)
    await refuse_filled(owner_url)
    await migrate_to(owner_url, manifest.schema_version)
    async with open_session(owner_url) as connection:
        await _refuse_other_schema(connection, manifest)
        try:
            async with connection.transaction():
                await _load(connection, storage, manifest)
        except FAILURES as error:
            raise BackupFailed(f"The backup cannot be read: {error}.") from None
        await queries.analyze(connection)
    await migrate(owner_url, app_url)


def _refuse_unfit(manifest: Manifest) -> None:
    own = {migration.number: migration.checksum for migration in list_migrations()}
    if any(own.get(migration.number) != migration.checksum for migration in manifest.migrations):
        raise BackupFailed(
            f"The backup was made by Sapa {manifest.sapa_version}, whose schema this version does not know. "
            "Install that version, or a newer one, to restore it."
        )


async def refuse_filled(owner_url: str) -> None:
    """Raises BackupFailed if any table has rows."""
    async with open_session(owner_url) as db:
        filled = [table.name for table in await queries.list_tables(db) if not await queries.is_empty(db, table.name)]
    if filled:
        raise BackupFailed(
            f"The database is not empty: {', '.join(filled[:3])} have rows. Restore into a new data folder or database."
        )


async def _refuse_other_schema(db: Connection, manifest: Manifest) -> None:
    if await queries.list_migrations(db) != manifest.migrations:
        raise BackupFailed(
            "The database has the tables of another version than the backup. Restore into a database without tables."
        )


async def _load(tx: Tx, storage: BackupStorage, manifest: Manifest) -> None:
    for partition in manifest.partitions:
        await queries.create_partition(tx, partition)
    constraints = await queries.drop_constraints(tx)
    await queries.truncate(tx, [table.name for table in manifest.tables])
    for table in manifest.tables:
        await queries.write_rows(tx, table, _read_lines(storage, table))
        if await queries.get_content(tx, table.name, table.columns) != table.content:
            raise BackupFailed(f"The rows of {table.name} are not those of the backup. Nothing was restored.")
    for constraint in constraints:
        await queries.create_constraint(tx, constraint)
    for sequence in manifest.sequences:
        await queries.set_sequence(tx, sequence)
    await queries.restart_catch_ups(tx)


async def _read_lines(storage: BackupStorage, table: BackupTable) -> AsyncIterator[bytes]:
    for part in table.parts:
        yield await asyncio.to_thread(_open_part, part, await storage.get(part.name))


def _open_part(part: BackupPart, data: bytes) -> bytes:
    if sha256(data).hexdigest() != part.sha256:
        raise BackupFailed(f"{part.name} of the backup is damaged. Nothing was restored.")
    return zlib.decompress(data, _GZIP)
