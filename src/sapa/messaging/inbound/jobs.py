"""Processes stored callbacks: every item once, in the order of its connection."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta

import structlog
from msgspec import Struct
from msgspec.structs import replace

from sapa.access.actions import get_company, read_clock
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import BUSY, RETRYABLE, Tx
from sapa.db.wakeups import Wakeup
from sapa.messaging.channel_events import actions as channel_events
from sapa.messaging.channel_status import actions as channel_status
from sapa.messaging.channels.account_reports import AccountReport
from sapa.messaging.channels.interface import (
    ChannelNotice,
    Item,
    MessageAmendment,
    NumberChanged,
    ReceivedItem,
    StatusReport,
    TemplateVerdict,
)
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.inbound import actions, queries
from sapa.messaging.inbound.actions import CallbackContext
from sapa.messaging.inbound.parser_process import ParseRequest, describe
from sapa.messaging.inbound.parsers import NotParsed, Parser, Parsers
from sapa.messaging.inbound.queries import CallbackLane, StoredChannelCallback
from sapa.messaging.messages import actions as messages
from sapa.messaging.templates import actions as templates
from sapa.values.company import Company
from sapa.work import leases
from sapa.work.loops import keep_running, wait_for_due

PAUSE_SECONDS = 0.2
LANE_SECONDS = 0.5
LANES_LISTED = 1000
MAX_CONCURRENT_LANES = 3
ITEMS_PER_TRANSACTION = 100
"""A callback with a long history takes several transactions."""
LEASE_SECONDS = 20.0
"""Longer than parsing may take. When a worker dies, its lanes wait for this long."""
MAX_TRIES = 3
MAX_BUSY_TRIES = 10
"""While the database is busy, which is not the callback's fault."""
LONGEST_PAUSE_SECONDS = 60.0
MAX_POSTPONEMENTS = 5
RESTART_SECONDS = 1.0
MAX_KEPT = 8
"""Parsed callbacks that wait for their connection's next turn."""

ProcessItems = Callable[[Tx, CallbackContext, Sequence[Item], bool], Awaitable[tuple[bool, str | None]]]

log = structlog.get_logger()


async def process(context: AppContext, stopping: asyncio.Event) -> None:
    """Worker service: any number of workers, one at a time for each connection."""
    processor = CallbackProcessor(context)
    with context.database.wakeups.open(queries.CALLBACKS, PAUSE_SECONDS) as wakeup:
        turns = CompanyTurns(processor, wakeup, stopping)
        try:
            await processor.warm_up()
            await keep_running("inbound", turns.start_waiting, stopping, pause=RESTART_SECONDS)
        finally:
            await turns.end()
            await processor.close()


async def free_lanes(tx: Tx, processes: Sequence[str]) -> None:
    """Those of workers that died."""
    await queries.free_lanes(tx, processes)


class CompanyTurns:
    """Schedules connections fairly, so that one with a long backlog does not block others: a few run at once, each for
    a limited time, and the one that has waited longest is next."""

    def __init__(self, processor: "CallbackProcessor", wakeup: Wakeup, stopping: asyncio.Event) -> None:
        self._processor = processor
        self._wakeup = wakeup
        self._stopping = stopping
        self._running: dict[CallbackLane, asyncio.Task[None]] = {}
        self._served: dict[CallbackLane, int] = {}
        self._turn = 0

    async def start_waiting(self) -> None:
        """Starts as many waiting connections as there is room for, then waits until one is done or new callbacks may be
        there."""
        self._wakeup.begin()
        async with self._processor.context.database.connection() as db:
            due = await queries.list_lanes(db, self._processor.holder, LANES_LISTED)
        self._served = {lane: self._served[lane] for lane in due if lane in self._served}
        waiting = sorted(
            (lane for lane in due if lane not in self._running), key=lambda lane: self._served.get(lane, 0)
        )
        for lane in waiting[: MAX_CONCURRENT_LANES - len(self._running)]:
            self._turn += 1
            self._served[lane] = self._turn
            self._running[lane] = asyncio.create_task(self._serve(lane))
        await wait_for_due(self._wakeup, self._running, self._stopping)

    async def end(self) -> None:
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _serve(self, lane: CallbackLane) -> None:
        end = asyncio.get_running_loop().time() + LANE_SECONDS
        while not self._stopping.is_set() and await self._processor.advance(lane):
            if asyncio.get_running_loop().time() > end:
                return


