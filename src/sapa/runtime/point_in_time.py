"""Base copies of the embedded server's files, and restoring one with the archived changes up to an instant."""

import asyncio
import gzip
import os
import re
import shutil
import subprocess
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from sapa.backups.key_sealing import open_sealed, seal_key
from sapa.backups.types import BackupFailed
from sapa.db.connection import DatabaseAway, connect
from sapa.db.migrations import is_writable
from sapa.runtime.cluster import (
    ENVIRONMENT,
    bundled_binaries,
    find_account,
    get_connection_limit,
    get_major_version,
    program,
)
from sapa.runtime.embedded import EmbeddedServer, claim_folder
from sapa.runtime.processes import CannotStart, ProcessUser, wait_until
from sapa.runtime.wal_archive import CHANGES, build_recovery_settings, has_changes, purge_changes

RECOVERY_SECONDS = 24 * 3600.0
_CONTENT = "content.json"
_FILES = "files.tar.gz"
_START = re.compile(r"START WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)").search


class BaseCopy(msgspec.Struct, frozen=True, rename="camel"):
    """A complete copy: this is written last."""

    name: str
    finished_at: datetime
    """An earlier instant cannot be restored from it."""
    major_version: int
    first_change: str
    sealed_secrets: str
    """The file with the server's passwords and the secret key, sealed with the passphrase."""


def begin_archive(server: EmbeddedServer, archive: Path) -> None:
    """Not where another database has left its changes: those of a new one have the same names."""
    if server.find_archive() != archive and has_changes(archive):
        raise BackupFailed(f"{archive} has the archive of another database. Name a new folder.")
    server.use_archive(archive)


async def make_base(server: EmbeddedServer, secret_key: str, passphrase: str, most: int | None) -> BaseCopy:
    """Copies the files while the server runs, and returns when the changes that belong to them are archived."""
    archive = server.find_archive()
    if archive is None:
        raise BackupFailed("This data folder has no archive. Run `sapa backup archive FOLDER` first.")
    # Not the key of the data folder, which SAPA_SECRET_KEY may have replaced.
    secrets = msgspec.structs.replace(server.secrets, secret_key=secret_key)
    sealed = seal_key(msgspec.json.encode(secrets).decode(), passphrase)
    name = datetime.now(UTC).strftime("base-%Y%m%dT%H%M%SZ")
    folder = archive / name
    folder.mkdir(mode=0o700)
    await asyncio.to_thread(_copy_files, server, folder / _FILES)
    finished_at, first_change = datetime.now(UTC), await asyncio.to_thread(_read_first_change, folder / _FILES)
    if not (archive / CHANGES / first_change).exists():  # the server waits for them, if it archives
        shutil.rmtree(folder)
        raise BackupFailed(f"Sapa has not been started again since it got the archive {archive}. Do that first.")
    base = BaseCopy(name, finished_at, get_major_version(bundled_binaries()), first_change, sealed)
    (folder / _CONTENT).write_bytes(msgspec.json.encode(base))
    if most is not None:
        _purge(archive, most)
    return base


def _copy_files(server: EmbeddedServer, path: Path) -> None:
    command = [program("pg_basebackup"), "--pgdata=-", "--format=tar", "--wal-method=none", "--checkpoint=fast"]
    command += [f"--host={server.socket_folder}", "--port=5432", "--username=postgres", "--no-password"]
    environment = ENVIRONMENT | {"PGPASSWORD": server.secrets.superuser}
    with (
        gzip.open(path, "wb", compresslevel=1) as file,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd="/") as child,
    ):
        assert child.stdout is not None and child.stderr is not None  # noqa: S101, PT018 - both are pipes
        shutil.copyfileobj(child.stdout, file)
        reason = child.stderr.read().decode(errors="replace").strip()
    if child.returncode != 0:
        raise BackupFailed(f"The files of the database cannot be copied: {reason}")


def _read_first_change(path: Path) -> str:
    with tarfile.open(path) as files:
        label = files.extractfile("backup_label")
        found = _START(label.read().decode()) if label else None
    if found is None:
        raise BackupFailed(f"{path} is not complete.")
    return found[1]


def list_bases(archive: Path) -> list[BaseCopy]:
    """The complete ones, oldest first."""
    found = sorted(archive.glob(f"base-*/{_CONTENT}"))
    return [msgspec.json.decode(path.read_bytes(), type=BaseCopy) for path in found]


def _purge(archive: Path, most: int) -> None:
    bases = list_bases(archive)
    for base in bases[:-most]:
        shutil.rmtree(archive / base.name)
    purge_changes(archive, bases[-most:][0].first_change)


async def restore_instant(data: Path, archive: Path, until: datetime | None, passphrase: str) -> BaseCopy:
    """The newest base copy before the instant, and every change that was committed until then. Without an instant:
    everything in the archive."""
    base = _choose_base(archive, until)
    secrets = open_sealed(base.sealed_secrets, passphrase)
    options = build_recovery_settings(archive, until.isoformat() if until else None)
    async with claim_folder(data) as final:
        if final.cluster.exists():
            raise BackupFailed(f"{final.data} has a database already. Restore into a new data folder.")
        server = EmbeddedServer(data, folder="pg.restored", options=options)
        final.write_secrets(secrets)
        await asyncio.to_thread(_unpack, archive / base.name / _FILES, server, find_account(final.data, final.cluster))
        server.max_connections = max(server.max_connections, get_connection_limit(server.cluster))
        try:
            await _recover(server)
        finally:
            await server.stop()
        final.leave_archive()
        server.cluster.rename(final.cluster)
    return base


def _choose_base(archive: Path, until: datetime | None) -> BaseCopy:
    bases = [base for base in list_bases(archive) if until is None or base.finished_at <= until]
    if not bases:
        raise BackupFailed("The archive has no base copy from before that instant. `sapa backup base` makes one.")
    own = get_major_version(bundled_binaries())
    if bases[-1].major_version != own:
        raise BackupFailed(f"The base copy is of PostgreSQL {bases[-1].major_version}, and this Sapa brings {own}.")
    return bases[-1]


def _unpack(path: Path, server: EmbeddedServer, account: ProcessUser | None) -> None:
    shutil.rmtree(server.cluster, ignore_errors=True)
    server.cluster.mkdir(mode=0o700)
    with tarfile.open(path) as files:
        files.extractall(server.cluster, filter="data")
    (server.cluster / "recovery.signal").touch()
    if account:
        for entry in (server.cluster, *server.cluster.rglob("*")):
            os.chown(entry, account.uid, account.gid, follow_symlinks=False)


async def _recover(server: EmbeddedServer) -> None:
    """Until the server accepts writes."""
    try:
        await server.start()
        is_done = await wait_until(lambda: _is_ready(server), RECOVERY_SECONDS, every=0.2)
    except CannotStart:
        raise BackupFailed(
            f"The archive ends before that instant, or lacks a file. The end of {server.log} has the reason. "
            "Name an earlier instant, or `latest`."
        ) from None
    if not is_done:
        raise BackupFailed(f"The recovery did not end within a day. See {server.log}.")


async def _is_ready(server: EmbeddedServer) -> bool:
    server.refuse_ended()
    try:
        connection = await connect(server.owner_url, timeout=10)
        try:
            return await is_writable(connection)
        finally:
            await connection.close()
    except DatabaseAway:
        return False
