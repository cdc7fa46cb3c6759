"""Importing the installation's dictionary of areas."""

from collections.abc import Callable, Sequence

from sapa.db.pool import Connection, Database, Tx
from sapa.shipping.areas import queries
from sapa.shipping.areas.files import AreaFile
from sapa.shipping.areas.search import is_tolerant, list_spellings, split_words
from sapa.shipping.areas.types import LEVELS, AreaDataset, AreaImport, AreaRow, AreaWords

BATCH = 5_000
_LISTED = 20

ReportProgress = Callable[[int], None]
"""Called with the number of imported areas."""


async def import_areas(tx: Tx, file: AreaFile, rows: Sequence[AreaRow], report: ReportProgress) -> AreaImport:
    """Makes the dictionary equal to the file and retires areas that it no longer has. Importing the same file again
    changes nothing."""
    await queries.lock_changes(tx)
    latest = await queries.find_latest_dataset(tx)
    if latest is not None and latest.sha512 == file.sha512:
        return AreaImport(latest, was_known=True)
    await queries.clear_staging(tx)
    created, updated = await _upsert(tx, rows, report)
    retired = await queries.retire_missing(tx)
    await queries.clear_staging(tx)
    await index_areas(tx, rows)
    dataset = await queries.insert_dataset(tx, file.name, file.sha512, len(rows))
    return AreaImport(dataset, was_known=False, created=created, updated=updated, retired=retired)


async def index_missing(database: Database) -> None:
    """Indexes a dictionary that was imported before it could be searched."""
    async with database.connection() as db:
        if await queries.is_indexed(db):
            return
    async with database.transaction() as tx:
        await queries.lock_changes(tx)
        if not await queries.is_indexed(tx):
            await index_areas(tx, await queries.list_all(tx))


async def index_areas(tx: Tx, rows: Sequence[AreaRow]) -> None:
    """Makes the dictionary searchable: the words of each sub-district, and their spellings."""
    await queries.clear_index(tx)
    words = build_words(rows)
    for start in range(0, len(words), BATCH):
        await queries.insert_words(tx, words[start : start + BATCH])
    vocabulary = {word for entry in words for text in entry[1:] for word in text.split()}
    spellings = [(spelling, word) for word in vocabulary if is_tolerant(word) for spelling in list_spellings(word)]
    await queries.insert_spellings(tx, spellings)


def build_words(rows: Sequence[AreaRow]) -> list[AreaWords]:
    by_code = {row.code: row for row in rows}
    folded = {row.code: " ".join(split_words(row.name)) for row in rows}
    words = []
    for row in rows:
        if row.level != LEVELS["sub-districts"]:
            continue
        district = by_code[row.parent]
        city = by_code[district.parent]
        own = f"{folded[row.code]} {row.zip or district.zip or ''}".strip()
        words.append(AreaWords(row.code, own, folded[district.code], folded[city.code], folded[city.parent]))
    return words


async def list_datasets(db: Connection) -> list[AreaDataset]:
    """Newest first."""
    return await queries.list_datasets(db, _LISTED)


async def _upsert(tx: Tx, rows: Sequence[AreaRow], report: ReportProgress) -> tuple[int, int]:
    """In batches, so that no statement runs long; returns how many are new and how many changed."""
    created = updated = 0
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        changes = await queries.upsert_areas(tx, batch)
        created, updated = created + changes.created, updated + changes.updated
        report(start + len(batch))
    return created, updated
