"""Deletes files that nobody uses, makes thumbnails, and moves files to the bucket."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections import defaultdict
from contextlib import suppress

import structlog

from sapa.context import AppContext
from sapa.messaging.files import actions, queries
from sapa.messaging.files.stores import BucketStore
from sapa.messaging.files.types import FileKey, FileUnavailable
from sapa.outbound.bucket import BucketFailed
from sapa.work.loops import repeat, repeat_when_due

PURGE_SECONDS = 30.0
CHECK_AGE_SECONDS = 86_400.0
BATCH = 200
CHECK_BATCH = 2_000
THUMBNAIL_PAUSE_SECONDS = 1.0
MAX_THUMBNAIL_TRIES = 5
THUMBNAIL_SECONDS = 60.0
"""Longer than making one may take; then it is tried again."""
PROCESS_SECONDS = 30.0
THUMBNAIL_MODULE = "sapa.messaging.files.thumbnails"
"""Not imported: no other process needs the library that decodes images."""
MOVE_SECONDS = 10.0

log = structlog.get_logger()


async def purge(context: AppContext, stopping: asyncio.Event) -> None:
    """Worker service. Several workers may purge the same file at once: that deletes it no less."""

    async def step() -> bool:
        await check_use(context)
        async with context.database.transaction() as tx:
            await queries.purge_windows(tx)
        return await purge_expired(context)

    await repeat(step, stopping, every=PURGE_SECONDS)


async def purge_expired(context: AppContext) -> bool:
    """Deletes a batch of files whose time is over. True if there are more."""
    async with context.database.connection() as db:
        expired = await queries.list_expired(db, BATCH)
    deleted = [await _delete(context, key) for key in expired]
    return len(expired) == BATCH and any(deleted)


async def _delete(context: AppContext, key: FileKey) -> bool:
    """The content first: a file whose row is gone could not be found again. Whatever stops this, the row is found at
    the next run."""
    async with context.database.connection() as db:
        file = await queries.mark_deleting(db, key)
    if file is None:
        return False
    if context.bucket is not None:  # also for a file that was being moved there
        try:
            await BucketStore(context.bucket).delete(key.company_id, key.id)
        except BucketFailed as error:
            log.warning("file not deleted", company_id=key.company_id, file_id=key.id, reason=str(error))
            return False
    elif file.storage == "bucket":
        log.warning("file not deleted", company_id=key.company_id, file_id=key.id, reason="SAPA_FILES_URL is not set")
        return False
    async with context.database.transaction() as tx:
        await queries.delete(tx, key)
    return True


async def check_use(context: AppContext) -> None:
    """Files go with their messages: once a day each file is checked for a message that has it."""
    async with context.database.connection() as db:
        unchecked = await queries.list_unchecked(db, CHECK_AGE_SECONDS, CHECK_BATCH)
    by_company = defaultdict(list)
    for key in unchecked:
        by_company[key.company_id].append(key.id)
    for company_id, ids in by_company.items():
        async with context.database.transaction() as tx:
            await queries.check_use(tx, company_id, ids)


async def make_thumbnails(context: AppContext, stopping: asyncio.Event) -> None:
    """Worker service. One image at a time, each in a process of its own."""

    async def step() -> bool:
        async with context.database.connection() as db:
            waiting = await queries.list_without_thumbnail(db, 1)
        for key in waiting:
            await _make_thumbnail(context, key)
        return bool(waiting)

    await repeat_when_due(context.database, queries.THUMBNAILS, step, stopping, pause=THUMBNAIL_PAUSE_SECONDS)


async def _make_thumbnail(context: AppContext, key: FileKey) -> None:
    async with context.database.connection() as db:
        file = await queries.claim_thumbnail(db, key, MAX_THUMBNAIL_TRIES, THUMBNAIL_SECONDS)
    if file is None or file.thumbnail != "waiting":
        return
    try:
        content = await actions.read_content(context, key.company_id, file)
    except FileUnavailable as error:
        log.warning("thumbnail not made", company_id=key.company_id, file_id=key.id, reason=error.message)
        return
    thumbnail = await _run_process(content)
    async with context.database.transaction() as tx:
        await queries.settle_thumbnail(tx, key, thumbnail)


async def _run_process(content: bytes) -> bytes | None:
    """None if the image cannot be read within the limits. The process gets none of our settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SAPA_")}
    command = [sys.executable, "-m", THUMBNAIL_MODULE]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment)
    try:
        async with asyncio.timeout(PROCESS_SECONDS):
            output, _ = await process.communicate(content)
    except BaseException as error:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            return None
        raise
    return output if process.returncode == 0 else None


async def move_to_bucket(context: AppContext, stopping: asyncio.Event) -> None:
    """Worker service. With a bucket, files that are still in the database are moved there: those from before, and
    attachments of mail, which are stored with their mail."""

    async def step() -> bool:
        if context.bucket is None:
            return False
        async with context.database.connection() as db:
            movable = await queries.list_movable(db, BATCH)
        moved = [await _move(context, BucketStore(context.bucket), key) for key in movable]
        return len(movable) == BATCH and any(moved)

    await repeat(step, stopping, every=MOVE_SECONDS)


async def _move(context: AppContext, bucket: BucketStore, key: FileKey) -> bool:
    """Copied first, then deleted here: a reader finds the file at every moment."""
    async with context.database.connection() as db:
        file = await queries.find_file(db, key.company_id, key.id)
    if file is None or file.storage != "database" or file.status != "stored":
        return False
    try:
        written = await actions.write(
            bucket, key.company_id, key.id, actions.open_content(context, key.company_id, file)
        )
    except FileUnavailable as error:
        log.warning("file not moved", company_id=key.company_id, file_id=key.id, reason=error.message)
        return False
    async with context.database.transaction() as tx:
        is_moved = await queries.move(tx, key, written.parts)
    if not is_moved:
        await _delete_copy(context, bucket, key)
    return is_moved


async def _delete_copy(context: AppContext, bucket: BucketStore, key: FileKey) -> None:
    """Of a file that was deleted while it was copied. A file that another worker moved stays."""
    async with context.database.connection() as db:
        file = await queries.find_file(db, key.company_id, key.id)
    if file is None:
        with suppress(BucketFailed):
            await bucket.delete(key.company_id, key.id)
