"""Importing the installation's dictionary of areas."""

from collections.abc import Callable, Sequence

from sapa.db.pool import Connection, Database, Tx
from sapa.shipping.areas import queries
from sapa.shipping.areas.files import AreaFile
from sapa.shipping.areas.search import is_tolerant, list_spellings, split_words
from sapa.shipping.areas.types import AreaDataset, AreaImport, AreaRow, AreaWords
from sapa.shipping.carriers.interface import AreaPath

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
    await _index_all(tx)
    dataset = await queries.insert_dataset(tx, file.name, file.sha512, len(rows))
    return AreaImport(dataset, was_known=False, created=created, updated=updated, retired=retired)


async def index_missing(database: Database) -> None:
    """Indexes a dictionary that was imported before it could be searched. It can be stopped between two batches."""
    async with database.connection() as db:
        is_done = await queries.is_indexed(db)
    while not is_done:
        async with database.transaction() as tx:
            await queries.lock_changes(tx)
            is_done = not await _index_batch(tx)


async def _index_all(tx: Tx) -> None:
    await queries.clear_index(tx)
    while await _index_batch(tx):
        pass


async def _index_batch(tx: Tx) -> bool:
    """Makes the next sub-districts searchable: their words, and the spellings of these. False after the last ones."""
    paths = await queries.list_unindexed(tx, BATCH)
    if paths:
        words = [build_words(path) for path in paths]
        vocabulary = {word for entry in words for text in entry[1:] for word in text.split()}
        spellings = [(spelling, word) for word in vocabulary if is_tolerant(word) for spelling in list_spellings(word)]
        await queries.insert_words(tx, words)
        await queries.insert_spellings(tx, spellings)
    return bool(paths)


def build_words(path: AreaPath) -> AreaWords:
    own, district, city, province = (" ".join(split_words(name)) for name in path.names)
    return AreaWords(int(path.sub_district_id), f"{own} {path.zip or ''}".strip(), district, city, province)


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
