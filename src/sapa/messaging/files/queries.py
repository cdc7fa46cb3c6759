"""Queries for files: what they are, their parts, their thumbnails, and how many were uploaded."""

from collections.abc import Sequence

from sapa.db.due import WORKER, build_next_real_due
from sapa.db.pool import Connection, Tx, announce_due
from sapa.db.sql import sql
from sapa.db.wakeups import DueQueue
from sapa.messaging.files.types import FileKey, Storage, StoredFile

COLUMNS = ", ".join(StoredFile.__struct_fields__)
_WORKER = "the worker finds files of all companies, then handles them one by one"

# A file whose writer died is written again from the beginning.
BEGIN = sql(
    """
    INSERT INTO files AS f (company_id, id, size, storage, visitor_id, expires_at)
    VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))
        ON CONFLICT (company_id, id) DO UPDATE
       SET size = excluded.size, storage = excluded.storage, expires_at = excluded.expires_at
     WHERE f.status = 'writing'
    RETURNING id"""
)

# The file may have expired while it was written.
FINISH = sql(
    f"""
    UPDATE files
       SET status = 'stored', filename = $3, media_type = $4, size = $5, parts = $6, thumbnail = $7
     WHERE company_id = $1 AND id = $2 AND status = 'writing'
    RETURNING {COLUMNS}""",
    row=StoredFile,
)

SUM_UNUSED = sql(
    """
    SELECT coalesce(sum(size), 0)::bigint
      FROM files
     WHERE company_id = $1 AND expires_at IS NOT NULL AND (visitor_id IS NOT NULL) = $2::boolean"""
)

FIND = sql(f"SELECT {COLUMNS} FROM files WHERE company_id = $1 AND id = $2", row=StoredFile)

LIST = sql(f"SELECT {COLUMNS} FROM files WHERE company_id = $1 AND id = ANY($2::text[])", row=StoredFile)

# The lock decides between a message that gets the file and the purge.
KEEP = sql(
    """
    UPDATE files SET expires_at = NULL, checked_at = now()
     WHERE company_id = $1 AND id = ANY($2::text[]) AND status = 'stored'"""
)

RELEASE = sql(
    "UPDATE files SET expires_at = now() WHERE company_id = $1 AND id = ANY($2::text[]) AND expires_at IS NULL"
)

EXPIRE = sql("UPDATE files SET expires_at = now() WHERE company_id = $1 AND id = $2 AND status = 'writing'")

INSERT_PART = sql(
    """
    INSERT INTO file_parts AS p (company_id, file_id, part, data)
    VALUES ($1, $2, $3, $4)
        ON CONFLICT (company_id, file_id, part) DO UPDATE SET data = excluded.data"""
)

FIND_PART = sql("SELECT data FROM file_parts WHERE company_id = $1 AND file_id = $2 AND part = $3")

DELETE_PARTS = sql("DELETE FROM file_parts WHERE company_id = $1 AND file_id = $2")

LIST_EXPIRED = sql(
    "SELECT company_id, id FROM files WHERE expires_at <= now() ORDER BY expires_at LIMIT $1",
    row=FileKey,
    crosses=_WORKER,
)

# A file that is not being used by now never is again.
MARK_DELETING = sql(
    f"""
    UPDATE files SET status = 'deleting'
     WHERE company_id = $1 AND id = $2 AND expires_at <= now()
    RETURNING {COLUMNS}""",
    row=StoredFile,
)

DELETE = sql("DELETE FROM files WHERE company_id = $1 AND id = $2 AND status = 'deleting'")

DELETE_THUMBNAIL = sql("DELETE FROM file_thumbnails WHERE company_id = $1 AND file_id = $2")

DELETE_PICTURE = sql("DELETE FROM product_pictures WHERE company_id = $1 AND file_id = $2")

DELETE_CHANNEL_FILES = sql("DELETE FROM channel_files WHERE company_id = $1 AND file_id = $2")

LIST_UNCHECKED = sql(
    """
    SELECT company_id, id FROM files
     WHERE expires_at IS NULL AND checked_at < now() - make_interval(secs => $1)
     ORDER BY checked_at LIMIT $2""",
    row=FileKey,
    crosses=_WORKER,
)

# A message that was deleted has its files no longer, and neither has a product.
CHECK_USE = sql(
    """
    UPDATE files f
       SET checked_at = clock.now,
           expires_at = CASE WHEN NOT EXISTS (
               SELECT FROM message_media u
                 JOIN messages m ON m.company_id = $1 AND m.id = u.message_id
                WHERE u.company_id = $1 AND u.file_id = f.id)
            AND NOT EXISTS (
               SELECT FROM product_pictures p
                WHERE p.company_id = $1 AND p.file_id = f.id AND p.products <> '{}') THEN clock.now END
      FROM (SELECT now() AS now) AS clock
     WHERE f.company_id = $1 AND f.id = ANY($2::text[]) AND f.expires_at IS NULL"""
)

