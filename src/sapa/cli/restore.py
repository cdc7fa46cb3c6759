"""`sapa restore`: a backup becomes a new installation."""

import asyncio
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from sapa.backups.key_sealing import open_key
from sapa.backups.restore import refuse_filled, restore_backup
from sapa.backups.storage import BackupStorage
from sapa.backups.types import BackupFailed, Manifest
from sapa.cli.backup import Name, get_passphrase, get_storage, load_manifest
from sapa.runtime.embedded import claim_folder
from sapa.runtime.point_in_time import restore_instant
from sapa.settings import Settings, read_settings
from sapa.values.sealing import list_key_ids


def restore(
    address: Annotated[str, typer.Argument(help="The folder of the backups, or their bucket.")],
    backup: Name = None,
    until: Annotated[
        str | None,
        typer.Option(help="ADDRESS is an archive: restore what was committed until then, or `latest`."),
    ] = None,
) -> None:
    """Restore a backup into an empty installation: a new data folder, or an empty database.

    SAPA_BACKUP_PASSPHRASE opens the secret key in the backup.
    """
    if until is not None:
        _restore_until(Path(address).absolute(), until)
        return
    manifest = asyncio.run(_restore(get_storage(address), backup, read_settings()))
    typer.echo(
        f"Restored {manifest.name}: {len(manifest.tables)} tables, {manifest.rows:,} rows, each table with the"
        " backup's checksum."
    )
    if manifest.files_in_bucket:
        typer.echo(
            f"The content of {manifest.files_in_bucket:,} files is not in the backup: SAPA_FILES_URL must name the"
            " bucket that has it."
        )


def _restore_until(archive: Path, until: str) -> None:
    settings = read_settings()
    if settings.database.url is not None:
        raise BackupFailed("--until restores the embedded database. Unset SAPA_DATABASE_URL.")
    instant = None if until == "latest" else _parse_instant(until)
    base = asyncio.run(restore_instant(settings.data, archive, instant, get_passphrase()))
    typer.echo(f"Restored {base.name} and the changes after it until {until}, into {settings.data}.")


def _parse_instant(text: str) -> datetime:
    with suppress(ValueError):
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is not None:
            return instant
    raise BackupFailed("--until must be an instant with an offset, such as 2027-01-31T09:30:00+07:00, or `latest`.")


async def _restore(storage: BackupStorage, name: str | None, settings: Settings) -> Manifest:
    manifest = await load_manifest(storage, name)
    if settings.secret_key is not None or settings.database.url is not None:
        _refuse_other_key(settings.secret_key, manifest)
    if settings.database.url is not None:
        owner_url = settings.database.owner_url or settings.database.url
        await restore_backup(owner_url, settings.database.url, storage, manifest)
        return manifest
    key = open_key(manifest, get_passphrase())
    async with claim_folder(settings.data) as server:
        try:
            await server.start()
            await refuse_filled(server.owner_url)
            server.use_secret_key(key)
            await restore_backup(server.owner_url, server.app_url, storage, manifest)
        finally:
            await server.stop()
    return manifest


def _refuse_other_key(secret_key: str | None, manifest: Manifest) -> None:
    if not set(manifest.key_ids) <= set(list_key_ids(secret_key) if secret_key else ()):
        raise BackupFailed(
            "SAPA_SECRET_KEY is not the key of the backup, so its secrets could not be read."
            " Set it to what `sapa backup key` prints."
        )
