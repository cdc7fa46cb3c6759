"""SQL of files to print."""

from collections.abc import Sequence

from sapa.db.due import WORKER, build_next_real_due
from sapa.db.pool import Connection, Tx, announce_due
from sapa.db.sql import sql
from sapa.db.wakeups import DueQueue
from sapa.http.errors import NotFound
from sapa.shipping.labels.types import LabelBatch, LabelBatchIn, PrintJob, WaitingBatch

HOLD_SECONDS = 180.0
"""Longer than a file takes; after this the worker that held it is gone."""
CHUNK = 1_048_576
DAYS_KEPT = 7
MAX_ATTEMPTS = 3

COLUMNS = """id, document, format, source, status, cardinality(shipment_ids) AS shipments, size, error, created_at,
       finished_at"""

GET = sql(f"SELECT {COLUMNS} FROM label_batches WHERE company_id = $1 AND id = $2", row=LabelBatch)

INSERT = sql(
    f"""
    INSERT INTO label_batches (company_id, id, document, format, source, shipment_ids)
    VALUES ($1, $2, $3, $4, $5, $6)
    RETURNING {COLUMNS}""",
    row=LabelBatch,
)

# Companies take turns, so that none waits for another's backlog.
LIST_WAITING = sql(
    """
    SELECT company_id, id
      FROM (SELECT company_id, id, created_at,
                   row_number() OVER (PARTITION BY company_id ORDER BY created_at, id) AS turn
              FROM label_batches
             WHERE finished_at IS NULL AND held_until < statement_timestamp()) AS waiting
     ORDER BY turn, created_at
     LIMIT 20""",
    row=WaitingBatch,
    crosses="the worker looks for files to make over all companies, then claims one company's",
)

NEXT_BATCHES = sql(build_next_real_due("label_batches", "held_until", "finished_at IS NULL"), crosses=WORKER)
BATCHES = DueQueue("labels", NEXT_BATCHES.text)

CLAIM = sql(
    """
    UPDATE label_batches
       SET holder = $3, held_until = statement_timestamp() + make_interval(secs => $4), status = 'running',
           attempts = attempts + 1
     WHERE company_id = $1 AND id = $2 AND finished_at IS NULL AND held_until < statement_timestamp()
    RETURNING id, document, format, source, shipment_ids, attempts""",
    row=PrintJob,
)

FREE = sql(
    """
    UPDATE label_batches SET held_until = '-infinity'
     WHERE finished_at IS NULL AND split_part(holder, '/', 1) = ANY($1::text[])""",
    crosses="a worker that died was printing for some company",
)

RELEASE = sql(
    """
    UPDATE label_batches SET held_until = '-infinity'
     WHERE company_id = $1 AND id = $2 AND holder = $3 AND attempts < $4 AND finished_at IS NULL"""
)

FINISH = sql(
    """
    UPDATE label_batches
       SET status = CASE WHEN $4::text IS NULL THEN 'succeeded' ELSE 'failed' END, error = $4, size = $5,
           finished_at = statement_timestamp(), held_until = '-infinity'
     WHERE company_id = $1 AND id = $2 AND holder = $3 AND finished_at IS NULL"""
)

INSERT_CHUNK = sql("INSERT INTO label_files (company_id, batch_id, number, content) VALUES ($1, $2, $3, $4)")

READ_FILE = sql(
    "SELECT string_agg(content, ''::bytea ORDER BY number) FROM label_files WHERE company_id = $1 AND batch_id = $2"
)

COMPANIES_TO_PURGE = sql(
    "SELECT DISTINCT company_id FROM label_batches WHERE created_at < now() - make_interval(days => $1)",
    crosses="the worker looks for old files over all companies, then purges them company by company",
)

PURGE = sql("DELETE FROM label_batches WHERE company_id = $1 AND created_at < now() - make_interval(days => $2)")


async def get_batch(db: Connection, company_id: int, id: str) -> LabelBatch:
    found = await GET.find(db, company_id, id)
    if found is None:
        raise NotFound
    return found


async def insert_batch(tx: Tx, company_id: int, id: str, body: LabelBatchIn, ids: Sequence[str]) -> LabelBatch:
    (created,) = await INSERT.all(tx, company_id, id, body.document, body.format, body.source, ids)
    announce_due(tx, BATCHES)
    return created


async def list_waiting(db: Connection) -> list[WaitingBatch]:
    """The longest waiting of each company first."""
    return await LIST_WAITING.all(db)


async def claim(tx: Tx, company_id: int, id: str, holder: str) -> PrintJob | None:
    """None while another worker holds it."""
    return await CLAIM.find(tx, company_id, id, holder, HOLD_SECONDS)


async def free(tx: Tx, processes: Sequence[str]) -> None:
    """Lets other workers make the files of those that died."""
    await FREE.run(tx, processes)


async def release(tx: Tx, company_id: int, id: str, holder: str) -> bool:
    """For another attempt; False after the last one."""
    return bool(await RELEASE.run(tx, company_id, id, holder, MAX_ATTEMPTS))


async def finish(tx: Tx, company_id: int, id: str, holder: str, error: str | None, size: int | None) -> bool:
    """False if another worker has taken it over."""
    return bool(await FINISH.run(tx, company_id, id, holder, error, size))


async def insert_file(tx: Tx, company_id: int, id: str, content: bytes) -> None:
    for number, start in enumerate(range(0, len(content), CHUNK)):
        await INSERT_CHUNK.run(tx, company_id, id, number, content[start : start + CHUNK])


async def read_file(db: Connection, company_id: int, id: str) -> bytes:
    content: bytes | None = await READ_FILE.value(db, company_id, id)
    return content or b""


async def list_companies_to_purge(db: Connection) -> list[int]:
    return [row[0] for row in await db.fetch(COMPANIES_TO_PURGE.text, DAYS_KEPT)]


async def purge(tx: Tx, company_id: int) -> None:
    await PURGE.run(tx, company_id, DAYS_KEPT)