LIST_WITHOUT_THUMBNAIL = sql(
    """
    SELECT company_id, id FROM files
     WHERE thumbnail = 'waiting' AND status = 'stored' AND thumbnail_due_at <= now()
     ORDER BY thumbnail_due_at
     LIMIT $1""",
    row=FileKey,
    crosses=_WORKER,
)

NEXT_THUMBNAILS = sql(
    build_next_real_due("files", "thumbnail_due_at", "thumbnail = 'waiting' AND status = 'stored'"), crosses=WORKER
)
THUMBNAILS = DueQueue("thumbnails", NEXT_THUMBNAILS.text)

# Counted before it is tried: an image that ends the process is not tried for ever.
CLAIM_THUMBNAIL = sql(
    f"""
    UPDATE files
       SET thumbnail_tries = thumbnail_tries + 1, thumbnail_due_at = now() + make_interval(secs => $4),
           thumbnail = CASE WHEN thumbnail_tries >= $3 THEN 'failed' ELSE thumbnail END
     WHERE company_id = $1 AND id = $2 AND thumbnail = 'waiting' AND thumbnail_due_at <= now()
    RETURNING {COLUMNS}""",
    row=StoredFile,
)

SETTLE_THUMBNAIL = sql(
    "UPDATE files SET thumbnail = $3 WHERE company_id = $1 AND id = $2 AND thumbnail = 'waiting' AND status = 'stored'"
)

INSERT_THUMBNAIL = sql(
    """
    INSERT INTO file_thumbnails AS t (company_id, file_id, data)
    VALUES ($1, $2, $3)
        ON CONFLICT (company_id, file_id) DO UPDATE SET data = excluded.data"""
)

FIND_THUMBNAIL = sql("SELECT data FROM file_thumbnails WHERE company_id = $1 AND file_id = $2")

LIST_MOVABLE = sql(
    "SELECT company_id, id FROM files WHERE storage = 'database' AND status = 'stored' ORDER BY created_at LIMIT $1",
    row=FileKey,
    crosses=_WORKER,
)

MOVE = sql(
    """
    UPDATE files SET storage = 'bucket', parts = $3
     WHERE company_id = $1 AND id = $2 AND storage = 'database' AND status = 'stored'"""
)

FIND_CHANNEL_FILE = sql(
    """
    SELECT channel_id FROM channel_files
     WHERE company_id = $1 AND file_id = $2 AND connection_id = $3 AND type = $4 AND expires_at > now()"""
)

INSERT_CHANNEL_FILE = sql(
    """
    INSERT INTO channel_files AS c (company_id, file_id, connection_id, type, channel_id, expires_at)
    VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))
        ON CONFLICT (company_id, file_id, connection_id, type) DO UPDATE
       SET channel_id = excluded.channel_id, expires_at = excluded.expires_at"""
)

DELETE_CHANNEL_FILE = sql("DELETE FROM channel_files WHERE company_id = $1 AND connection_id = $2 AND channel_id = $3")

COUNT_UPLOAD = sql(
    """
    INSERT INTO upload_windows AS w (company_id, subject, window_start, used)
    VALUES ($1, $2, date_trunc($3, clock_timestamp()), 1)
        ON CONFLICT (company_id, subject) DO UPDATE
       SET window_start = GREATEST(w.window_start, excluded.window_start),
           used = CASE WHEN w.window_start >= excluded.window_start THEN w.used + 1 ELSE 1 END
    RETURNING used"""
)

PURGE_WINDOWS = sql(
    "DELETE FROM upload_windows WHERE window_start < now() - interval '25 hours'",
    crosses="the worker purges past minutes and days of all companies",
)


async def begin(
    tx: Tx, company_id: int, id: str, size: int, storage: Storage, visitor_id: str | None, seconds: float
) -> bool:
    """False if the file is stored already."""
    return await BEGIN.value(tx, company_id, id, size, storage, visitor_id, seconds) is not None


async def finish(
    tx: Tx, company_id: int, id: str, filename: str, media_type: str, size: int, parts: int, thumbnail: str
) -> StoredFile | None:
    """None if the file was deleted meanwhile, or is stored already."""
    announce_due(tx, THUMBNAILS)
    return await FINISH.find(tx, company_id, id, filename, media_type, size, parts, thumbnail)


async def sum_unused(tx: Tx, company_id: int, *, of_visitors: bool) -> int:
    """The bytes of unused files, those being written included: of visitors, or of the company."""
    return int(await SUM_UNUSED.value(tx, company_id, of_visitors))


async def find_file(db: Connection, company_id: int, id: str) -> StoredFile | None:
    return await FIND.find(db, company_id, id)


