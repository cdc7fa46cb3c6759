"""Processes stored callbacks: every item once, in the order of its connection."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import takewhile

import structlog
from msgspec import Struct
from msgspec.structs import replace

from sapa.access.actions import get_company
from sapa.access.types import CompanyClock
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import BUSY, RETRYABLE, Tx
from sapa.db.wakeups import Wakeup
from sapa.messaging.channels.interface import (
    Item,
    StatusReport,
)
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.inbound import queries
from sapa.messaging.inbound.actions import CallbackContext
from sapa.messaging.inbound.items import ProcessItems, process_each, process_together
from sapa.messaging.inbound.parser_process import ParseRequest, describe
from sapa.messaging.inbound.parsers import NotParsed, Parser, Parsers
from sapa.messaging.inbound.queries import CallbackLane, StoredChannelCallback
from sapa.messaging.messages import actions as messages
from sapa.values.company import Company
from sapa.work import leases
from sapa.work.loops import keep_running, wait_for_due

PAUSE_SECONDS = 0.2
LANE_SECONDS = 0.5
LANES_LISTED = 1000
MAX_CONCURRENT_LANES = 3
ITEMS_PER_TRANSACTION = 100
"""A callback with a long history takes several transactions."""
MAX_CLAIMED = 50
MAX_CLAIMED_BYTES = 65_536
"""Callbacks that are claimed together: many, because most have one status. A larger one is claimed alone."""
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

log = structlog.get_logger()


async def process(context: AppContext, stopping: asyncio.Event) -> None:
    """Worker service: any number of workers, one at a time for each connection."""
    processor = CallbackProcessor(context)
    with context.database.wakeups.open(queries.CALLBACKS, PAUSE_SECONDS) as wakeup:
        turns = CompanyTurns(processor, wakeup, stopping)
        try:
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
        room = MAX_CONCURRENT_LANES - len(self._running)
        for lane in waiting[:room]:
            self._turn += 1
            self._served[lane] = self._turn
            self._running[lane] = asyncio.create_task(self._serve(lane))
        await wait_for_due(self._wakeup, self._running, self._stopping)
        if len(waiting) <= room:
            await self._wakeup.gather()

    async def end(self) -> None:
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _serve(self, lane: CallbackLane) -> None:
        end = asyncio.get_running_loop().time() + LANE_SECONDS
        while not self._stopping.is_set() and await self._processor.advance(lane):
            if not self._processor.has_more(lane) or asyncio.get_running_loop().time() > end:
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
    """Processes callbacks in three steps: claim the oldest of a connection and count their try, parse them in a process
    of its own, process their items. No transaction is open while they are parsed, and each is parsed once.

    Callbacks that only report statuses are processed together. When that fails, each of them is tried again alone.
    """

    def __init__(self, context: AppContext, parsers: Parsers | None = None) -> None:
        self.context = context
        self.holder = leases.new_holder()
        self._parsed: dict[CallbackLane, list[ParsedCallback]] = {}
        """Claimed, and waiting for their lane's next turn."""
        self._parsers = parsers or Parsers()
        self._backlogs: set[CallbackLane] = set()

    async def close(self) -> None:
        await self._parsers.close()
        with suppress(DatabaseAway):
            for parsed in self._parsed.values():
                await self._release_lane(parsed)

    def has_more(self, lane: CallbackLane) -> bool:
        """Whether the last step left callbacks that were due."""
        return lane in self._parsed or lane in self._backlogs

    async def advance(self, lane: CallbackLane) -> bool:
        """The next items of the connection's oldest callbacks. False if there are none."""
        try:
            parsed = self._parsed.pop(lane, [])
            if not parsed:
                async with self._parsers.borrow() as parser:  # ready before the lease begins
                    claimed = await self._claim(lane)
                    if not claimed:
                        return False
                    parsed = await self._read(parser, claimed)
            if parsed:
                await self._process(parsed)
        except LeaseLost:
            return False
        except (*RETRYABLE, *BUSY):
            return True
        return True

    async def _claim(self, lane: CallbackLane) -> list[ClaimedCallback]:
        """The next callbacks that can be processed."""
        self._backlogs.discard(lane)
        async with self.context.database.transaction() as tx:
            unfinished = await queries.lease_lane(tx, lane, self.holder, LEASE_SECONDS)
            if unfinished is None:
                return []
            if unfinished:
                await queries.count_tries(tx, lane.company_id, unfinished)
            company = await get_company(tx, lane.company_id)
            connected = await get_environment(company).accounts.find_by_id(
                self.context, tx, company, lane.connection_id
            )
            while callbacks := await queries.claim_next(tx, lane, MAX_CLAIMED, MAX_CLAIMED_BYTES):
                if callbacks[0].due > len(callbacks):
                    self._backlogs.add(lane)
                if connected is None:
                    for callback in callbacks:
                        await queries.set_aside(tx, company.id, callback.id, "The channel is no longer connected.")
                elif callbacks[0].tries > MAX_BUSY_TRIES:
                    error = callbacks[0].error or f"It was started {MAX_BUSY_TRIES} times and never finished."
                    await queries.set_aside(tx, company.id, callbacks[0].id, error)
                else:
                    return [ClaimedCallback(lane, callback, company, connected) for callback in callbacks]
            await queries.release_lane(tx, lane, self.holder)
            return []

    async def _read(self, parser: Parser, claimed: Sequence[ClaimedCallback]) -> list[ParsedCallback]:
        """Nothing if one of them cannot be parsed."""
        try:
            contents = await parser.read_all([_build_request(each) for each in claimed])
        except NotParsed as failure:
            await self._fail(claimed, str(failure), MAX_TRIES)
            return []
        parsed = []
        for each, items in zip(claimed, contents, strict=True):
            error = each.callback.error if each.callback.position else None
            parsed.append(ParsedCallback(each, items, each.callback.position, error))
        return parsed

    async def _process(self, parsed: Sequence[ParsedCallback]) -> None:
        """The first ones, as far as they are processed together. The others are kept for the next turn."""
        together = list(takewhile(_has_only_reports, parsed))
        try:
            rest = await self._store(parsed, len(together))
        except (LeaseLost, DatabaseAway):
            raise
        except Exception as failure:
            if len(together) <= 1 and not isinstance(failure, (*RETRYABLE, *BUSY)):
                raise
            await self._fail([each.claimed for each in parsed], describe(failure), MAX_BUSY_TRIES)
            return
        if rest and len(self._parsed) < MAX_KEPT:
            self._parsed[rest[0].claimed.lane] = rest
        elif rest:
            await self._release_lane(rest)

    async def _store(self, parsed: Sequence[ParsedCallback], together: int) -> list[ParsedCallback]:
        """What is left afterwards. Savepoints cost two round trips for each item, so they are set only after an item
        has failed, and only for a callback that is processed alone."""
        transact = self.context.database.transact
        if together > 1:
            return await transact(lambda tx: self._store_reports(tx, parsed[:together], list(parsed[together:])))
        try:
            return await transact(lambda tx: self._process_batch(tx, parsed[0], list(parsed[1:]), process_together))
        except (LeaseLost, DatabaseAway, *RETRYABLE, *BUSY):
            raise
        except Exception:
            return await transact(lambda tx: self._process_batch(tx, parsed[0], list(parsed[1:]), process_each))

    async def _store_reports(
        self, tx: Tx, parsed: Sequence[ParsedCallback], rest: list[ParsedCallback]
    ) -> list[ParsedCallback]:
        """Callbacks that only report statuses."""
        claimed = parsed[0].claimed
        company, source = claimed.company, claimed.connected.connection.source
        now = (await self._extend_lease(tx, claimed.lane)).now
        reports = [item for each in parsed for item in each.items if isinstance(item, StatusReport)]
        is_early = iter(await messages.receive_reports(tx, company, source, reports, now))
        done = {}
        for each in parsed:
            callback, early = each.claimed.callback, [next(is_early) for _ in each.items]
            if any(early) and callback.postponements < MAX_POSTPONEMENTS:
                await _postpone(tx, each.claimed)
            else:
                done[callback.id] = len(each.items)
        await queries.finish(tx, claimed.lane, self.holder, done, _list_ids(rest))
        return rest

    async def _process_batch(
        self, tx: Tx, parsed: ParsedCallback, rest: list[ParsedCallback], process_items: ProcessItems
    ) -> list[ParsedCallback]:
        claimed, items, end = parsed.claimed, parsed.items, parsed.position + ITEMS_PER_TRANSACTION
        company, callback = claimed.company, claimed.callback
        now = (await self._extend_lease(tx, claimed.lane)).now
        callback_context = CallbackContext(self.context, company, claimed.connected, now)
        is_last_try = callback.postponements >= MAX_POSTPONEMENTS
        is_early, failure = await process_items(tx, callback_context, items[parsed.position : end], is_last_try)
        error = failure or parsed.error
        if is_early and not is_last_try:
            await _postpone(tx, claimed)
        elif end < len(items):
            await queries.record_progress(tx, company.id, callback.id, end, error)
            return [replace(parsed, position=end, error=error), *rest]
        elif error is not None:
            await _record_failure(tx, claimed, error, MAX_TRIES)
        else:
            await queries.finish(tx, claimed.lane, self.holder, {callback.id: len(items)}, _list_ids(rest))
            return rest
        await queries.release_lane(tx, claimed.lane, self.holder)
        return []

    async def _fail(self, claimed: Sequence[ClaimedCallback], error: str, max_tries: int) -> None:
        """One that failed alone is tried again later, and several at once, each of them alone: their try counts."""
        async with self.context.database.transaction() as tx:
            await self._extend_lease(tx, claimed[0].lane)
            if len(claimed) == 1:
                await _record_failure(tx, claimed[0], error, max_tries)
            else:
                await queries.count_tries(tx, claimed[0].company.id, [each.callback.id for each in claimed])
            await queries.release_lane(tx, claimed[0].lane, self.holder)

    async def _release_lane(self, parsed: Sequence[ParsedCallback]) -> None:
        """The callbacks continue later where they stopped, perhaps on another worker."""
        lane = parsed[0].claimed.lane
        async with self.context.database.transaction() as tx:
            await queries.release_lane(tx, lane, self.holder)

    async def _extend_lease(self, tx: Tx, lane: CallbackLane) -> CompanyClock:
        clock = await queries.extend_lease(tx, lane, self.holder, LEASE_SECONDS)
        if clock is None:
            raise LeaseLost
        return clock


def _build_request(claimed: ClaimedCallback) -> ParseRequest:
    connection = claimed.connected.connection
    return ParseRequest(connection.source, connection.account, claimed.callback.body)


def _list_ids(parsed: Sequence[ParsedCallback]) -> list[int]:
    return [each.claimed.callback.id for each in parsed]


def _has_only_reports(parsed: ParsedCallback) -> bool:
    return parsed.claimed.callback.tries == 1 and all(isinstance(item, StatusReport) for item in parsed.items)


async def _postpone(tx: Tx, claimed: ClaimedCallback) -> None:
    callback = claimed.callback
    await queries.postpone(tx, claimed.company.id, callback.id, timedelta(seconds=2.0**callback.postponements))


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
