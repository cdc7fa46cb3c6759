"""The dispatcher: takes due deliveries to their receivers. Any number of workers run one each.

It finds lanes with something due, leases those that nobody serves, reads a stock of deliveries for each, sends them in
the order that `places` says, and settles what came of them in batches. No transaction is open while a receiver thinks.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable

import asyncpg
import structlog

from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database
from sapa.events import CHANNEL
from sapa.settings import Settings
from sapa.values.sealing import BadSecretKey, Vault
from sapa.webhooks.dispatch import queries
from sapa.webhooks.dispatch.attempt import build_gone, build_message, build_result, build_stumble
from sapa.webhooks.dispatch.lanes import queue_transaction
from sapa.webhooks.dispatch.settler import Settler
from sapa.webhooks.dispatch.slots import ActiveLane, Slots, group
from sapa.webhooks.dispatch.types import DueDelivery, DueLane, Result
from sapa.webhooks.endpoints import actions as endpoints
from sapa.webhooks.endpoints.fields import build_target
from sapa.webhooks.sender import WebhookSender
from sapa.webhooks.types import StoredEndpoint
from sapa.work.leases import new_holder
from sapa.work.loops import keep_running, wait

LEASE_SECONDS = 60.0
POLL_SECONDS = 0.25
FRESH_SECONDS = 0.25
"""For so long a URL and its secrets count as the present ones."""
STOP_SECONDS = 20.0
_LAST_SETTLING_SECONDS = 3.0
_PAUSE_SECONDS = 0.5
_READERS = 2

log = structlog.get_logger()


async def deliver(context: AppContext, stopping: asyncio.Event) -> None:
    """The worker's service."""
    if context.sealing is None:
        log.error("webhooks are not delivered: without SAPA_SECRET_KEY their secrets cannot be read")
        await stopping.wait()
        return
    await Dispatcher(context.database, context.settings, context.sealing).run(stopping)


