"""Fetches the files that customers send: bounded in size, retried, stored."""

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial

import structlog

from sapa.access.actions import get_company
from sapa.context import AppContext
from sapa.db.wakeups import Wakeup
from sapa.messaging.channels.interface import BadAccount, InboundMedia
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.files import actions as files
from sapa.messaging.files.types import FILE_ID, FileUnavailable
from sapa.messaging.media import actions, queries
from sapa.messaging.media.actions import MAX_BYTES
from sapa.messaging.media.queries import MediaRow, WaitingFile
from sapa.outbound.client import NotSent, Unclear
from sapa.values.company import Company
from sapa.work.loops import repeat, wait_for_due

MAX_TRIES = 5
CLAIM_SECONDS = 60.0
"""Longer than locating and fetching a file may take."""
PAUSE_SECONDS = 0.5
MAX_CONCURRENT = 6
MAX_PER_COMPANY = 2

log = structlog.get_logger()


async def fetch_waiting(context: AppContext, stopping: asyncio.Event) -> None:
    """Worker service. Fetches several files at once and starts the next one when any of them is done. Another worker
    restarts what is unfinished when this one ends."""
    running: dict[WaitingFile, asyncio.Task[None]] = {}

    async def step(wakeup: Wakeup) -> None:
        wakeup.begin()
        async with context.database.connection() as db:
            waiting = await queries.list_waiting(db, MAX_PER_COMPANY, MAX_CONCURRENT)
        for each in _choose(waiting, running):
            running[each] = asyncio.create_task(_fetch(context, each))
        await wait_for_due(wakeup, running, stopping)

    with context.database.wakeups.open(queries.FILES, PAUSE_SECONDS) as wakeup:
        try:
            await repeat(partial(step, wakeup), stopping)
        finally:
            for task in running.values():
                task.cancel()
            await asyncio.gather(*running.values(), return_exceptions=True)


def _choose(waiting: Sequence[WaitingFile], running: Collection[WaitingFile]) -> Sequence[WaitingFile]:
    """The files to start now. No company takes all the capacity, however slow its files are."""
    busy, chosen = Counter(each.company_id for each in running), list[WaitingFile]()
    for each in waiting:
        has_room = len(running) + len(chosen) < MAX_CONCURRENT and busy[each.company_id] < MAX_PER_COMPANY
        if has_room and each not in running:
            busy[each.company_id] += 1
            chosen.append(each)
    return chosen


async def _fetch(context: AppContext, waiting: WaitingFile) -> None:
    async with context.database.connection() as db:
        row = await queries.claim(db, waiting, CLAIM_SECONDS)
        if row is None:
            return
        company = await get_company(db, waiting.company_id)
        connected = await get_environment(company).accounts.find_by_id(context, db, company, row.connection_id)
    try:
        if connected is None:
            raise BadAccount("the channel is no longer connected")
        media = await _locate(context, company, row)
        _, content = await connected.channel.fetch_media(connected.connection, media, MAX_BYTES)
        if not content:
            raise Unclear("the file is empty")
        await _store(context, company, row, content)
    except (NotSent, Unclear, BadAccount, FileUnavailable) as error:
        await _record_failure(context, company, row, connected.connection.mask(str(error)) if connected else str(error))
    except Exception as error:
        log.exception("file not fetched", company_id=company.id, message_id=row.message_id)
        await _record_failure(context, company, row, type(error).__name__)


async def _store(context: AppContext, company: Company, row: MediaRow, content: bytes) -> None:
    """What the channel says about the file's type is ignored."""
    id = row.file_id or FILE_ID.new()
    written = await files.write_bytes(context, company.id, id, content)
    async with context.database.transaction() as tx:
        file = await files.finish(tx, company.id, id, row.filename, written)
        await actions.settle(tx, company, row, file)
        await actions.refresh_attachments(tx, company, row.message_id)


async def _record_failure(context: AppContext, company: Company, row: MediaRow, error: str) -> None:
    retry_in = None if row.tries >= MAX_TRIES else 5.0**row.tries
    async with context.database.connection() as db:
        await queries.record_failure(db, company.id, row, error, retry_in)


async def _locate(context: AppContext, company: Company, row: MediaRow) -> InboundMedia:
    url = None if row.url is None else await get_environment(company).locate_file(context, row.url)
    return InboundMedia(row.type, row.mime_type, row.media_id, url, row.filename)
