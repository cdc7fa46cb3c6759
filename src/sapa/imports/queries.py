"""How imports are stored: what is known of each, the pieces of an uploaded file, the lines that failed."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.imports.types import Import, ImportJob, Problem

HOLD_SECONDS = 15.0
PIECE = 1_048_576
DAYS_KEPT = 30

_EXPRESSIONS = {
    "created": "created_rows",
    "updated": "updated_rows",
    "unchanged": "rows - created_rows - updated_rows - failed_rows",
    "failed": "failed_rows",
}
COLUMNS = ", ".join(
    f"{_EXPRESSIONS[field]} AS {field}" if field in _EXPRESSIONS else field for field in Import.__struct_fields__
)
JOB_COLUMNS = ", ".join(ImportJob.__struct_fields__)

# A company that is just being filled is far larger than its statistics say. Plans for any company find each row by its
# own index; plans for this one may prefer to read all that it has.
PLAN_FOR_ANY_COMPANY = sql("SELECT set_config('plan_cache_mode', 'force_generic_plan', true)")

# For all but the last of a series of commits. PostgreSQL makes commits durable in their sequence: the last one, which
# waits for the disk, takes the others along. If the machine goes down before, the latest rows are lost together with
# the place behind them, and the import goes on from the place that was kept.
PLAN_AND_HASTEN = sql(
    """
    SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('synchronous_commit', 'off', true)"""
)

IS_PAST = sql("SELECT $2::timestamptz <= clock_timestamp() + clock_offset FROM companies WHERE company_id = $1")

# As the rows' own instants are kept: what changes in this transaction carries this one or a later.
STARTED_AT = sql("SELECT now()::timestamptz(3)")

GET = sql(f"SELECT {COLUMNS} FROM imports WHERE company_id = $1 AND id = $2", row=Import)

# A file that the command reads is imported once at a time; whoever comes second finds the first one's.
INSERT = sql(
    """
    WITH made AS (
        INSERT INTO imports (company_id, id, resource, format, dry_run, is_upload, fingerprint, size)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (company_id, resource, format, fingerprint, dry_run) WHERE finished_at IS NULL AND NOT is_upload
            DO NOTHING
        RETURNING company_id, id
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'imports', '', 1 FROM made
    )
    SELECT id FROM made WHERE company_id = $1"""
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
       SET holder = $3, held_until = clock_timestamp() + make_interval(secs => $4), status = 'running',
           updated_at = clock_timestamp()
     WHERE company_id = $1 AND id = $2 AND finished_at IS NULL
       AND (held_until < clock_timestamp() OR holder = ANY($5))
    RETURNING {JOB_COLUMNS}""",
    row=ImportJob,
)

HOLDER = sql("SELECT holder FROM imports WHERE company_id = $1 AND id = $2 AND held_until >= clock_timestamp()")

RELEASE = sql("UPDATE imports SET held_until = '-infinity' WHERE company_id = $1 AND id = $2 AND holder = $3")

RENEW = sql(
    """
    UPDATE imports SET held_until = clock_timestamp() + make_interval(secs => $4)
     WHERE company_id = $1 AND id = $2 AND holder = $3 AND finished_at IS NULL"""
)

ADVANCE = sql(
    """
    UPDATE imports
       SET attempts = 0, position = $5, line = $6, rows = rows + $7, created_rows = created_rows + $8,
           updated_rows = updated_rows + $9, failed_rows = failed_rows + $10,
           held_until = clock_timestamp() + make_interval(secs => $11), updated_at = clock_timestamp()
     WHERE company_id = $1 AND id = $2 AND holder = $3 AND position = $4 AND finished_at IS NULL"""
)


class ImportFailure(Struct, frozen=True):
    """How often an import has failed at the same place, and the last line before it."""

    attempts: int
    line: int


COUNT_FAILURE = sql(
    """
    UPDATE imports SET attempts = attempts + 1, held_until = '-infinity', updated_at = clock_timestamp()
     WHERE company_id = $1 AND id = $2 AND holder = $3 AND finished_at IS NULL
    RETURNING attempts, line""",
    row=ImportFailure,
)

FINISH = sql(
    """
    UPDATE imports
       SET finished_at = clock_timestamp(), updated_at = clock_timestamp(), held_until = '-infinity', error = $4::text,
           position = CASE WHEN $4::text IS NULL THEN size ELSE position END,
           status = CASE WHEN $4::text IS NOT NULL THEN 'failed' WHEN failed_rows > 0 THEN 'partial'
                         ELSE 'succeeded' END
     WHERE company_id = $1 AND id = $2 AND holder = $3 AND finished_at IS NULL"""
)

ADD_PIECE = sql("INSERT INTO import_chunks (company_id, import_id, number, content) VALUES ($1, $2, $3, $4)")

