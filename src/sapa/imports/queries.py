"""How imports are stored: their state, the chunks of an uploaded file, the lines that failed."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from sapa.db.due import WORKER, build_next_real_due
from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx, announce_due
from sapa.db.sql import sql
from sapa.db.wakeups import DueQueue
from sapa.http.errors import NotFound
from sapa.imports.mappings.types import ImportMapping
from sapa.imports.types import Import, ImportJob, NewImport, Problem

HOLD_SECONDS = 15.0
CHUNK = 1_048_576
DAYS_KEPT = 30

_EXPRESSIONS = {
    # Of a converted file, the position counts in the converted bytes.
    "position": "CASE WHEN converted_size > 0 THEN position * size / converted_size ELSE position END",
    "created": "created_rows",
    "updated": "updated_rows",
    "unchanged": "rows - created_rows - updated_rows - failed_rows",
    "failed": "failed_rows",
}
COLUMNS = ", ".join(
    f"{_EXPRESSIONS[field]} AS {field}" if field in _EXPRESSIONS else field for field in Import.__struct_fields__
)
JOB_COLUMNS = ", ".join(ImportJob.__struct_fields__)

# During a large import the statistics lag behind. Generic plans find each row by its index; custom plans may prefer to
# read all rows of the company. Without sorts, only an index in the order of a statement fits. A sharded database has to
# know the company before it plans.
#
# The commits of batches do not wait for the disk: a batch would have the company's order numbers meanwhile. PostgreSQL
# writes them within a second, in order, and the commit that finishes the import waits for all of them. After a crash
# the latest rows are lost together with the position after them, and the import resumes from the stored position.
PREPARE_BATCH = sql(
    """
    SELECT set_config('plan_cache_mode', CASE WHEN to_regclass('pg_dist_partition') IS NULL
                                              THEN 'force_generic_plan' ELSE 'auto' END, true),
           set_config('synchronous_commit', 'off', true),
           set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true)"""
)

IS_PAST = sql("SELECT $2::timestamptz <= statement_timestamp() + clock_offset FROM companies WHERE company_id = $1")

GET = sql(f"SELECT {COLUMNS} FROM imports WHERE company_id = $1 AND id = $2", row=Import)

# A file that the command reads is imported once at a time; a second command finds the import of the first. A draft is
# held for ever: workers of earlier versions, which do not know drafts, leave it alone.
INSERT = sql(
    """
    WITH inserted AS (
        INSERT INTO imports (company_id, id, resource, format, dry_run, is_upload, fingerprint, size, status, source,
                             effects, reading, converted_size, held_until)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::text, $10, $11, $12, $13,
                CASE WHEN $9::text = 'draft' THEN 'infinity' ELSE '-infinity' END::timestamptz)
            ON CONFLICT (company_id, resource, format, fingerprint, dry_run) WHERE finished_at IS NULL AND NOT is_upload
            DO NOTHING
        RETURNING company_id, id
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'imports', '', 1 FROM inserted
    )
    SELECT id FROM inserted WHERE company_id = $1"""
)

FIND_UNFINISHED = sql(
    """
    SELECT id FROM imports
     WHERE company_id = $1 AND resource = $2 AND format = $3 AND fingerprint = $4 AND dry_run = $5
       AND finished_at IS NULL AND NOT is_upload"""
)

CLAIM = sql(
    f"""
    UPDATE imports
       SET holder = $3, held_until = statement_timestamp() + make_interval(secs => $4), status = 'running',
           updated_at = statement_timestamp()
     WHERE company_id = $1 AND id = $2 AND finished_at IS NULL AND status <> 'draft'
       AND (held_until < statement_timestamp() OR holder = ANY($5))
    RETURNING {JOB_COLUMNS}""",
    row=ImportJob,
)

FIND_HOLDER = sql(
    "SELECT holder FROM imports WHERE company_id = $1 AND id = $2 AND held_until >= statement_timestamp()"
)

FREE = sql(
    """
    UPDATE imports SET held_until = '-infinity'
     WHERE finished_at IS NULL AND split_part(holder, '/', 1) = ANY($1::text[])""",
    crosses="a worker that died was importing for some company",
)

RELEASE = sql("UPDATE imports SET held_until = '-infinity' WHERE company_id = $1 AND id = $2 AND holder = $3")

RENEW = sql(
    """
    UPDATE imports SET held_until = statement_timestamp() + make_interval(secs => $4)
     WHERE company_id = $1 AND id = $2 AND holder = $3 AND finished_at IS NULL"""
)

ADVANCE = sql(
    """
    UPDATE imports
       SET attempts = 0, position = $5, line = $6, rows = rows + $7, created_rows = created_rows + $8,
           updated_rows = updated_rows + $9, failed_rows = failed_rows + $10,
           held_until = statement_timestamp() + make_interval(secs => $11), updated_at = statement_timestamp()
     WHERE company_id = $1 AND id = $2 AND holder = $3 AND position = $4 AND finished_at IS NULL"""
)


class ImportFailure(Struct, frozen=True):
    """How often an import has failed at the same position, and the last line before it."""

    attempts: int
    line: int


COUNT_FAILURE = sql(
    """
    UPDATE imports SET attempts = attempts + 1, held_until = '-infinity', updated_at = statement_timestamp()
     WHERE company_id = $1 AND id = $2 AND holder = $3 AND finished_at IS NULL
    RETURNING attempts, line""",
    row=ImportFailure,
)

FINISH = sql(
    """
    UPDATE imports
       SET finished_at = statement_timestamp(), updated_at = statement_timestamp(), held_until = '-infinity',
           error = $4::text,
           position = CASE WHEN $4::text IS NULL THEN coalesce(converted_size, size) ELSE position END,
           status = CASE WHEN $4::text IS NOT NULL THEN 'failed' WHEN failed_rows > 0 THEN 'partial'
                         ELSE 'succeeded' END
     WHERE company_id = $1 AND id = $2 AND holder = $3 AND finished_at IS NULL"""
)

INSERT_CHUNK = sql("INSERT INTO import_chunks (company_id, import_id, number, content) VALUES ($1, $2, $3, $4)")

GET_CHUNK = sql("SELECT content FROM import_chunks WHERE company_id = $1 AND import_id = $2 AND number = $3")

START = sql(
    """
    UPDATE imports
       SET status = 'queued', source = $3, effects = $4, reading = $5, dry_run = $6, held_until = '-infinity',
           updated_at = statement_timestamp()
     WHERE company_id = $1 AND id = $2 AND status = 'draft'"""
)

SET_CONVERTED = sql(
    """
    UPDATE imports
       SET converted_size = $4, updated_at = statement_timestamp(),
           held_until = statement_timestamp() + make_interval(secs => $5)
     WHERE company_id = $1 AND id = $2 AND holder = $3 AND finished_at IS NULL AND position = 0"""
)

DELETE_CHUNKS = sql("DELETE FROM import_chunks WHERE company_id = $1 AND import_id = $2")

INSERT_KEYS = sql(
    """
    INSERT INTO import_keys (company_id, import_id, key, owner)
    SELECT $1, $2, input.key, input.owner FROM unnest($3::text[], $4::text[]) AS input (key, owner)
        ON CONFLICT DO NOTHING"""
)

FIND_KEYS = sql("SELECT key, owner FROM import_keys WHERE company_id = $1 AND import_id = $2 AND key = ANY($3)")

DELETE_KEYS = sql("DELETE FROM import_keys WHERE company_id = $1 AND import_id = $2")

INSERT_PROBLEMS = sql(
    """
    INSERT INTO import_errors (company_id, import_id, line, field, message)
    SELECT $1, $2, input.line, input.field, input.message
      FROM unnest($3::bigint[], $4::text[], $5::text[]) AS input (line, field, message)"""
)

LIST_PROBLEMS = sql(
    """
    SELECT line, field, message, NULL::text AS column FROM import_errors
     WHERE company_id = $1 AND import_id = $2 AND line > $3
     ORDER BY line LIMIT $4""",
    row=Problem,
)

PAGE_PROBLEMS = sql(
    """
    SELECT line, field, message, NULL::text AS column FROM import_errors
     WHERE company_id = $1 AND import_id = $2
     ORDER BY line LIMIT $3 OFFSET $4""",
    row=Problem,
)


FIND_READING = sql("SELECT coalesce(reading, '{}') FROM imports WHERE company_id = $1 AND id = $2")


class StoredReading(Struct, frozen=True):
    """What an import stores of how its file is read."""

    mapping: ImportMapping | None = None


class WaitingUpload(Struct, frozen=True):
    """An upload that no worker holds."""

    company_id: int
    id: str


LIST_WAITING = sql(
    """
    SELECT company_id, id FROM imports
     WHERE finished_at IS NULL AND is_upload AND status <> 'draft' AND held_until < statement_timestamp()
     ORDER BY updated_at, created_at
     LIMIT 20""",
    row=WaitingUpload,
    crosses="the worker looks for uploads over all companies, then claims one company's",
)

NEXT_UPLOADS = sql(
    build_next_real_due("imports", "held_until", "finished_at IS NULL AND is_upload AND status <> 'draft'"),
    crosses=WORKER,
)
UPLOADS = DueQueue("uploads", NEXT_UPLOADS.text)

# Uploads that were never started go after a day: nothing but their content is stored.
_OLD = """(created_at < now() - make_interval(days => ${0})
            OR (status = 'draft' AND created_at < now() - interval '1 day'))"""

COMPANIES_TO_PURGE = sql(
    f"SELECT DISTINCT company_id FROM imports WHERE {_OLD.format(1)}",
    crosses="the worker looks for old imports over all companies, then purges them company by company",
)

PURGE = sql(
    f"""
    WITH deleted AS (
        DELETE FROM imports WHERE company_id = $1 AND {_OLD.format(2)} RETURNING id
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'imports', '', -1 FROM deleted"""
)

LISTING = Listing(
    "imports",
    row=Import,
    counter="imports",
    filters={"resources": "resource = ANY({}::text[])"},
    sorts={"createdAt": "created_at"},
    columns={name: f"({expression})" for name, expression in _EXPRESSIONS.items()},
)


async def get_import(db: Connection, company_id: int, id: str) -> Import:
    found = await GET.find(db, company_id, id)
    if found is None:
        raise NotFound
    return found


async def insert_import(tx: Tx, company_id: int, id: str, new: NewImport) -> str | None:
    """The id, or None when the command already imports the same file."""
    values = (getattr(new, name) for name in NewImport.__struct_fields__)
    inserted: str | None = await INSERT.value(tx, company_id, id, *values)
    announce_due(tx, UPLOADS)
    return inserted


async def start_import(
    tx: Tx, company_id: int, id: str, source: str | None, reading: bytes | None, *, effects: bool, dry_run: bool
) -> bool:
    """False when it has been started already."""
    announce_due(tx, UPLOADS)
    return bool(await START.run(tx, company_id, id, source, effects, reading, dry_run))


async def replace_chunks(tx: Tx, company_id: int, id: str, holder: str, size: int, chunks: Iterable[bytes]) -> bool:
    """Stores the converted file instead of the uploaded one; False when another holder has taken the import over."""
    if not await SET_CONVERTED.run(tx, company_id, id, holder, size, HOLD_SECONDS):
        return False
    await DELETE_CHUNKS.run(tx, company_id, id)
    for number, chunk in enumerate(chunks):
        await INSERT_CHUNK.run(tx, company_id, id, number, chunk)
    return True


async def get_unfinished(
    tx: Tx, company_id: int, resource: str, format: str, fingerprint: bytes, *, dry_run: bool
) -> str:
    """The id of the command's unfinished import of the same file."""
    id: str = await FIND_UNFINISHED.value(tx, company_id, resource, format, fingerprint, dry_run)
    return id


async def claim(tx: Tx, company_id: int, id: str, holder: str, dead: Sequence[str]) -> ImportJob | None:
    """None while another holder, who is not among the dead, has it."""
    return await CLAIM.find(tx, company_id, id, holder, HOLD_SECONDS, dead)


async def find_holder(db: Connection, company_id: int, id: str) -> str | None:
    holder: str | None = await FIND_HOLDER.value(db, company_id, id)
    return holder


async def free(tx: Tx, processes: Sequence[str]) -> None:
    """Lets other workers go on with the imports of those that died."""
    await FREE.run(tx, processes)


async def release(tx: Tx, company_id: int, id: str, holder: str) -> None:
    await RELEASE.run(tx, company_id, id, holder)


async def finish(tx: Tx, company_id: int, id: str, holder: str, error: str | None) -> bool:
    """False when another holder has taken the import over."""
    if not await FINISH.run(tx, company_id, id, holder, error):
        return False
    await DELETE_CHUNKS.run(tx, company_id, id)
    await DELETE_KEYS.run(tx, company_id, id)
    return True


async def count_failure(tx: Tx, company_id: int, id: str, holder: str) -> ImportFailure | None:
    return await COUNT_FAILURE.find(tx, company_id, id, holder)


async def list_waiting(db: Connection) -> list[WaitingUpload]:
    """The longest waiting first."""
    return await LIST_WAITING.all(db)


async def list_companies_to_purge(db: Connection) -> list[int]:
    return [row[0] for row in await db.fetch(COMPANIES_TO_PURGE.text, DAYS_KEPT)]


async def purge(tx: Tx, company_id: int) -> None:
    await PURGE.run(tx, company_id, DAYS_KEPT)


async def prepare_batch(tx: Tx) -> None:
    """Plans and commits that suit a batch, for this transaction."""
    await PREPARE_BATCH.value(tx)


async def is_past(db: Connection, company_id: int, instant: datetime) -> bool:
    """By the company's clock."""
    return bool(await IS_PAST.value(db, company_id, instant))


async def list_imports(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[Import], int]:
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


async def list_problems(db: Connection, company_id: int, id: str, limit: int, offset: int) -> list[Problem]:
    return await PAGE_PROBLEMS.all(db, company_id, id, limit, offset)


async def find_mapping(db: Connection, company_id: int, id: str) -> ImportMapping | None:
    """None for a file whose columns nobody mapped."""
    return msgspec.json.decode(await FIND_READING.value(db, company_id, id), type=StoredReading).mapping


async def list_problems_after(db: Connection, company_id: int, id: str, line: int, most: int) -> list[Problem]:
    return await LIST_PROBLEMS.all(db, company_id, id, line, most)


async def advance(
    tx: Tx, company_id: int, id: str, holder: str, position: int, next: tuple[int, int], counts: tuple[int, ...]
) -> bool:
    """Moves from a position to the next one, with its line; False when another holder has taken the import over."""
    return bool(await ADVANCE.run(tx, company_id, id, holder, position, *next, *counts, HOLD_SECONDS))


async def renew(tx: Tx, company_id: int, id: str, holder: str) -> bool:
    """False when another holder has taken the import over."""
    return bool(await RENEW.run(tx, company_id, id, holder, HOLD_SECONDS))


async def insert_problems(tx: Tx, company_id: int, id: str, problems: Sequence[Problem]) -> None:
    await INSERT_PROBLEMS.run(
        tx,
        company_id,
        id,
        [problem.line for problem in problems],
        [problem.field for problem in problems],
        [problem.message for problem in problems],
    )


async def list_key_owners(tx: Tx, company_id: int, id: str, keys: Sequence[str]) -> dict[str, str]:
    """The rows of the dry run that already claim these keys."""
    return {row[0]: row[1] for row in await tx.fetch(FIND_KEYS.text, company_id, id, keys)}


async def insert_keys(tx: Tx, company_id: int, id: str, owners: Mapping[str, str]) -> None:
    await INSERT_KEYS.run(tx, company_id, id, list(owners), list(owners.values()))


async def insert_chunks(tx: Tx, company_id: int, id: str, content: bytes) -> None:
    for number, start in enumerate(range(0, len(content), CHUNK)):
        await INSERT_CHUNK.run(tx, company_id, id, number, content[start : start + CHUNK])


async def get_chunk(db: Connection, company_id: int, id: str, position: int) -> bytes:
    """From the position to the end of its chunk; empty after the last."""
    number, offset = divmod(position, CHUNK)
    content: bytes | None = await GET_CHUNK.value(db, company_id, id, number)
    return (content or b"")[offset:]
