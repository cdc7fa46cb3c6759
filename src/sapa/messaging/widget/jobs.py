"""Purges expired data of the web chat."""

from collections.abc import Awaitable, Callable

from sapa.db.pool import Database, Tx
from sapa.messaging.widget import queries as widget
from sapa.messaging.widget.visits import SESSION_DAYS

_BATCH = 5_000


async def purge_old(database: Database) -> None:
    """Worker job: past minutes of the rate limits, unused sessions, and visitors without messages."""
    async with database.transaction() as tx:
        await widget.purge_windows(tx)
    await _purge_all(database, widget.purge_sessions)
    await _purge_all(database, widget.purge_visitors)


async def _purge_all(database: Database, purge: Callable[[Tx, int, int], Awaitable[int]]) -> None:
    gone = _BATCH
    while gone == _BATCH:
        async with database.transaction() as tx:
            gone = await purge(tx, SESSION_DAYS, _BATCH)