class ClaimedCallback(Struct, frozen=True):
    """A callback that this worker processes, with the account it is for."""

    lane: CallbackLane
    callback: StoredChannelCallback
    company: Company
    connected: ConnectedChannel


class ParsedCallback(Struct, frozen=True):
    claimed: ClaimedCallback
    items: Sequence[Item]
    position: int
    error: str | None
    """Of the last item that failed."""


class LeaseLost(Exception):
    """Another worker took the lane over."""


class CallbackProcessor:
    """Processes callbacks in three steps: claim the oldest of a connection and count the try, parse it in a process of
    its own, process its items. No transaction is open while it is parsed, and it is parsed once."""

    def __init__(self, context: AppContext, parsers: Parsers | None = None) -> None:
        self.context = context
        self.holder = leases.new_holder()
        self._parsers = parsers or Parsers()
        self._parsed: dict[CallbackLane, ParsedCallback] = {}

    async def warm_up(self) -> None:
        async with self._parsers.borrow():
            pass

    async def close(self) -> None:
        await self._parsers.close()
        with suppress(DatabaseAway):
            for parsed in self._parsed.values():
                await self._give_back(parsed.claimed)

    async def advance(self, lane: CallbackLane) -> bool:
        """The next items of the connection's oldest callback. False if there are none."""
        try:
            parsed = self._parsed.pop(lane, None)
            if parsed is None:
                async with self._parsers.borrow() as parser:  # ready before the lease begins
                    claimed = await self._claim(lane)
                    if claimed is None:
                        return False
                    parsed = await self._read(parser, claimed)
            if parsed is not None:
                await self._process(parsed)
        except LeaseLost:
            return False
        except (*RETRYABLE, *BUSY):
            return True
        return True

    async def _claim(self, lane: CallbackLane) -> ClaimedCallback | None:
        """The next callback that can be processed."""
        async with self.context.database.transaction() as tx:
            if not await queries.lease_lane(tx, lane, self.holder, LEASE_SECONDS):
                return None
            company = await get_company(tx, lane.company_id)
            connected = await get_environment(company).accounts.find_by_id(
                self.context, tx, company, lane.connection_id
            )
            while (callback := await queries.claim_next(tx, lane)) is not None:
                if connected is None:
                    await queries.set_aside(tx, company.id, callback.id, "The channel is no longer connected.")
                elif callback.tries > MAX_BUSY_TRIES:
                    error = callback.error or f"It was started {MAX_BUSY_TRIES} times and never finished."
                    await queries.set_aside(tx, company.id, callback.id, error)
                else:
                    return ClaimedCallback(lane, callback, company, connected)
            await queries.release_lane(tx, lane, self.holder)
            return None

    async def _read(self, parser: Parser, claimed: ClaimedCallback) -> ParsedCallback | None:
        connection, callback = claimed.connected.connection, claimed.callback
        try:
            items = await parser.read(ParseRequest(connection.source, connection.account, callback.body))
        except NotParsed as failure:
            await self._fail(claimed, str(failure), MAX_TRIES)
            return None
        return ParsedCallback(claimed, items, callback.position, callback.error if callback.position else None)

    async def _process(self, parsed: ParsedCallback) -> None:
        try:
            rest = await self._store(parsed)
        except (*RETRYABLE, *BUSY) as failure:
            await self._fail(parsed.claimed, describe(failure), MAX_BUSY_TRIES)
            return
        if rest is not None and len(self._parsed) < MAX_KEPT:
            self._parsed[rest.claimed.lane] = rest
        elif rest is not None:
            await self._give_back(rest.claimed)

    async def _store(self, parsed: ParsedCallback) -> ParsedCallback | None:
        """What is left afterwards. Savepoints cost two round trips for each item, so they are set only after an item
        has failed."""
        transact = self.context.database.transact
        try:
            return await transact(lambda tx: self._process_batch(tx, parsed, _process_together))
        except (LeaseLost, DatabaseAway, *RETRYABLE, *BUSY):
            raise
        except Exception:
            return await transact(lambda tx: self._process_batch(tx, parsed, _process_items))

    async def _process_batch(self, tx: Tx, parsed: ParsedCallback, process: ProcessItems) -> ParsedCallback | None:
        claimed, items, end = parsed.claimed, parsed.items, parsed.position + ITEMS_PER_TRANSACTION
        company, callback = claimed.company, claimed.callback
        await self._extend_lease(tx, claimed.lane)
        now = (await read_clock(tx, company.id)).now
        callback_context = CallbackContext(self.context, company, claimed.connected, now)
        is_last_try = callback.postponements >= MAX_POSTPONEMENTS
        is_early, failure = await process(tx, callback_context, items[parsed.position : end], is_last_try)
        error = failure or parsed.error
        if is_early and not is_last_try:
            await queries.postpone(tx, company.id, callback.id, timedelta(seconds=2.0**callback.postponements))
        elif end < len(items):
            await queries.record_progress(tx, company.id, callback.id, end, error)
            return replace(parsed, position=end, error=error)
        elif error is not None:
            await _record_failure(tx, claimed, error, MAX_TRIES)
        else:
            await queries.finish(tx, company.id, callback.id, len(items))
        await queries.release_lane(tx, claimed.lane, self.holder)
        return None

    async def _fail(self, claimed: ClaimedCallback, error: str, max_tries: int) -> None:
        async with self.context.database.transaction() as tx:
            await self._extend_lease(tx, claimed.lane)
            await _record_failure(tx, claimed, error, max_tries)
            await queries.release_lane(tx, claimed.lane, self.holder)

    async def _give_back(self, claimed: ClaimedCallback) -> None:
        """The callback continues later where it stopped, perhaps on another worker."""
        async with self.context.database.transaction() as tx:
            if await queries.extend_lease(tx, claimed.lane, self.holder, LEASE_SECONDS):
                await queries.unclaim(tx, claimed.company.id, claimed.callback.id)
                await queries.release_lane(tx, claimed.lane, self.holder)

    async def _extend_lease(self, tx: Tx, lane: CallbackLane) -> None:
        if not await queries.extend_lease(tx, lane, self.holder, LEASE_SECONDS):
            raise LeaseLost


