"""The worker makes backups on a schedule, in a process of its own: it may take hours."""

import asyncio
import sys
from functools import partial

import structlog

from sapa.backups import queries
from sapa.backups.storage import hide_secret
from sapa.backups.types import BackupState
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.work import leases
from sapa.work.loops import repeat

LEASE = "make backups"
LEASE_SECONDS = 60.0
RENEW_SECONDS = 10.0
LOOK_SECONDS = 30.0
RETRY_SECONDS = 3600.0
"""After a backup that failed."""

log = structlog.get_logger()


async def make_backups(context: AppContext, stopping: asyncio.Event) -> None:
    """Worker service. One worker at a time makes a backup."""
    if context.settings.backups.url is None:
        await stopping.wait()
        return
    await repeat(partial(_make_if_due, context, leases.new_holder(), stopping), stopping, every=LOOK_SECONDS)


async def _make_if_due(context: AppContext, holder: str, stopping: asyncio.Event) -> None:
    async with context.database.connection() as db:
        if await leases.take(db, LEASE, holder, LEASE_SECONDS) is None:
            return
        state = await queries.get_state(db)
    if not is_due(state, context.settings.backups.every_hours * 3600.0):
        return
    failure = await _run_command(context, holder, stopping)
    if failure is None:
        log.info("backup made")
    elif not stopping.is_set() and await _renew(context, holder):  # otherwise another worker makes it
        log.error("backup failed", reason=failure)
        await _record_failure(context, state, failure)


async def _record_failure(context: AppContext, before: BackupState, failure: str) -> None:
    """Unless the command has recorded it: one that does not reach the database as its owner cannot."""
    place = hide_secret(context.settings.backups.url or "")
    async with context.database.connection() as db:
        if (await queries.get_state(db)).last == before.last:
            await queries.insert_failed(db, place, failure)


def is_due(state: BackupState, every_seconds: float) -> bool:
    if state.last is not None and state.last.status == "failed" and state.since_last_seconds is not None:
        return state.since_last_seconds >= min(RETRY_SECONDS, every_seconds)
    return state.age_seconds is None or state.age_seconds >= every_seconds


async def _renew(context: AppContext, holder: str) -> bool:
    """False if another worker has the lease. A database that is away for a moment ends no backup."""
    try:
        async with context.database.connection() as db:
            return await leases.take(db, LEASE, holder, LEASE_SECONDS) is not None
    except DatabaseAway:
        return True


async def _run_command(context: AppContext, holder: str, stopping: asyncio.Event) -> str | None:
    """The environment names the place, the passphrase, the secret key and the owner's role. Returns why it failed."""
    command = ["-m", "sapa", "backup", "create", "--json", "--keep", str(context.settings.backups.most)]
    child = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, stop = asyncio.create_task(child.communicate()), asyncio.create_task(stopping.wait())
    try:
        while not output.done() and not stop.done():
            await asyncio.wait([output, stop], timeout=RENEW_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not await _renew(context, holder):
                break
    finally:
        stop.cancel()
        if child.returncode is None:
            child.terminate()
    _, text = await output
    if not child.returncode:
        return None
    reason = text.decode(errors="replace").strip().removeprefix("sapa: ")
    return reason[-500:] or f"`sapa backup` ended with {child.returncode}."