async def list_files(db: Connection, company_id: int, ids: Sequence[str]) -> list[StoredFile]:
    return await LIST.all(db, company_id, list(ids))


async def keep(tx: Tx, company_id: int, ids: Sequence[str]) -> int:
    """The files are no longer unused. Returns how many of them still exist."""
    return await KEEP.run(tx, company_id, list(ids))


async def release(tx: Tx, company_id: int, ids: Sequence[str]) -> None:
    """Nobody uses the files any more."""
    await RELEASE.run(tx, company_id, list(ids))


async def expire(db: Connection, company_id: int, id: str) -> None:
    await EXPIRE.run(db, company_id, id)


async def store_part(db: Connection, company_id: int, file_id: str, part: int, data: bytes) -> None:
    await INSERT_PART.run(db, company_id, file_id, part, data)


async def find_part(db: Connection, company_id: int, file_id: str, part: int) -> bytes | None:
    data: bytes | None = await FIND_PART.value(db, company_id, file_id, part)
    return data


async def list_expired(db: Connection, limit: int) -> list[FileKey]:
    return await LIST_EXPIRED.all(db, limit)


async def mark_deleting(db: Connection, key: FileKey) -> StoredFile | None:
    """None if a message got the file meanwhile."""
    return await MARK_DELETING.find(db, key.company_id, key.id)


async def delete(tx: Tx, key: FileKey) -> None:
    await DELETE_PARTS.run(tx, key.company_id, key.id)
    await DELETE_THUMBNAIL.run(tx, key.company_id, key.id)
    await DELETE_CHANNEL_FILES.run(tx, key.company_id, key.id)
    await DELETE_PICTURE.run(tx, key.company_id, key.id)
    await DELETE.run(tx, key.company_id, key.id)


async def list_unchecked(db: Connection, seconds: float, limit: int) -> list[FileKey]:
    """Used files that were not checked for so many seconds, the longest unchecked first."""
    return await LIST_UNCHECKED.all(db, seconds, limit)


async def check_use(tx: Tx, company_id: int, ids: Sequence[str]) -> None:
    """Files that no message and no product has any more expire now."""
    await CHECK_USE.run(tx, company_id, list(ids))


async def list_without_thumbnail(db: Connection, limit: int) -> list[FileKey]:
    return await LIST_WITHOUT_THUMBNAIL.all(db, limit)


async def claim_thumbnail(db: Connection, key: FileKey, max_tries: int, seconds: float) -> StoredFile | None:
    """None if another worker was faster. After the last try the thumbnail has failed."""
    return await CLAIM_THUMBNAIL.find(db, key.company_id, key.id, max_tries, seconds)


async def settle_thumbnail(tx: Tx, key: FileKey, data: bytes | None) -> None:
    """None if the image cannot be read."""
    is_first = await SETTLE_THUMBNAIL.run(tx, key.company_id, key.id, "failed" if data is None else "stored")
    if is_first and data is not None:
        await INSERT_THUMBNAIL.run(tx, key.company_id, key.id, data)


async def find_thumbnail(db: Connection, company_id: int, file_id: str) -> bytes | None:
    data: bytes | None = await FIND_THUMBNAIL.value(db, company_id, file_id)
    return data


async def list_movable(db: Connection, limit: int) -> list[FileKey]:
    return await LIST_MOVABLE.all(db, limit)


async def move(tx: Tx, key: FileKey, parts: int) -> bool:
    """The file is in the bucket now, in so many parts. False if it was moved or deleted meanwhile."""
    is_moved = await MOVE.run(tx, key.company_id, key.id, parts) > 0
    if is_moved:
        await DELETE_PARTS.run(tx, key.company_id, key.id)
    return is_moved


async def find_channel_file(db: Connection, company_id: int, file_id: str, connection_id: str, type: str) -> str | None:
    id: str | None = await FIND_CHANNEL_FILE.value(db, company_id, file_id, connection_id, type)
    return id


async def store_channel_file(
    db: Connection, company_id: int, file_id: str, connection_id: str, type: str, channel_id: str, seconds: float
) -> None:
    await INSERT_CHANNEL_FILE.run(db, company_id, file_id, connection_id, type, channel_id, seconds)


async def delete_channel_file(db: Connection, company_id: int, connection_id: str, channel_id: str) -> None:
    await DELETE_CHANNEL_FILE.run(db, company_id, connection_id, channel_id)


async def count_upload(tx: Tx, company_id: int, subject: str, span: str) -> int:
    """Counts this upload, and returns the uploads in the current minute or day."""
    used: int = await COUNT_UPLOAD.value(tx, company_id, subject, span)
    return used


async def purge_windows(tx: Tx) -> None:
    await PURGE_WINDOWS.run(tx)
