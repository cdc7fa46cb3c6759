"""Processes stored callbacks: every item once, in the order of its connection."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import structlog

from sapa.access.actions import get_company, read_clock
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import BUSY, RETRYABLE, Tx
from sapa.messaging.channels.interface import (
    Item,
    MessageAmendment,
    NumberChanged,
    ReceivedItem,
    StatusReport,
    TemplateVerdict,
)
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.inbound import actions, queries
from sapa.messaging.inbound.actions import CallbackContext
from sapa.messaging.inbound.queries import CallbackLane, StoredChannelCallback
from sapa.messaging.messages import actions as messages
from sapa.messaging.templates import actions as templates
from sapa.work.loops import repeat, wait_for_any

POLL_SECONDS = 0.2
LANE_SECONDS = 0.5
LANES_LISTED = 1000
MAX_CONCURRENT_LANES = 3
ITEMS_PER_TRANSACTION = 100
"""A callback with a long history takes several transactions."""
MAX_TRIES = 5
MAX_ERROR_LENGTH = 1000

log = structlog.get_logger()


async def process(context: AppContext, stopping: asyncio.Event) -> None:
    """Worker service: any number of workers, one at a time for each connection."""
    turns = CompanyTurns(context, stopping)
    try:
        await repeat(turns.start_waiting, stopping)
    finally:
        await turns.end()


class CompanyTurns:
    """Schedules connections fairly, so that one with a long backlog does not block others: a few run at once, each for
    a limited time, and the one that has waited longest is next."""

    def __init__(self, context: AppContext, stopping: asyncio.Event) -> None:
        self._context = context
        self._stopping = stopping
        self._running: dict[CallbackLane, asyncio.Task[None]] = {}
        self._served: dict[CallbackLane, int] = {}
        self._turn = 0

    async def start_waiting(self) -> None:
        """Starts as many waiting connections as there is room for, then waits until one is done or new callbacks may be
        there."""
        async with self._context.database.connection() as db:
            due = await queries.list_lanes(db, LANES_LISTED)
        self._served = {lane: self._served[lane] for lane in due if lane in self._served}
        waiting = sorted(
            (lane for lane in due if lane not in self._running), key=lambda lane: self._served.get(lane, 0)
        )
        for lane in waiting[: MAX_CONCURRENT_LANES - len(self._running)]:
            self._turn += 1
            self._served[lane] = self._turn
            self._running[lane] = asyncio.create_task(self._serve(lane))
        await wait_for_any(self._running, POLL_SECONDS, self._stopping)

    async def end(self) -> None:
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _serve(self, lane: CallbackLane) -> None:
        end = asyncio.get_running_loop().time() + LANE_SECONDS
        while not self._stopping.is_set() and await advance(self._context, lane):
            if asyncio.get_running_loop().time() > end:
                return


async def advance(context: AppContext, lane: CallbackLane) -> bool:
    """One transaction: the next items of the connection's oldest callback. False if there are none."""
    try:
        async with context.database.transaction() as tx:
            if not await queries.lock_lane(tx, lane):
                return False
            callback = await queries.find_next(tx, lane)
            if callback is None:
                return False
            await _process(context, tx, lane, callback)
            return True
    except (*RETRYABLE, *BUSY):
        return True


async def _process(context: AppContext, tx: Tx, lane: CallbackLane, callback: StoredChannelCallback) -> None:
    company = await get_company(tx, lane.company_id)
    connected = await get_environment(company).accounts.find_by_id(context, tx, company, lane.connection_id)
    if connected is None:
        await queries.record_progress(tx, company.id, callback.id, 0, False, "The channel is no longer connected.")
        return
    try:
        account = connected.connection.account
        items = await asyncio.to_thread(connected.channel.read_callback, account, callback.body)
    except Exception as failure:
        log.exception("callback not parsed", company_id=company.id, connection_id=connected.connection.id)
        await queries.record_progress(tx, company.id, callback.id, 0, False, _describe(failure))
        return
    callback_context = CallbackContext(context, company, connected, (await read_clock(tx, company.id)).now)
    end = callback.position + ITEMS_PER_TRANSACTION
    early, error = await _process_items(tx, callback_context, items[callback.position : end])
    if early and callback.tries < MAX_TRIES:
        await queries.postpone(tx, company.id, callback.id, timedelta(seconds=2.0**callback.tries))
    else:
        await queries.record_progress(tx, company.id, callback.id, min(end, len(items)), end < len(items), error)


async def _process_items(tx: Tx, callback_context: CallbackContext, items: Sequence[Item]) -> tuple[bool, str | None]:
    """Whether some items came too early, and the last error. A failing item does not block the others."""
    is_early, error = False, None
    for item in items:
        try:
            async with tx.transaction():
                is_early |= await _process_item(tx, callback_context, item)
        except (DatabaseAway, *RETRYABLE, *BUSY):
            raise
        except Exception as failure:
            connection_id = callback_context.connected.connection.id
            log.exception("callback item failed", company_id=callback_context.company.id, connection_id=connection_id)
            error = _describe(failure)
    return is_early, error


def _describe(failure: Exception) -> str:
    return (
        f"{type(failure).__name__}: {failure}".replace("\0", "").encode("utf-8", "replace").decode()[:MAX_ERROR_LENGTH]
    )


async def _process_item(tx: Tx, callback_context: CallbackContext, item: Item) -> bool:
    """Whether it came too early: it may refer to a message that is not stored yet."""
    company, source = callback_context.company, callback_context.connected.connection.source
    match item:
        case StatusReport():
            await messages.apply(tx, company, source, item, callback_context.now)
            return await messages.is_early(tx, company, source, item, callback_context.now)
        case ReceivedItem():
            await actions.receive_item(tx, callback_context, item)
        case MessageAmendment():
            await messages.amend(tx, company, source, item)
        case NumberChanged():
            await contacts.change_number(tx, company, item)
        case TemplateVerdict():
            await templates.apply_verdict(tx, company, item)
    return False
