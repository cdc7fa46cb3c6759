"""Replaces the key of stored secrets: seals all of them with the first key of SAPA_SECRET_KEY, batch by batch."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog
from msgspec import Struct

from sapa.db.pool import Connection, Database, Tx
from sapa.values.sealing import ProbeVault, ResealedBatch, Vault
from sapa.work import queries
from sapa.work.types import Rotation

BATCH = 200
PAUSE_SECONDS = 0.01
"""Between batches, so that ordinary work is not slowed down."""
RUN_SECONDS = 20.0

log = structlog.get_logger()


class SealedTable(Struct, frozen=True):
    """A table with sealed values, and the action that seals a company's next ones with the current key."""

    name: str
    """Stored with the progress. Tables are worked through in the order of their names."""
    reseal: Callable[[Tx, Vault, int, str, int], Awaitable[ResealedBatch]]


async def start(tx: Tx, vault: Vault) -> Rotation:
    """Requests that the worker seals everything with the current key. A rotation that is under way goes on."""
    await queries.start_rotation(tx, vault.key_id)
    rotation = await queries.find_rotation(tx)
    assert rotation is not None  # noqa: S101 - just inserted
    return rotation


async def find(db: Connection) -> Rotation | None:
    """The last rotation."""
    return await queries.find_rotation(db)


async def reseal_requested(database: Database, tables: Sequence[SealedTable], vault: Vault) -> None:
    """The worker's job."""
    deadline = time.monotonic() + RUN_SECONDS
    async with database.connection() as db:
        rotation = await queries.find_rotation(db)
    if rotation is None or rotation.finished_at is not None:
        return
    if rotation.key_id != vault.key_id:
        log.warning("secrets not sealed anew: the first key of SAPA_SECRET_KEY is another", key_id=rotation.key_id)
        return
    is_left = True
    while is_left and time.monotonic() < deadline:
        is_left = await reseal_batch(database, tables, vault)
        await asyncio.sleep(PAUSE_SECONDS)


async def reseal_batch(database: Database, tables: Sequence[SealedTable], vault: Vault) -> bool:
    """Seals the next values and stores the progress in the same transaction. False if nothing is left."""
    return await database.transact(partial(_reseal_batch, sorted(tables, key=lambda table: table.name), vault))


async def _reseal_batch(tables: Sequence[SealedTable], vault: Vault, tx: Tx) -> bool:
    rotation = await queries.find_unfinished_rotation(tx, vault.key_id)
    if rotation is None:
        return False
    remaining = [table for table in tables if table.name >= rotation.sealed_table]
    company_id = await queries.find_company_from(tx, rotation.company_id)
    if company_id is not None and remaining:
        await _reseal_next(tx, vault, rotation, remaining[0], company_id)
    elif len(remaining) > 1:
        await queries.advance_rotation(tx, vault.key_id, remaining[1].name, 0, "", 0, 0)
    else:
        await queries.finish_rotation(tx, vault.key_id)
        return False
    return True


async def _reseal_next(tx: Tx, vault: Vault, rotation: Rotation, table: SealedTable, company_id: int) -> None:
    after = rotation.position if company_id == rotation.company_id else ""
    batch = await table.reseal(tx, vault, company_id, after, BATCH)
    next_company, position = (company_id, batch.last) if batch.last else (company_id + 1, "")
    await queries.advance_rotation(
        tx, vault.key_id, table.name, next_company, position, len(batch.sealed), batch.unreadable
    )


async def probe(database: Database, tables: Sequence[SealedTable], vault: ProbeVault, seconds: float) -> bool:
    """Tries to open all stored secrets; the vault counts them. False if the time was over before the last one."""
    deadline = time.monotonic() + seconds
    company_id = 0
    while (found := await _find_company_after(database, company_id)) is not None:
        company_id = found
        for table in tables:
            if not await _probe_table(database, table, vault, company_id, deadline):
                return False
    return True


async def _find_company_after(database: Database, company_id: int) -> int | None:
    async with database.connection() as db:
        return await queries.find_company_from(db, company_id + 1)


async def _probe_table(
    database: Database, table: SealedTable, vault: ProbeVault, company_id: int, deadline: float
) -> bool:
    position = ""
    while time.monotonic() < deadline:
        async with database.transaction() as tx:
            position = (await table.reseal(tx, vault, company_id, position, BATCH)).last
        if not position:
            return True
    return False
