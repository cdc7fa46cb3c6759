"""Makes a backup and remembers how it went."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import asyncpg
import structlog

from sapa.backups import queries
from sapa.backups.storage import FAILURES, BackupStorage, hide_secret, list_backups, open_storage, parse_instant
from sapa.backups.types import BackupFailed, BackupState, Manifest
from sapa.backups.write import open_session, write_backup
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Connection

ABANDONED_AFTER = timedelta(days=1)
"""A backup without a manifest may still be written until then."""
NOT_THE_OWNER = "Only the role that owns the tables can make a backup. Set SAPA_DATABASE_OWNER_URL."

log = structlog.get_logger()


async def make_backup(owner_url: str, address: str, secret_key: str, passphrase: str, most: int | None) -> Manifest:
    """Afterwards older backups of the same place are deleted, except for the `most` newest ones."""
    storage = open_storage(address)
    async with open_session(owner_url) as db:
        try:
            number = await queries.start_run(db, hide_secret(address))
        except asyncpg.InsufficientPrivilegeError:
            raise BackupFailed(NOT_THE_OWNER) from None
    try:
        manifest = await write_backup(owner_url, storage, secret_key, passphrase)
        if most is not None:
            await purge_old(storage, most)
    except Exception as error:
        await _record_failure(owner_url, number, str(error) or type(error).__name__)
        raise
    async with open_session(owner_url) as db:
        await queries.finish_run(db, number, manifest.rows, manifest.size, None)
    return manifest


async def _record_failure(owner_url: str, number: int, reason: str) -> None:
    """Not if the database is away: the run is not finished then, and the first error is the one to know."""
    with suppress(DatabaseAway, asyncpg.PostgresError):
        async with open_session(owner_url) as db:
            await queries.finish_run(db, number, 0, 0, reason)


async def purge_old(storage: BackupStorage, most: int) -> None:
    try:
        stored = await list_backups(storage)
        abandoned = [name for name in stored.incomplete if datetime.now(UTC) - parse_instant(name) > ABANDONED_AFTER]
        for name in (*stored.complete[:-most], *abandoned):
            await storage.delete_all(f"{name}/")
    except FAILURES as error:
        raise BackupFailed(f"Old backups cannot be deleted: {error}.") from None


async def get_state(db: Connection) -> BackupState:
    return await queries.get_state(db)
