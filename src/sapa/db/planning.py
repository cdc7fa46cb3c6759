"""Keeps the planner to the intended index while statistics lag behind a large import."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sapa.db.pool import Tx
from sapa.db.queries import SWITCH_SORTING


@asynccontextmanager
async def without_sorting(tx: Tx) -> AsyncIterator[None]:
    """Plans no sort inside the block, so that only an index in the requested order fits. After an error the
    transaction's rollback restores the setting."""
    await SWITCH_SORTING.value(tx, "off")
    yield
    await SWITCH_SORTING.value(tx, "on")