GET_PIECE = sql("SELECT content FROM import_chunks WHERE company_id = $1 AND import_id = $2 AND number = $3")

DROP_PIECES = sql("DELETE FROM import_chunks WHERE company_id = $1 AND import_id = $2")

ADD_KEYS = sql(
    """
    INSERT INTO import_keys (company_id, import_id, key, owner)
    SELECT $1, $2, given.key, given.owner FROM unnest($3::text[], $4::text[]) AS given (key, owner)
        ON CONFLICT DO NOTHING"""
)

FIND_KEYS = sql("SELECT key, owner FROM import_keys WHERE company_id = $1 AND import_id = $2 AND key = ANY($3)")

DROP_KEYS = sql("DELETE FROM import_keys WHERE company_id = $1 AND import_id = $2")

ADD_PROBLEMS = sql(
    """
    INSERT INTO import_errors (company_id, import_id, line, field, message)
    SELECT $1, $2, given.line, given.field, given.message
      FROM unnest($3::bigint[], $4::text[], $5::text[]) AS given (line, field, message)"""
)

LIST_PROBLEMS = sql(
    """
    SELECT line, field, message FROM import_errors
     WHERE company_id = $1 AND import_id = $2 AND line > $3
     ORDER BY line LIMIT $4""",
    row=Problem,
)

PAGE_OF_PROBLEMS = sql(
    """
    SELECT line, field, message FROM import_errors
     WHERE company_id = $1 AND import_id = $2
     ORDER BY line LIMIT $3 OFFSET $4""",
    row=Problem,
)


class WaitingUpload(Struct, frozen=True):
    """An upload that nobody works on."""

    company_id: int
    id: str


WAITING = sql(
    """
    SELECT company_id, id FROM imports
     WHERE finished_at IS NULL AND is_upload AND held_until < clock_timestamp()
     ORDER BY updated_at, created_at
     LIMIT 20""",
    row=WaitingUpload,
    crosses="the worker looks for uploads over all companies, then claims one company's",
)

COMPANIES_TO_PURGE = sql(
    "SELECT DISTINCT company_id FROM imports WHERE created_at < now() - make_interval(days => $1)",
    crosses="the worker looks for old imports over all companies, then forgets them company by company",
)

PURGE = sql(
    """
    WITH gone AS (
        DELETE FROM imports WHERE company_id = $1 AND created_at < now() - make_interval(days => $2) RETURNING id
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'imports', '', -1 FROM gone"""
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


async def list_imports(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[Import], int]:
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


async def list_problems(db: Connection, company_id: int, id: str, limit: int, offset: int) -> list[Problem]:
    return await PAGE_OF_PROBLEMS.all(db, company_id, id, limit, offset)


async def list_problems_after(db: Connection, company_id: int, id: str, line: int, most: int) -> list[Problem]:
    return await LIST_PROBLEMS.all(db, company_id, id, line, most)


async def advance(
    tx: Tx, company_id: int, id: str, holder: str, position: int, place: tuple[int, int], counts: tuple[int, ...]
) -> bool:
    """Moves from a position to the next place, a position and a line; False when it is not the holder's any more."""
    return bool(await ADVANCE.run(tx, company_id, id, holder, position, *place, *counts, HOLD_SECONDS))


async def renew(tx: Tx, company_id: int, id: str, holder: str) -> bool:
    """Holds on to it; False when it is not the holder's any more."""
    return bool(await RENEW.run(tx, company_id, id, holder, HOLD_SECONDS))


async def add_problems(tx: Tx, company_id: int, id: str, problems: Sequence[Problem]) -> None:
    await ADD_PROBLEMS.run(
        tx,
        company_id,
        id,
        [problem.line for problem in problems],
        [problem.field for problem in problems],
        [problem.message for problem in problems],
    )


async def find_keys(tx: Tx, company_id: int, id: str, keys: Sequence[str]) -> dict[str, str]:
    """Who of a dry run's lines has each key already."""
    return {row[0]: row[1] for row in await tx.fetch(FIND_KEYS.text, company_id, id, keys)}


async def add_keys(tx: Tx, company_id: int, id: str, owners: Mapping[str, str]) -> None:
    await ADD_KEYS.run(tx, company_id, id, list(owners), list(owners.values()))


async def add_pieces(tx: Tx, company_id: int, id: str, content: bytes) -> None:
    for number, start in enumerate(range(0, len(content), PIECE)):
        await ADD_PIECE.run(tx, company_id, id, number, content[start : start + PIECE])


async def get_piece(db: Connection, company_id: int, id: str, position: int) -> bytes:
    """From the position to the end of the piece that it lies in; nothing after the last."""
    number, offset = divmod(position, PIECE)
    content: bytes | None = await GET_PIECE.value(db, company_id, id, number)
    return (content or b"")[offset:]
