"""Where the parts of files are: in PostgreSQL, or in a bucket.

A file is a row of `files` first and its parts after that, each written whole or not at all. So whatever a killed
process leaves behind belongs to a row, and is deleted with it.
"""

from typing import Protocol

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.messaging.files import queries
from sapa.messaging.files.types import MIB, FileUnavailable, Storage
from sapa.outbound.bucket import Bucket, BucketFailed


class PartStore(Protocol):
    name: Storage
    part_bytes: int

    async def write(self, company_id: int, file_id: str, part: int, data: bytes) -> None: ...

    async def read(self, company_id: int, file_id: str, part: int) -> bytes: ...


class DatabaseStore:
    name: Storage = "database"
    part_bytes = MIB

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, company_id: int, file_id: str, part: int, data: bytes) -> None:
        async with self._database.connection() as db:
            await queries.store_part(db, company_id, file_id, part, data)

    async def read(self, company_id: int, file_id: str, part: int) -> bytes:
        async with self._database.connection() as db:
            data = await queries.find_part(db, company_id, file_id, part)
        if data is None:
            raise FileUnavailable("A part of this file is missing.")
        return data


class BucketStore:
    """One object for each part. A single object would need an upload in several requests, and a process that is killed
    between them would leave parts behind that no listing shows."""

    name: Storage = "bucket"
    part_bytes = 4 * MIB

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def write(self, company_id: int, file_id: str, part: int, data: bytes) -> None:
        try:
            await self._bucket.put(f"{_build_folder(company_id, file_id)}{part:05}", data)
        except BucketFailed as error:
            raise FileUnavailable(f"The file could not be stored: {error}.") from error

    async def read(self, company_id: int, file_id: str, part: int) -> bytes:
        try:
            return await self._bucket.get(f"{_build_folder(company_id, file_id)}{part:05}")
        except BucketFailed as error:
            raise FileUnavailable(f"The file could not be read: {error}.") from error

    async def delete(self, company_id: int, file_id: str) -> None:
        """Whatever there is of it; raises BucketFailed."""
        await self._bucket.delete_all(_build_folder(company_id, file_id))


def _build_folder(company_id: int, file_id: str) -> str:
    return f"{company_id}/{file_id}/"


def get_current_store(context: AppContext) -> PartStore:
    """Where new files go."""
    return BucketStore(context.bucket) if context.bucket else DatabaseStore(context.database)


def get_store(context: AppContext, storage: Storage) -> PartStore:
    if storage == "database":
        return DatabaseStore(context.database)
    if context.bucket is None:
        raise FileUnavailable("This file is in a bucket. The operator must set SAPA_FILES_URL.")
    return BucketStore(context.bucket)