class Dispatcher:
    def __init__(
        self, database: Database, settings: Settings, vault: Vault, lease_seconds: float = LEASE_SECONDS
    ) -> None:
        self._database = database
        self._vault = vault
        self._address = settings.server.address
        self._lease_seconds = lease_seconds
        self._sender = WebhookSender(settings.webhooks)
        self._owner = new_holder()
        self._lanes: dict[tuple[int, str], ActiveLane] = {}
        self._places = Slots()
        self._settler = Settler(database, self._owner, self._go_on)
        self._bell = asyncio.Event()
        self._to_look_at: set[ActiveLane] = set()
        self._is_asked_to_look = asyncio.Event()
        self._readers = asyncio.Semaphore(_READERS)
        self._sends: set[asyncio.Task[None]] = set()
        self._unreadable: set[str] = set()
        self._is_stopping = False

    async def run(self, stopping: asyncio.Event) -> None:
        # Without the bell, what is new is found a moment later.
        subscription = self._database.hub.subscribe(CHANNEL, lambda _: self._bell.set())
        searching = [self._start(chore) for chore in (self._scout, self._look)]
        settling = self._start(self._settler.settle_batch)
        try:
            await stopping.wait()
            self._is_stopping = True
            await _end(searching)
            await self._finish()
        finally:
            self._database.hub.unsubscribe(subscription)
            await _end([*searching, settling, *self._sends])
            await self._sender.close()

    def _start(self, chore: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """It goes on until it is cancelled: settling lasts longer than looking for more."""
        return asyncio.create_task(keep_running("webhooks", chore, asyncio.Event(), pause=_PAUSE_SECONDS))

    async def _finish(self) -> None:
        """Waits for what is under way, settles it and gives the lanes back."""
        if self._sends:
            await asyncio.wait(self._sends, timeout=STOP_SECONDS)
        await self._settler.done(_LAST_SETTLING_SECONDS)
        try:
            await self._release(list(self._lanes.values()))
        except (DatabaseAway, asyncpg.PostgresError) as error:
            log.warning("webhook lanes were not released and will run out by themselves", reason=str(error))

    async def _scout(self) -> None:
        """Finds due lanes, takes those that are free, and looks after those that are ours."""
        started = time.monotonic()
        self._bell.clear()
        async with queue_transaction(self._database) as tx:
            found = await queries.list_lanes(tx, self._owner)
        await self._drop_orphans([lane for lane in found if lane.is_orphaned])
        due = [lane for lane in found if lane.wait_seconds <= 0 and not lane.is_orphaned]
        is_all = await self._acquire([lane for lane in due if (lane.company_id, lane.endpoint_id) not in self._lanes])
        for lane in due:
            if ours := self._lanes.get((lane.company_id, lane.endpoint_id)):
                ours.is_hungry = True
        await self._tend()
        # Looking never takes more than half of the time, however many lanes there are.
        await asyncio.sleep(time.monotonic() - started)
        soonest = min((lane.wait_seconds for lane in found if lane.wait_seconds > 0), default=POLL_SECONDS)
        await wait(min(soonest, POLL_SECONDS) if is_all else 0, self._bell)

    async def _drop_orphans(self, orphaned: list[DueLane]) -> None:
        for company_id, gone in group(orphaned, lambda lane: lane.company_id).items():
            async with queue_transaction(self._database) as tx:
                await queries.delete_orphans(tx, company_id, [lane.endpoint_id for lane in gone])

    async def _acquire(self, free: list[DueLane]) -> bool:
        """Takes a share only, so that workers that woke together each get some; whether that was all."""
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

    async def _tend(self) -> None:
        """Renews lanes, gives idle ones back, forgets those that were lost, and goes on with the rest."""
        now = time.monotonic()
        for lane in [lane for lane in self._lanes.values() if now >= lane.until]:
            log.warning("a webhook lane was not renewed in time", endpoint=lane.endpoint_id)
            self._forget(lane)
        await self._release([lane for lane in self._lanes.values() if lane.is_to_be_released(now)])
        await self._renew([lane for lane in self._lanes.values() if lane.until - now < self._lease_seconds * 5 / 6])
        for lane in self._lanes.values():
            self._places.judge(lane)
            self._go_on(lane)
        self._assign()

    def _forget(self, lane: ActiveLane) -> None:
        """What it has under way is settled under its old epoch."""
        lane.clear()
        del self._lanes[lane.company_id, lane.endpoint_id]

    async def _release(self, held: list[ActiveLane]) -> None:
        for lane in held:
            self._forget(lane)
        for company_id, ours in group(held, lambda lane: lane.company_id).items():
            async with self._database.connection() as db:
                await queries.release(db, company_id, {lane.endpoint_id: lane.epoch for lane in ours}, self._owner)

    async def _renew(self, held: list[ActiveLane]) -> None:
        for company_id, ours in group(held, lambda lane: lane.company_id).items():
            epochs, until = {lane.endpoint_id: lane.epoch for lane in ours}, time.monotonic() + self._lease_seconds
            async with self._database.connection() as db:
                renewed = await queries.renew(db, company_id, epochs, self._owner, self._lease_seconds)
            for endpoint_id in renewed:
                self._lanes[company_id, endpoint_id].until = until

    def _go_on(self, lane: ActiveLane) -> None:
        """Something changed: the lane may need more, or may send more."""
        if lane.needs_look(time.monotonic()):
            self._to_look_at.add(lane)
            self._is_asked_to_look.set()
        self._places.line_up(lane)

    async def _look(self) -> None:
        """Reads more deliveries, and what endpoints are like now, for the lanes that need it."""
        await self._is_asked_to_look.wait()
        self._is_asked_to_look.clear()
        asked, self._to_look_at = self._to_look_at, set()
        ours = [lane for lane in asked if self._lanes.get((lane.company_id, lane.endpoint_id)) is lane]
        for lane in ours:
            lane.is_looked_at = True
        try:
            companies = group(ours, lambda lane: lane.company_id)
            await asyncio.gather(*map(self._look_at, companies, companies.values()))
        finally:
            for lane in ours:
                lane.is_looked_at = False
                self._go_on(lane)
        self._assign()

    async def _look_at(self, company_id: int, held: list[ActiveLane]) -> None:
        async with self._readers, queue_transaction(self._database) as tx:
            now = time.monotonic()
            stored = {endpoint.id: endpoint for endpoint in await endpoints.list_stored(tx, company_id)}
            served = [lane for lane in held if self._refresh(lane, stored.get(lane.endpoint_id), now)]
            hungry = {lane: lane.room for lane in served if lane.room}
            room = {lane.endpoint_id: number for lane, number in hungry.items()}
            known = [id for lane in hungry for id in lane.known]
            found = await queries.list_due(tx, company_id, room, known) if room else []
        deliveries = group(found, lambda delivery: delivery.endpoint_id)
        for lane, number in hungry.items():
            lane.stock(deliveries.get(lane.endpoint_id, []), number)

    def _refresh(self, lane: ActiveLane, stored: StoredEndpoint | None, now: float) -> bool:
        """Whether the endpoint is to be served now, with its present URL and secrets."""
        lane.fresh_until = now + FRESH_SECONDS
        is_open = stored is not None and stored.status == "active" and stored.catch_up is None
        if stored is None or not is_open or not self._open(lane, stored):
            lane.close()
            return False
        lane.is_closed = False
        lane.recount(stored.failures)
        return True

    def _open(self, lane: ActiveLane, stored: StoredEndpoint) -> bool:
        sealed = (stored.url, stored.headers, stored.secret, stored.previous_secret)
        if lane.sealed == sealed:
            return True
        try:
            lane.target, lane.sealed = build_target(self._vault, stored), sealed
        except BadSecretKey as reason:
            if stored.id not in self._unreadable:
                log.error("a webhook endpoint cannot be served", endpoint=stored.id, reason=str(reason))
            self._unreadable.add(stored.id)
            return False
        return True

    def _assign(self) -> None:
        if self._is_stopping:
            return
        for lane, delivery in self._places.assign():
            task = asyncio.create_task(self._send(lane, delivery))
            self._sends.add(task)
            task.add_done_callback(self._sends.discard)

    async def _send(self, lane: ActiveLane, delivery: DueDelivery) -> None:
        result = await self._attempt(lane, delivery)
        self._places.finish(lane, delivery, result.error is not None, result.is_counted)
        self._settler.add(lane, result)
        self._go_on(lane)
        self._assign()

    async def _attempt(self, lane: ActiveLane, delivery: DueDelivery) -> Result:
        try:
            message = build_message(delivery, self._address)
            if message is None or lane.target is None:
                return build_gone(lane, delivery)
            outcome = await self._sender.send(lane.target, message)
            if outcome.retry_uncounted:
                log.warning("a webhook was not sent, by our own fault", delivery=delivery.id, reason=outcome.message)
            return build_result(lane, delivery, outcome)
        except Exception:
            log.exception("a webhook could not be sent", delivery=delivery.id)
            return build_stumble(lane, delivery)


async def _end(tasks: Iterable[asyncio.Task[None]]) -> None:
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
