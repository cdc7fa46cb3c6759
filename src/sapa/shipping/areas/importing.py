"""Importing the installation's dictionary of areas."""

from collections.abc import Callable, Sequence

from sapa.db.pool import Connection, Tx
from sapa.shipping.areas import queries
from sapa.shipping.areas.files import AreaFile
from sapa.shipping.areas.types import AreaDataset, AreaImport, AreaRow

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
    dataset = await queries.insert_dataset(tx, file.name, file.sha512, len(rows))
    return AreaImport(dataset, was_known=False, created=created, updated=updated, retired=retired)


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