async def _record_failure(tx: Tx, claimed: ClaimedCallback, error: str, max_tries: int) -> None:
    """Tries again later; after `max_tries` the callback is set aside. Others of its connection go on meanwhile."""
    company_id, callback = claimed.company.id, claimed.callback
    is_last = callback.tries >= max_tries
    log.warning(
        "callback set aside" if is_last else "callback failed",
        company_id=company_id,
        connection_id=claimed.lane.connection_id,
        callback_id=callback.id,
        tries=callback.tries,
        reason=error,
    )
    if is_last:
        await queries.set_aside(tx, company_id, callback.id, error)
    else:
        pause = timedelta(seconds=min(2.0**callback.tries, LONGEST_PAUSE_SECONDS))
        await queries.retry_later(tx, company_id, callback.id, pause, error)


async def _process_together(
    tx: Tx, callback_context: CallbackContext, items: Sequence[Item], is_last_try: bool
) -> tuple[bool, str | None]:
    """Like `_process_items`; a failing item raises."""
    is_early = False
    for item in items:
        is_early |= await _process_item(tx, callback_context, item, is_last_try)
    return is_early, None


async def _process_items(
    tx: Tx, callback_context: CallbackContext, items: Sequence[Item], is_last_try: bool
) -> tuple[bool, str | None]:
    """Whether some items came too early, and the last error. A failing item does not block the others."""
    is_early, error = False, None
    for item in items:
        try:
            async with tx.transaction():
                is_early |= await _process_item(tx, callback_context, item, is_last_try)
        except (DatabaseAway, *RETRYABLE, *BUSY):
            raise
        except Exception as failure:
            connection_id = callback_context.connected.connection.id
            log.exception("callback item failed", company_id=callback_context.company.id, connection_id=connection_id)
            error = describe(failure)
    return is_early, error


async def _process_item(tx: Tx, callback_context: CallbackContext, item: Item, is_last_try: bool) -> bool:
    """Whether it came too early: it may refer to a message that is not stored yet."""
    company, source = callback_context.company, callback_context.connected.connection.source
    match item:
        case StatusReport():
            return await messages.receive_report(tx, company, source, item, callback_context.now)
        case ReceivedItem():
            return await actions.receive_item(tx, callback_context, item)
        case MessageAmendment():
            return await actions.receive_amendment(tx, callback_context, item, is_last_try=is_last_try)
        case NumberChanged():
            await contacts.change_number(tx, company, item)
        case TemplateVerdict():
            await templates.apply_verdict(tx, company, item)
        case ChannelNotice():
            await channel_events.record(tx, company, source, callback_context.connected.connection.id, item)
        case AccountReport():
            await channel_status.receive(tx, company, callback_context.connected, item, callback_context.now)
    return False
