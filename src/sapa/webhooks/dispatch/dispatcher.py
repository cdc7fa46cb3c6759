"""The dispatcher: sends due deliveries to their receivers. Any number of workers run one each.

It finds lanes with due deliveries, leases those that are free, reads deliveries ahead for each, sends them in the
order that `slots` decides, and settles the results in batches. No transaction is open while a receiver responds.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import asyncpg
import structlog

from sapa import traces
from sapa.context import AppContext, ProcessLease
from sapa.db.connection import DatabaseAway
from sapa.db.planning import is_sharded
from sapa.db.pool import Database
from sapa.db.wakeups import Wakeup
from sapa.events import CHANNEL
from sapa.settings import Settings
from sapa.values.sealing import BadSecretKey, Vault
from sapa.webhooks.dispatch import queries
from sapa.webhooks.dispatch.attempt import build_expired, build_internal_failure, build_message, build_result
from sapa.webhooks.dispatch.lanes import queue_transaction
from sapa.webhooks.dispatch.settler import Settler
from sapa.webhooks.dispatch.slots import ActiveLane, Slots, group
from sapa.webhooks.dispatch.types import AttemptResult, DueDelivery, DueLane
from sapa.webhooks.endpoints import actions as endpoints
from sapa.webhooks.endpoints.fields import build_target
from sapa.webhooks.sender import WebhookSender
from sapa.webhooks.types import StoredEndpoint
from sapa.work.leases import new_holder
from sapa.work.loops import keep_running

LEASE_SECONDS = 60.0
POLL_SECONDS = 0.25
"""While it leases lanes."""
FRESH_SECONDS = 0.25
"""How long a URL and its secrets are used before they are read again."""
STOP_SECONDS = 20.0
_LAST_SETTLING_SECONDS = 3.0
_PAUSE_SECONDS = 0.5
_READERS = 2

log = structlog.get_logger()


async def deliver(context: AppContext, stopping: asyncio.Event) -> None:
    if context.sealing is None:
        log.error("webhooks not delivered: SAPA_SECRET_KEY is not set")
        await stopping.wait()
        return
    await Dispatcher(context.database, context.settings, context.sealing, context.lease).run(stopping)


class Dispatcher:
    def __init__(
        self,
        database: Database,
        settings: Settings,
        vault: Vault,
        lease: ProcessLease,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._database = database
        self._lease = lease
        self._vault = vault
        self._address = settings.server.address
        self._lease_seconds = lease_seconds
        self._sender = WebhookSender(settings.webhooks)
        self._owner = new_holder()
        self._lanes: dict[tuple[int, str], ActiveLane] = {}
        self._slots = Slots()
        self._settler = Settler(database, self._owner, self._continue)
        self._to_read: set[ActiveLane] = set()
        self._read_requested = asyncio.Event()
        self._readers = asyncio.Semaphore(_READERS)
        self._sends: set[asyncio.Task[None]] = set()
        self._unreadable: set[str] = set()
        self._is_stopping = False
        self._is_sharded: bool | None = None

    async def run(self, stopping: asyncio.Event) -> None:
        with self._database.wakeups.open(queries.DELIVERIES, POLL_SECONDS) as wakeup:
            # A lost notification only delays new deliveries until the next sweep.
            subscription = self._database.hub.subscribe(CHANNEL, lambda _: wakeup.wake())
            searching = [self._start(step) for step in (partial(self._find_lanes, wakeup), self._read)]
            settling = self._start(self._settler.settle_batch)
            try:
                await stopping.wait()
                self._is_stopping = True
                await _cancel(searching)
                await self._finish()
            finally:
                self._database.hub.unsubscribe(subscription)
                await _cancel([*searching, settling, *self._sends])
                await self._sender.close()

    def _start(self, step: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Runs until it is cancelled: settling continues after the search for more has stopped."""
        return asyncio.create_task(keep_running("webhooks", step, asyncio.Event(), pause=_PAUSE_SECONDS))

    async def _finish(self) -> None:
        """Waits for running attempts, settles them and releases the lanes."""
        if self._sends:
            await asyncio.wait(self._sends, timeout=STOP_SECONDS)
        await self._settler.done(_LAST_SETTLING_SECONDS)
        try:
            await self._release(list(self._lanes.values()))
        except (DatabaseAway, asyncpg.PostgresError) as error:
            log.warning("webhook lanes not released; they expire automatically", reason=str(error))

    async def _find_lanes(self, wakeup: Wakeup) -> None:
        """Finds due lanes, leases those that are free, and maintains our own."""
        started = time.monotonic()
        wakeup.begin()
        if not self._lease.is_held():  # peers may have freed our lanes
            await self._release(list(self._lanes.values()))
            await asyncio.sleep(POLL_SECONDS)
            return
        async with queue_transaction(self._database) as tx:
            if self._is_sharded is None:
                self._is_sharded = await is_sharded(tx)
            found = await queries.list_lanes(tx, self._owner, self._is_sharded)
        await self._delete_orphans([lane for lane in found if lane.is_orphaned])
        due = [lane for lane in found if lane.wait_seconds <= 0 and not lane.is_orphaned]
        is_all = await self._acquire([lane for lane in due if (lane.company_id, lane.endpoint_id) not in self._lanes])
        for lane in due:
            if own := self._lanes.get((lane.company_id, lane.endpoint_id)):
                own.may_have_more = True
        await self._maintain_lanes()
        # The search never takes more than half of the time, however many lanes there are.
        await asyncio.sleep(time.monotonic() - started)
        if is_all:
            waits = [lane.wait_seconds for lane in found if lane.wait_seconds > 0]
            await wakeup.sleep(min([*waits, POLL_SECONDS] if self._lanes else waits, default=None))

    async def _delete_orphans(self, orphaned: list[DueLane]) -> None:
        for company_id, gone in group(orphaned, lambda lane: lane.company_id).items():
            async with queue_transaction(self._database) as tx:
                await queries.delete_orphans(tx, company_id, [lane.endpoint_id for lane in gone])

    async def _acquire(self, free: list[DueLane]) -> bool:
        """Leases a share only, so that workers that wake together each get some; returns whether that was all."""
        share = random.sample(free, min(len(free), max(8, len(free) // 4)))
        for company_id, wanted in group(share, lambda lane: lane.company_id).items():
            until = time.monotonic() + self._lease_seconds
            async with self._database.connection() as db:
                granted = await queries.acquire(
                    db, company_id, [lane.endpoint_id for lane in wanted], self._owner, self._lease_seconds
                )
            for grant in granted:
                self._lanes[company_id, grant.endpoint_id] = ActiveLane(company_id, grant, until)
        return len(share) == len(free)

    async def _maintain_lanes(self) -> None:
        """Renews lanes, releases idle ones, drops expired ones, and continues with the rest."""
        now = time.monotonic()
        for lane in [lane for lane in self._lanes.values() if now >= lane.until]:
            log.warning("webhook lane not renewed in time", webhook_id=lane.endpoint_id)
            self._drop(lane)
        await self._release([lane for lane in self._lanes.values() if lane.should_release(now)])
        await self._renew([lane for lane in self._lanes.values() if lane.until - now < self._lease_seconds * 5 / 6])
        for lane in self._lanes.values():
            self._slots.update_pool(lane)
            self._continue(lane)
        self._assign()

    def _drop(self, lane: ActiveLane) -> None:
        """Its running attempts are settled under its old epoch."""
        lane.clear()
        del self._lanes[lane.company_id, lane.endpoint_id]

    async def _release(self, lanes: list[ActiveLane]) -> None:
        for lane in lanes:
            self._drop(lane)
        for company_id, own in group(lanes, lambda lane: lane.company_id).items():
            async with self._database.connection() as db:
                await queries.release(db, company_id, {lane.endpoint_id: lane.epoch for lane in own}, self._owner)

    async def _renew(self, lanes: list[ActiveLane]) -> None:
        for company_id, own in group(lanes, lambda lane: lane.company_id).items():
            epochs, until = {lane.endpoint_id: lane.epoch for lane in own}, time.monotonic() + self._lease_seconds
            async with self._database.connection() as db:
                renewed = await queries.renew(db, company_id, epochs, self._owner, self._lease_seconds)
            for endpoint_id in renewed:
                self._lanes[company_id, endpoint_id].until = until

    def _continue(self, lane: ActiveLane) -> None:
        """After a change: the lane may need more deliveries, or may send more."""
        if lane.needs_read(time.monotonic()):
            self._to_read.add(lane)
            self._read_requested.set()
        self._slots.enqueue(lane)

    async def _read(self) -> None:
        """Reads more deliveries, and the current endpoints, for the lanes that need it."""
        await self._read_requested.wait()
        self._read_requested.clear()
        requested, self._to_read = self._to_read, set()
        own = [lane for lane in requested if self._lanes.get((lane.company_id, lane.endpoint_id)) is lane]
        for lane in own:
            lane.is_being_read = True
        try:
            companies = group(own, lambda lane: lane.company_id)
            await asyncio.gather(*map(self._read_company, companies, companies.values()))
        finally:
            for lane in own:
                lane.is_being_read = False
                self._continue(lane)
        self._assign()

    async def _read_company(self, company_id: int, lanes: list[ActiveLane]) -> None:
        async with self._readers, queue_transaction(self._database) as tx:
            now = time.monotonic()
            stored = {endpoint.id: endpoint for endpoint in await endpoints.list_stored(tx, company_id)}
            served = [lane for lane in lanes if self._refresh(lane, stored.get(lane.endpoint_id), now)]
            reading = {lane: lane.room for lane in served if lane.room}
            room = {lane.endpoint_id: number for lane, number in reading.items()}
            in_progress = [id for lane in reading for id in lane.in_progress]
            found = await queries.list_due(tx, company_id, room, in_progress) if room else []
        deliveries = group(found, lambda delivery: delivery.endpoint_id)
        for lane, number in reading.items():
            lane.add_deliveries(deliveries.get(lane.endpoint_id, []), number)

    def _refresh(self, lane: ActiveLane, stored: StoredEndpoint | None, now: float) -> bool:
        """Returns whether the endpoint is served now; updates its URL and secrets."""
        lane.fresh_until = now + FRESH_SECONDS
        is_open = stored is not None and stored.status == "active" and stored.catch_up is None
        if stored is None or not is_open or not self._open(lane, stored):
            lane.close()
            return False
        lane.is_closed = False
        lane.set_failures(stored.failures)
        return True

    def _open(self, lane: ActiveLane, stored: StoredEndpoint) -> bool:
        sealed = (stored.url, stored.headers, stored.secret, stored.previous_secret)
        if lane.sealed == sealed:
            return True
        try:
            lane.target, lane.sealed = build_target(self._vault, stored), sealed
        except BadSecretKey as reason:
            if stored.id not in self._unreadable:
                log.error("webhook endpoint cannot be served", webhook_id=stored.id, reason=str(reason))
            self._unreadable.add(stored.id)
            return False
        return True

    def _assign(self) -> None:
        if self._is_stopping or not self._lease.is_held():
            return
        for lane, delivery in self._slots.assign():
            task = asyncio.create_task(self._send(lane, delivery))
            self._sends.add(task)
            task.add_done_callback(self._sends.discard)

    async def _send(self, lane: ActiveLane, delivery: DueDelivery) -> None:
        result = await self._attempt(lane, delivery)
        self._slots.finish(lane, delivery, result.error is not None, result.is_counted)
        self._settler.add(lane, result)
        self._continue(lane)
        self._assign()

    async def _attempt(self, lane: ActiveLane, delivery: DueDelivery) -> AttemptResult:
        try:
            message = build_message(delivery, self._address)
            if message is None or lane.target is None:
                return build_expired(lane, delivery)
            if delivery.traceparent is None:
                outcome = await self._sender.send(lane.target, message)
            else:
                attributes = {"messaging.operation.name": "deliver webhook", "messaging.message.id": delivery.event_id}
                with traces.resume_trace(delivery.traceparent, "deliver webhook", "consumer", attributes):
                    outcome = await self._sender.send(lane.target, message)
            if outcome.is_ours:
                log.warning(
                    "webhook not sent because of an internal error", delivery_id=delivery.id, reason=outcome.message
                )
            return build_result(lane, delivery, outcome)
        except Exception:
            log.exception("webhook attempt failed with an internal error", delivery_id=delivery.id)
            return build_internal_failure(lane, delivery)


async def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
