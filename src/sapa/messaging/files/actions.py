"""Stores and reads files, part by part: no file is in memory as a whole unless a caller asks for that."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress

from msgspec import Struct

from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.messaging.files import queries
from sapa.messaging.files.file_types import IMAGE_TYPES, FileScan, clean_filename
from sapa.messaging.files.stores import DatabaseStore, PartStore, get_current_store, get_store
from sapa.messaging.files.types import FILE_ID, MIB, FileUnavailable, StoredFile, ThumbnailStatus
from sapa.values.company import Company

UNUSED_SECONDS = 86_400.0
MAX_IMAGE_BYTES = 25 * MIB
"""Larger images get no thumbnail."""

NOT_THERE = "must be the id of an attachment that exists; unused ones are deleted after 24 hours"


class WrittenContent(Struct, frozen=True):
    """The parts of a file that is not stored yet."""

    scan: FileScan
    parts: int


async def begin(
    tx: Tx, company_id: int, store: PartStore, id: str, max_bytes: int, visitor_id: str | None = None
) -> None:
    """Announces a file before its first byte is stored."""
    await queries.begin(tx, company_id, id, max_bytes, store.name, visitor_id, UNUSED_SECONDS)


async def write(store: PartStore, company_id: int, id: str, chunks: AsyncIterator[bytes]) -> WrittenContent:
    """Stores a file's content; nobody sees it before `finish`."""
    scan, parts, waiting = FileScan(), 0, bytearray()
    async for chunk in chunks:
        scan.feed(chunk)
        waiting += chunk
        while len(waiting) >= store.part_bytes:
            await store.write(company_id, id, parts, bytes(waiting[: store.part_bytes]))
            del waiting[: store.part_bytes]
            parts += 1
    if waiting:
        await store.write(company_id, id, parts, bytes(waiting))
        parts += 1
    return WrittenContent(scan, parts)


async def finish(tx: Tx, company_id: int, id: str, filename: str | None, written: WrittenContent) -> StoredFile:
    """The file can be used from now on. Its type is read from its bytes."""
    media_type = written.scan.get_type(filename)
    name, thumbnail = clean_filename(filename, media_type), _plan_thumbnail(media_type, written.scan.size)
    stored = await queries.finish(tx, company_id, id, name, media_type, written.scan.size, written.parts, thumbnail)
    if stored is None:
        raise FileUnavailable("The file was deleted while it was stored. Upload it again.")
    return stored


async def write_bytes(context: AppContext, company_id: int, id: str, content: bytes) -> WrittenContent:
    """Stores the content of a file that is in memory, outside of a transaction."""
    current = get_current_store(context)
    async with context.database.transaction() as tx:
        await begin(tx, company_id, current, id, len(content))
    return await write(current, company_id, id, _iterate(content))


async def _iterate(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def store(tx: Tx, company_id: int, id: str, filename: str | None, content: bytes) -> StoredFile:
    """Stores bytes that are in memory, within the caller's transaction; a worker moves them to the bucket, if there is
    one."""
    scan = FileScan()
    scan.feed(content)
    await queries.begin(tx, company_id, id, len(content), "database", None, UNUSED_SECONDS)
    size = DatabaseStore.part_bytes
    parts = [content[start : start + size] for start in range(0, len(content), size)]
    for number, data in enumerate(parts):
        await queries.store_part(tx, company_id, id, number, data)
    return await finish(tx, company_id, id, filename, WrittenContent(scan, len(parts)))


def _plan_thumbnail(media_type: str, size: int) -> ThumbnailStatus:
    return "waiting" if media_type in IMAGE_TYPES and size <= MAX_IMAGE_BYTES else "none"


async def discard(context: AppContext, company_id: int, id: str) -> None:
    """Leaves a file that is not finished to the purge. Without a database the purge takes it after a day."""
    with suppress(DatabaseAway):
        async with context.database.connection() as db:
            await queries.expire(db, company_id, id)


async def find_file(db: Connection, company_id: int, id: str) -> StoredFile | None:
    """A file that can be read."""
    found = await queries.find_file(db, company_id, id)
    return found if found is not None and found.status == "stored" else None


async def list_stored(db: Connection, company_id: int, ids: Sequence[str]) -> dict[str, StoredFile]:
    """Those of the files that can be read, by id."""
    found = await queries.list_files(db, company_id, ids) if ids else []
    return {file.id: file for file in found if file.status == "stored"}


async def get_files(db: Connection, company: Company, field: str, ids: Sequence[str]) -> list[StoredFile]:
    """The files with these ids, in this order; raises Invalid for the field of a request if one does not exist."""
    well_formed = [id for id in ids if FILE_ID.matches(id)]
    found = {file.id: file for file in await queries.list_files(db, company.id, well_formed) if file.status == "stored"}
    if any(id not in found for id in ids):
        raise Invalid.field(field, NOT_THERE)
    return [found[id] for id in ids]


async def keep(tx: Tx, company: Company, field: str, ids: Sequence[str]) -> None:
    """A message has these files from now on: they are deleted with it, not before."""
    if await queries.keep(tx, company.id, ids) != len(set(ids)):
        raise Invalid.field(field, NOT_THERE)


async def keep_stored(tx: Tx, company: Company, ids: Sequence[str]) -> None:
    """Keeps those of the files that still exist."""
    await queries.keep(tx, company.id, ids)


async def release(tx: Tx, company: Company, ids: Sequence[str]) -> None:
    """Nobody uses the files any more: the worker deletes them."""
    await queries.release(tx, company.id, ids)


async def open_content(context: AppContext, company_id: int, file: StoredFile) -> AsyncGenerator[bytes, None]:
    """The parts in order. A slow reader holds no database connection."""
    store = get_store(context, file.storage)
    for part in range(file.parts):
        yield await store.read(company_id, file.id, part)


async def read_content(context: AppContext, company_id: int, file: StoredFile) -> bytes:
    return b"".join([part async for part in open_content(context, company_id, file)])


async def find_thumbnail(db: Connection, company_id: int, file_id: str) -> bytes | None:
    return await queries.find_thumbnail(db, company_id, file_id)


async def find_uploaded(db: Connection, company: Company, id: str, connection_id: str, type: str) -> str | None:
    """The id that a channel gave to the file, while it is valid."""
    return await queries.find_channel_file(db, company.id, id, connection_id, type)


async def store_uploaded(
    db: Connection, company: Company, id: str, connection_id: str, type: str, channel_id: str, seconds: float
) -> None:
    await queries.store_channel_file(db, company.id, id, connection_id, type, channel_id, seconds)


async def delete_uploaded(db: Connection, company: Company, connection_id: str, channel_id: str) -> None:
    await queries.delete_channel_file(db, company.id, connection_id, channel_id)
