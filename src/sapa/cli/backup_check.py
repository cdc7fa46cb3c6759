"""Proves that a backup can be restored: on a server of its own, which is removed afterwards."""

import math
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from sapa.backups.key_sealing import open_key
from sapa.backups.restore import restore_backup
from sapa.backups.storage import BackupStorage, read_manifest
from sapa.db.pool import open_database
from sapa.domains import SEALED_TABLES
from sapa.runtime.embedded import EmbeddedServer, claim_folder
from sapa.values.sealing import ProbeVault
from sapa.wiring import install
from sapa.work import rotation


class BackupCheck(Struct, frozen=True, rename="camel"):
    """What was restored. Each table had the rows and the checksum of the backup, or there would be an error."""

    backup: str
    tables: int
    rows: int
    secrets: int
    unreadable_secrets: int


async def check_backup(storage: BackupStorage, name: str | None, passphrase: str) -> BackupCheck:
    install()
    manifest = await read_manifest(storage, name)
    vault = ProbeVault(open_key(manifest, passphrase))
    async with _open_temporary_server() as server:
        await restore_backup(server.owner_url, server.app_url, storage, manifest)
        async with open_database(server.app_url) as database:
            await rotation.probe(database, SEALED_TABLES, vault, math.inf)
    return BackupCheck(manifest.name, len(manifest.tables), manifest.rows, vault.opened, vault.unreadable)


@asynccontextmanager
async def _open_temporary_server() -> AsyncIterator[EmbeddedServer]:
    with TemporaryDirectory(prefix="sapa-verify-") as folder:
        os.chmod(folder, 0o711)  # noqa: S103 - the server may run as another user
        async with claim_folder(Path(folder) / "data") as server:
            try:
                await server.start()
                yield server
            finally:
                await server.stop()
