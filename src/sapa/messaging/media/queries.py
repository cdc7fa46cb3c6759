"""Queries for the files of messages: where to fetch them, then their bytes in parts."""

from collections.abc import Sequence

from msgspec import Struct

from sapa.db.due import WORKER, build_next_real_due
from sapa.db.pool import Connection, Tx, announce_due
from sapa.db.sql import sql
from sapa.db.wakeups import DueQueue
from sapa.http.errors import NotFound
from sapa.messaging.files.types import StoredFile


class WaitingFile(Struct, frozen=True):
    """A file to fetch."""

    company_id: int
    message_id: str
    number: int


class MediaRow(Struct, frozen=True):
    message_id: str
    number: int
    connection_id: str
    type: str
    mime_type: str | None
    media_id: str | None
    url: str | None
    filename: str | None
    status: str
    size: int | None
    error: str | None
    tries: int
    file_id: str | None
    """None for a file that was received before files had ids."""


COLUMNS = ", ".join(MediaRow.__struct_fields__)

INSERT = sql(
    """
    INSERT INTO message_media (company_id, message_id, number, connection_id, source, type, mime_type, media_id, url,
                               filename, status, size, file_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"""
)

GET = sql(
    f"SELECT {COLUMNS} FROM message_media WHERE company_id = $1 AND message_id = $2 AND number = $3", row=MediaRow
)

HAS_MESSAGE = sql("SELECT EXISTS (SELECT FROM messages WHERE company_id = $1 AND id = $2)")

LIST = sql(
    f"SELECT {COLUMNS} FROM message_media WHERE company_id = $1 AND message_id = $2 ORDER BY number", row=MediaRow
)

LIST_OF = sql(
    f"""
    SELECT {COLUMNS}
      FROM message_media
     WHERE company_id = $1 AND message_id = ANY($2::text[])
     ORDER BY message_id, number""",
    row=MediaRow,
)

# A few per company, so that one company does not fill the list.
LIST_WAITING = sql(
    """
    SELECT company_id, message_id, number
      FROM (SELECT company_id, message_id, number, due_at,
                   row_number() OVER (PARTITION BY company_id ORDER BY due_at) AS place
              FROM message_media
             WHERE status = 'waiting' AND due_at <= now()) AS due
     WHERE place <= $1
     ORDER BY due_at
     LIMIT $2""",
    row=WaitingFile,
    crosses="the worker finds files of all companies, then claims them one by one",
)

NEXT_FILES = sql(build_next_real_due("message_media", "due_at", "status = 'waiting'"), crosses=WORKER)
FILES = DueQueue("media", NEXT_FILES.text)

# A claim lasts this long; then another worker may try.
CLAIM = sql(
    f"""
    UPDATE message_media
       SET tries = tries + 1, due_at = now() + make_interval(secs => $4)
     WHERE company_id = $1 AND message_id = $2 AND number = $3 AND status = 'waiting' AND due_at <= now()
    RETURNING {COLUMNS}""",
    row=MediaRow,
)

SETTLE = sql(
    """
    UPDATE message_media
       SET status = 'stored', mime_type = $4, size = $5, filename = COALESCE(filename, $6), file_id = $7, error = NULL
     WHERE company_id = $1 AND message_id = $2 AND number = $3 AND status <> 'failed'"""
)

RECORD_FAILURE = sql(
    """
    UPDATE message_media
       SET status = $4, error = $5, due_at = now() + make_interval(secs => $6)
     WHERE company_id = $1 AND message_id = $2 AND number = $3 AND status = 'waiting'"""
)

# Of files that were received before files had ids.
GET_PART = sql(
    """
    SELECT data FROM message_media_parts
     WHERE company_id = $1 AND message_id = $2 AND number = $3 AND part = $4"""
)


async def insert_media(tx: Tx, company_id: int, source: str, row: MediaRow) -> None:
    await INSERT.run(
        tx, company_id, row.message_id, row.number, row.connection_id, source, row.type, row.mime_type, row.media_id,
        row.url, row.filename, row.status, row.size, row.file_id,
    )  # fmt: skip
    announce_due(tx, FILES)


async def get_media(db: Connection, company_id: int, message_id: str, number: int) -> MediaRow:
    found = await GET.find(db, company_id, message_id, number)
    if found is None:
        raise NotFound
    return found


async def has_message(db: Connection, company_id: int, message_id: str) -> bool:
    return bool(await HAS_MESSAGE.value(db, company_id, message_id))


async def list_media(db: Connection, company_id: int, message_id: str) -> list[MediaRow]:
    return await LIST.all(db, company_id, message_id)


async def list_media_of(db: Connection, company_id: int, message_ids: Sequence[str]) -> list[MediaRow]:
    return await LIST_OF.all(db, company_id, list(message_ids))


async def list_waiting(db: Connection, max_per_company: int, limit: int) -> list[WaitingFile]:
    """Longest waiting first."""
    return await LIST_WAITING.all(db, max_per_company, limit)


async def claim(db: Connection, waiting: WaitingFile, seconds: float) -> MediaRow | None:
    """None if another worker was faster."""
    return await CLAIM.find(db, waiting.company_id, waiting.message_id, waiting.number, seconds)


async def settle(tx: Tx, company_id: int, row: MediaRow, file: StoredFile) -> None:
    """The file is stored. Its name is the channel's, if that gave one."""
    await SETTLE.run(tx, company_id, row.message_id, row.number, file.media_type, file.size, file.filename, file.id)


async def record_failure(db: Connection, company_id: int, row: MediaRow, error: str, retry_in: float | None) -> None:
    """Retries after `retry_in` seconds; with None the file has failed."""
    status = "failed" if retry_in is None else "waiting"
    await RECORD_FAILURE.run(db, company_id, row.message_id, row.number, status, error, retry_in or 0.0)


async def find_part(db: Connection, company_id: int, message_id: str, number: int, part: int) -> bytes | None:
    data: bytes | None = await GET_PART.value(db, company_id, message_id, number, part)
    return data
