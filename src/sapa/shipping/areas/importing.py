"""The installation's dictionary of places: how it is brought in."""

from collections.abc import Callable, Sequence

from sapa.db.pool import Connection, Tx
from sapa.shipping.areas import queries
from sapa.shipping.areas.files import AreaFile
from sapa.shipping.areas.types import AreaDataset, AreaImport, AreaRow

TAKEN_AT_ONCE = 5_000
_SHOWN = 20

Show = Callable[[int], None]
"""Told how many places have arrived."""


async def import_areas(tx: Tx, file: AreaFile, rows: Sequence[AreaRow], show: Show) -> AreaImport:
    """The dictionary is what the file says; what it no longer has is retired. The same file again changes nothing."""
    await queries.take_turn(tx)
    latest = await queries.find_latest_dataset(tx)
    if latest is not None and latest.sha512 == file.sha512:
        return AreaImport(latest, was_known=True)
    await queries.clear_arrivals(tx)
    created, updated = await _take_in(tx, rows, show)
    retired = await queries.retire_vanished(tx)
    await queries.clear_arrivals(tx)
    dataset = await queries.insert_dataset(tx, file.name, file.sha512, len(rows))
    return AreaImport(dataset, was_known=False, created=created, updated=updated, retired=retired)


async def list_datasets(db: Connection) -> list[AreaDataset]:
    """The latest first."""
    return await queries.list_datasets(db, _SHOWN)


async def _take_in(tx: Tx, rows: Sequence[AreaRow], show: Show) -> tuple[int, int]:
    """Part by part, so that no statement takes long; how many are new, and how many are another now."""
    created = updated = 0
    for start in range(0, len(rows), TAKEN_AT_ONCE):
        batch = rows[start : start + TAKEN_AT_ONCE]
        changes = await queries.take_in(tx, batch)
        created, updated = created + changes.created, updated + changes.updated
        show(start + len(batch))
    return created, updated
