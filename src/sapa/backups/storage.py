"""Where backups are stored: a folder, or an S3-compatible bucket. Each backup is a folder of objects in it."""

import asyncio
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from sapa.backups.types import FORMAT, BackupFailed, Manifest
from sapa.outbound.bucket import Bucket, BucketFailed, parse_address

MANIFEST = "manifest.json"
_NAME_FORMAT = "sapa-%Y%m%dT%H%M%S%fZ"


class BackupStorage(Protocol):
    """Objects by their keys. Raises OSError or BucketFailed."""

    async def put(self, key: str, data: bytes) -> None: ...

    async def get(self, key: str) -> bytes: ...

    async def list_keys(self) -> list[str]: ...

    async def delete_all(self, folder: str) -> None:
        """All objects below the folder, whose name ends in a slash."""


class FolderStorage:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, key: str, data: bytes) -> None:
        await asyncio.to_thread(_write, self._folder / key, data)

    async def get(self, key: str) -> bytes:
        return await asyncio.to_thread((self._folder / key).read_bytes)

    async def list_keys(self) -> list[str]:
        return await asyncio.to_thread(_list_files, self._folder)

    async def delete_all(self, folder: str) -> None:
        await asyncio.to_thread(shutil.rmtree, self._folder / folder)


def _write(path: Path, data: bytes) -> None:
    """Only this user may read it, and it is on the disk when this returns."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _list_files(folder: Path) -> list[str]:
    """Raises FileNotFoundError for a folder that does not exist, which `glob` takes for an empty one."""
    folder.stat()
    return [str(path.relative_to(folder)) for path in folder.glob("sapa-*/**/*") if path.is_file()]


def open_storage(address: str) -> BackupStorage:
    """`address` is a folder, or a bucket's URL in the form of SAPA_FILES_URL."""
    if address.startswith(("http://", "https://")):
        return Bucket(parse_address(address))
    return FolderStorage(Path(address).absolute())


def hide_secret(address: str) -> str:
    """The address without the bucket's key."""
    scheme, separator, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if separator else str(Path(address).absolute())


def build_name(now: datetime) -> str:
    return now.astimezone(UTC).strftime(_NAME_FORMAT)


def parse_instant(name: str) -> datetime:
    """When the backup of this name was begun."""
    return datetime.strptime(name, _NAME_FORMAT).replace(tzinfo=UTC)


class StoredBackups(msgspec.Struct, frozen=True):
    """The names of all backups in a place, oldest first."""

    complete: list[str]
    incomplete: list[str]


async def list_backups(storage: BackupStorage) -> StoredBackups:
    """A backup is complete once it has its manifest."""
    keys = set(await storage.list_keys())
    names = sorted({name for key in keys if _is_name(name := key.partition("/")[0])})
    complete = [name for name in names if f"{name}/{MANIFEST}" in keys]
    return StoredBackups(complete, [name for name in names if name not in complete])


def _is_name(text: str) -> bool:
    try:
        parse_instant(text)
    except ValueError:
        return False
    return True


async def read_manifest(storage: BackupStorage, name: str | None = None) -> Manifest:
    """That of the newest backup, if none is named."""
    complete = (await list_backups(storage)).complete
    if not complete:
        raise BackupFailed("There is no complete backup in this place.")
    if name is not None and name not in complete:
        raise BackupFailed(f"There is no complete backup {name} in this place. `sapa backup list` shows all.")
    try:
        manifest = msgspec.json.decode(await storage.get(f"{name or complete[-1]}/{MANIFEST}"), type=Manifest)
    except msgspec.DecodeError:
        raise BackupFailed("The backup's manifest cannot be read: it is damaged, or of a newer Sapa.") from None
    if manifest.format != FORMAT:
        raise BackupFailed("The backup was made by a newer Sapa. Install that version to restore it.")
    return manifest


FAILURES = (OSError, BucketFailed)
"""What a place of backups raises."""
