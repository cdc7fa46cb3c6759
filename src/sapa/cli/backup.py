"""`sapa backup`: makes backups, lists them, and proves that they can be restored."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct
from rich.console import Console
from typer.core import TyperGroup

from sapa.backups.actions import make_backup
from sapa.backups.key_sealing import open_key
from sapa.backups.storage import FAILURES, BackupStorage, list_backups, open_storage, read_manifest
from sapa.backups.types import BackupFailed, Manifest
from sapa.cli.backup_check import BackupCheck, check_backup
from sapa.cli.connect import AsJson, get_secret_key, reach_owner, refuse_missing, show
from sapa.runtime.embedded import EmbeddedServer, open_embedded
from sapa.runtime.point_in_time import begin_archive, make_base
from sapa.settings import Settings, check_bucket_url, read_settings

COLUMNS = ["name", "createdAt", "sapaVersion", "tables", "rows", "bytes"]


class BackupCommands(TyperGroup):
    """`sapa backup ADDRESS` is short for `sapa backup create ADDRESS`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] != ["--help"] and args[:1] not in [[name] for name in self.commands]:
            args = ["create", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=BackupCommands, help="Make, list and check backups. `sapa backup ADDRESS` makes one.")

Address = Annotated[
    str | None, typer.Argument(help="A folder, or a bucket as https://KEY:SECRET@host/bucket. [SAPA_BACKUP_URL]")
]
Most = Annotated[int | None, typer.Option("--keep", min=1, help="How many backups to keep; older ones are deleted.")]
Name = Annotated[str | None, typer.Option("--backup", help="The name of a backup. By default the newest one.")]


class BackupSummary(Struct, frozen=True, rename="camel"):
    name: str
    created_at: str
    sapa_version: str
    postgresql_version: str
    tables: int
    rows: int
    bytes: int
    files_in_bucket: int


class BaseSummary(Struct, frozen=True, rename="camel"):
    name: str
    finished_at: datetime


@app.command()
def create(address: Address = None, keep: Most = None, json: AsJson = False) -> None:
    """Make a backup while Sapa is running. SAPA_BACKUP_PASSPHRASE seals the secret key in it."""
    manifest = asyncio.run(_create(get_address(address), keep))
    if manifest.files_in_bucket:
        Console(stderr=True, soft_wrap=True).print(
            f"Not included: the content of {manifest.files_in_bucket:,} files in the bucket of SAPA_FILES_URL."
            " Back up that bucket as well."
        )
    show(_summarise(manifest), json, "Backup", COLUMNS)


async def _create(address: str, most: int | None) -> Manifest:
    async with reach_owner() as urls:
        return await make_backup(urls.owner, address, get_secret_key(), get_passphrase(), most)


@app.command("list")
def list_(address: Address = None, json: AsJson = False) -> None:
    """List the complete backups in a folder or bucket, oldest first."""
    show(asyncio.run(_list(get_storage(address))), json, "Backups", COLUMNS)


async def _list(storage: BackupStorage) -> list[BackupSummary]:
    try:
        names = (await list_backups(storage)).complete
        return [_summarise(await read_manifest(storage, name)) for name in names]
    except FAILURES as error:
        raise BackupFailed(f"The backups cannot be read: {error}.") from None


@app.command()
def verify(address: Address = None, backup: Name = None, json: AsJson = False) -> None:
    """Restore a backup into a temporary server, compare every table, and decrypt every secret."""
    storage, passphrase = get_storage(address), get_passphrase()
    check = asyncio.run(check_backup(storage, backup, passphrase))
    show(check, json, "Verified", list(BackupCheck.__struct_encode_fields__))
    if check.unreadable_secrets:
        raise typer.Exit(1)


@app.command()
def key(address: Address = None, backup: Name = None) -> None:
    """Print the SAPA_SECRET_KEY that a backup contains, decrypted with SAPA_BACKUP_PASSPHRASE."""
    typer.echo(open_key(asyncio.run(load_manifest(get_storage(address), backup)), get_passphrase()))


@app.command()
def archive(folder: Annotated[Path, typer.Argument(help="A folder on another disk.")]) -> None:
    """From the next start on, archive every change of the embedded database, so that you can restore any instant."""
    settings = _read_embedded_settings()
    begin_archive(EmbeddedServer(settings.data), folder.absolute())
    typer.echo("Start Sapa again, then run `sapa backup base`. Repeat that command from time to time.")


@app.command()
def base(keep: Most = None, json: AsJson = False) -> None:
    """Copy the embedded database into its archive. A restore starts from such a base copy."""
    show(asyncio.run(_make_base(_read_embedded_settings(), keep)), json, "Base copy", ["name", "finishedAt"])


async def _make_base(settings: Settings, most: int | None) -> BaseSummary:
    async with open_embedded(settings.data) as server:
        base = await make_base(server, get_secret_key(), get_passphrase(), most)
    return BaseSummary(base.name, base.finished_at)


def _read_embedded_settings() -> Settings:
    settings = read_settings()
    if settings.database.url is not None:
        raise BackupFailed(
            "SAPA_DATABASE_URL is set. Archive an external server with its own tools, such as pgBackRest."
        )
    refuse_missing(settings.data)
    return settings


async def load_manifest(storage: BackupStorage, name: str | None) -> Manifest:
    try:
        return await read_manifest(storage, name)
    except FAILURES as error:
        raise BackupFailed(f"The backup cannot be read: {error}.") from None


def get_storage(address: str | None) -> BackupStorage:
    return open_storage(get_address(address))


def get_address(address: str | None) -> str:
    found = address or read_settings().backups.url
    if found is None:
        raise BackupFailed("Name the folder or bucket of the backups, or set SAPA_BACKUP_URL.")
    if "://" in found:  # not a folder named `s3:`
        check_bucket_url("The bucket of the backups", found)
    return found


def get_passphrase() -> str:
    passphrase = read_settings().backups.passphrase
    if passphrase is None:
        raise BackupFailed("Set SAPA_BACKUP_PASSPHRASE: it seals the secret key inside a backup.")
    return passphrase


def _summarise(manifest: Manifest) -> BackupSummary:
    return BackupSummary(
        manifest.name,
        manifest.created_at,
        manifest.sapa_version,
        manifest.postgresql_version,
        len(manifest.tables),
        manifest.rows,
        manifest.size,
        manifest.files_in_bucket,
    )
