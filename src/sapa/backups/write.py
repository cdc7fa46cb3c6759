"""Writes a backup: all rows as one moment saw them, in small compressed objects, and a manifest at the end."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import sha256

import msgspec

from sapa import __version__
from sapa.backups import queries
from sapa.backups.key_sealing import seal_key
from sapa.backups.storage import FAILURES, MANIFEST, BackupStorage, build_name
from sapa.backups.types import FORMAT, BackupFailed, BackupPart, BackupTable, Manifest
from sapa.db.connection import connect
from sapa.db.migrations import BEHIND, find_mismatch
from sapa.db.pool import Connection
from sapa.values.sealing import list_key_ids

PART_BYTES = 8 * 1_048_576
"""Of lines, before they are compressed: what one request can store."""
_COMPRESSION = 1

SESSION = """
    SET timezone = 'UTC';
    SET datestyle = 'ISO';
    SET intervalstyle = 'postgres';
    SET bytea_output = 'hex';
    SET extra_float_digits = 1;
    SET statement_timeout = 0;
    SET lock_timeout = 0;
    SET idle_in_transaction_session_timeout = 0"""
"""The same for reading and for comparing what was restored. A backup may take hours."""


@asynccontextmanager
async def open_session(owner_url: str) -> AsyncIterator[Connection]:
    connection = await connect(owner_url, timeout=10, server_settings={"application_name": "sapa backup"})
    try:
        await connection.execute(SESSION)
        yield connection
    finally:
        await connection.close()


async def write_backup(
    owner_url: str, storage: BackupStorage, secret_key: str, passphrase: str, *, may_be_older: bool = False
) -> Manifest:
    """Changes that others make meanwhile are not in it, and nobody waits for it.

    `may_be_older` is for a copy that is restored, and so migrated, at once: the schema may be an earlier version's.
    """
    now = datetime.now(UTC)
    sealed_key = seal_key(secret_key, passphrase)
    async with open_session(owner_url) as connection:
        mismatch = await find_mismatch(connection)
        is_older = mismatch == BEHIND and bool(await queries.list_tables(connection))
        if mismatch and not (may_be_older and is_older):
            raise BackupFailed(mismatch)
        try:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                manifest = await _write(connection, storage, now, secret_key, sealed_key)
            await storage.put(f"{manifest.name}/{MANIFEST}", msgspec.json.format(msgspec.json.encode(manifest)))
        except FAILURES as error:
            raise BackupFailed(f"The backup cannot be stored: {error}.") from None
    return manifest


async def _write(db: Connection, storage: BackupStorage, now: datetime, secret_key: str, sealed_key: str) -> Manifest:
    name = build_name(now)
    tables = [await _write_table(db, storage, name, table) for table in await queries.list_tables(db)]
    return Manifest(
        format=FORMAT,
        name=name,
        created_at=now.isoformat(timespec="milliseconds"),
        sapa_version=__version__,
        postgresql_version=await queries.get_version(db),
        migrations=await queries.list_migrations(db),
        tables=tables,
        partitions=await queries.list_partitions(db),
        sequences=await queries.list_sequences(db),
        files_in_bucket=await queries.count_files_in_bucket(db, [table.name for table in tables]),
        key_ids=list_key_ids(secret_key),
        sealed_key=sealed_key,
    )


async def _write_table(db: Connection, storage: BackupStorage, name: str, table: queries.StoredTable) -> BackupTable:
    writer = PartWriter(storage, f"{name}/{table.name}")
    await queries.read_rows(db, table.name, table.columns, writer.add)
    parts = await writer.finish()
    return BackupTable(table.name, table.columns, await queries.get_content(db, table.name, table.columns), parts)


class PartWriter:
    """Stores one part while the next one is read."""

    def __init__(self, storage: BackupStorage, prefix: str) -> None:
        self._storage = storage
        self._prefix = prefix
        self._lines = bytearray()
        self._parts: list[BackupPart] = []
        self._storing: asyncio.Task[None] | None = None

    async def add(self, lines: bytes) -> None:
        self._lines += lines
        if len(self._lines) >= PART_BYTES:
            await self._store()

    async def finish(self) -> list[BackupPart]:
        if self._lines:
            await self._store()
        if self._storing is not None:
            await self._storing
        return self._parts

    async def _store(self) -> None:
        if self._storing is not None:
            await self._storing
        lines, self._lines = bytes(self._lines), bytearray()
        self._storing = asyncio.create_task(self._store_part(lines))

    async def _store_part(self, lines: bytes) -> None:
        data = await asyncio.to_thread(gzip.compress, lines, _COMPRESSION, mtime=0)
        key = f"{self._prefix}/{len(self._parts):06}.gz"
        await self._storage.put(key, data)
        self._parts.append(BackupPart(key, len(data), sha256(data).hexdigest()))
