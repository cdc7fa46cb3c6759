"""Settings of the planner for statements whose statistics lag behind a large import, and whether the database is
sharded."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sapa.db.pool import Connection, Tx
from sapa.db.queries import IS_SHARDED, SWITCH_SCANS, SWITCH_SORTING


@asynccontextmanager
async def without_sorting(tx: Tx) -> AsyncIterator[None]:
    """Plans no sort inside the block, so that only an index in the requested order fits. After an error the
    transaction's rollback restores the setting."""
    await SWITCH_SORTING.value(tx, "off")
    yield
    await SWITCH_SORTING.value(tx, "on")


@asynccontextmanager
async def without_searching(tx: Tx) -> AsyncIterator[None]:
    """Plans no scan inside the block but that of row addresses (`ctid = ANY(…)`). The transaction has locked the rows,
    so they stay where they are."""
    await SWITCH_SCANS.value(tx, "off")
    yield
    await SWITCH_SCANS.value(tx, "on")


async def is_sharded(db: Connection) -> bool:
    """Whether the companies are spread over several machines."""
    return bool(await IS_SHARDED.value(db))
