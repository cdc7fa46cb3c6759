"""Slots: which delivery goes next, and how many may run at once, so that no endpoint slows down another.

Nothing here waits or uses the database. A lane belongs to one of two pools; endpoints that fail or hang share the
small one, and the large one stays free for those that respond.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from sapa.webhooks.dispatch.types import MAX_FAILURES, DueDelivery, Grant
from sapa.webhooks.sender import Target

MAX_PER_ENDPOINT = 4
HEALTHY_SLOTS = 350
SLOW_SLOTS = 150
MAX_SLOW_PER_COMPANY = 32
"""Endpoints that respond are limited by their number only."""
MAX_SOCKETS = 800
"""A lane that turns slow moves its deliveries into the small pool; both pools together stay below this."""

SLOW_SECONDS = 2.0
_SLOW_WINDOW = 20
_MAX_SLOW = 1

MIN_BUFFERED = 8
MAX_BUFFERED = 256
"""Deliveries that a lane reads ahead: more while its receiver keeps up, few while it fails."""
IDLE_SECONDS = 2.0
"""After this time an idle lane is released."""
MAX_IN_PROGRESS = 1000

Item = TypeVar("Item")
Group = TypeVar("Group")


def group(items: Iterable[Item], key: Callable[[Item], Group]) -> dict[Group, list[Item]]:
    """Items by key, in their order."""
    groups: dict[Group, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


class ActiveLane:
    """One endpoint's deliveries in this process, while it leases the lane."""

    def __init__(self, company_id: int, grant: Grant, until: float) -> None:
        self.company_id = company_id
        self.endpoint_id = grant.endpoint_id
        self.epoch = grant.epoch
        self.until = until
        """When the lease ends, on the monotonic clock."""
        self.target: Target | None = None
        self.sealed: object = None
        """The stored fields that the target was built from."""
        self.fresh_until = 0.0
        """Until when the target may be used without reading it again."""
        self.in_progress: set[str] = set()
        """Deliveries that were read and are not settled: in the buffer, running, or waiting to be settled."""
        self.may_have_more = True
        """There may be more deliveries in the queue."""
        self.is_closed = False
        """The endpoint is not served now."""
        self.is_being_read = False
        """More deliveries are being read from the database."""
        self.used_at = time.monotonic()
        self.is_slow = grant.failures > 0
        self.is_queued = False
        self.started: dict[str, float] = {}
        self._concurrency = 1
        self._failures = grant.failures
        self._ready: deque[DueDelivery] = deque()
        self._parked: dict[str, deque[DueDelivery]] = {}
        self._busy: set[str] = set()
        self._was_slow: deque[bool] = deque(maxlen=_SLOW_WINDOW)
        self._buffer_size = MIN_BUFFERED

    @property
    def room(self) -> int:
        """How many more deliveries to read: none while half of the buffer is left, or too many wait to be settled."""
        left = len(self._ready)
        wants_more = self.may_have_more and left <= self._buffer_size // 2 and len(self.in_progress) < MAX_IN_PROGRESS
        return self._buffer_size - left if wants_more else 0

    def should_release(self, now: float) -> bool:
        """Whether it has been idle for a while."""
        is_idle = not self.in_progress and not self.is_being_read and not self.may_have_more
        return is_idle and (self.is_closed or now > self.used_at + IDLE_SECONDS)

    @property
    def may_start(self) -> bool:
        return bool(self._ready) and len(self.started) < self._concurrency and not self.is_exhausted

    @property
    def is_exhausted(self) -> bool:
        """The failures in a row suspend the endpoint once they are settled."""
        return self._failures >= MAX_FAILURES

    def needs_read(self, now: float) -> bool:
        """Whether the database must be read before it can continue."""
        is_stale = (self.may_start or self.is_exhausted) and now >= self.fresh_until
        return not self.is_being_read and (self.room > 0 or is_stale)

    def add_deliveries(self, deliveries: list[DueDelivery], requested: int) -> None:
        """Adds what was read. Fewer deliveries than requested mean that there are no more."""
        for delivery in deliveries:
            self.in_progress.add(delivery.id)
            self._ready.append(delivery)
        self.used_at = time.monotonic()
        self.may_have_more = len(deliveries) >= requested
        if self.may_have_more and not self.is_slow:
            self._buffer_size = min(self._buffer_size * 2, MAX_BUFFERED)

    def clear(self) -> None:
        """Empties the buffer: its deliveries stay in the queue."""
        buffered = [*self._ready, *(delivery for parked in self._parked.values() for delivery in parked)]
        self.in_progress.difference_update(delivery.id for delivery in buffered)
        self._ready.clear()
        self._parked.clear()

    def close(self) -> None:
        """The endpoint is not served: deliveries that are not running stay in the queue."""
        self.clear()
        self.may_have_more = False
        self.is_closed = True

    def take(self) -> DueDelivery | None:
        """The next delivery whose resource has none running; others of that resource are parked."""
        now = time.monotonic()
        while self.may_start and now < self.fresh_until and now < self.until:
            delivery = self._ready.popleft()
            resource = delivery.resource_id or delivery.id
            if resource not in self._busy:
                self._busy.add(resource)
                self.started[delivery.id] = now
                return delivery
            self._parked.setdefault(resource, deque()).append(delivery)
        return None

    def set_failures(self, failures: int) -> None:
        """The stored count is used, unless results are still to be settled."""
        buffered = len(self._ready) + sum(map(len, self._parked.values()))
        if len(self.in_progress) == buffered:
            self._failures = failures

    def finish(self, delivery: DueDelivery, has_failed: bool, is_counted: bool) -> None:
        """An attempt is over, though not settled. A success raises the lane's concurrency, a failure resets it."""
        self.used_at = time.monotonic()
        self._was_slow.append(self.used_at - self.started.pop(delivery.id) > SLOW_SECONDS)
        if is_counted:
            self._failures = self._failures + 1 if has_failed else 0
        self._concurrency = 1 if has_failed else min(self._concurrency + 1, MAX_PER_ENDPOINT)
        if has_failed:
            self._buffer_size = MIN_BUFFERED
        resource = delivery.resource_id or delivery.id
        self._busy.discard(resource)
        if parked := self._parked.get(resource):
            self._ready.appendleft(parked.popleft())
            if not parked:
                del self._parked[resource]

    def is_slow_now(self) -> bool:
        """Whether it is failing, hanging, or often slow."""
        oldest = next(iter(self.started.values()), None)
        is_hanging = oldest is not None and time.monotonic() - oldest > SLOW_SECONDS
        return self._failures > 0 or is_hanging or sum(self._was_slow) > _MAX_SLOW


class Slots:
    """The lanes that have deliveries to send; each pool serves its lanes in turn."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._taken = {True: 0, False: 0}
        self._queues: dict[bool, deque[ActiveLane]] = {True: deque(), False: deque()}
        self._slow_by_company: Counter[int] = Counter()
        self._deferred: dict[int, set[ActiveLane]] = {}

    def enqueue(self, lane: ActiveLane) -> None:
        if not lane.is_queued and lane.may_start:
            lane.is_queued = True
            self._queues[lane.is_slow].append(lane)

    def assign(self) -> Iterator[tuple[ActiveLane, DueDelivery]]:
        """The deliveries that may start now; each counts as started once it is yielded."""
        for is_slow, limit in ((False, HEALTHY_SLOTS), (True, SLOW_SLOTS)):
            queue = self._queues[is_slow]
            while queue and self._taken[is_slow] < limit and self.in_flight < MAX_SOCKETS:
                lane = queue.popleft()
                lane.is_queued = False
                if is_slow and self._slow_by_company[lane.company_id] >= MAX_SLOW_PER_COMPANY:
                    self._deferred.setdefault(lane.company_id, set()).add(lane)
                elif delivery := lane.take():
                    self.in_flight += 1
                    self._count(lane, 1)
                    yield lane, delivery
                    self.enqueue(lane)

    def finish(self, lane: ActiveLane, delivery: DueDelivery, has_failed: bool, is_counted: bool) -> None:
        self.in_flight -= 1
        self._count(lane, -1)
        lane.finish(delivery, has_failed, is_counted)
        self.update_pool(lane)
        self.enqueue(lane)

    def update_pool(self, lane: ActiveLane) -> None:
        """Moves a lane, with its running deliveries, to the pool where it belongs."""
        is_slow = lane.is_slow_now()
        if is_slow == lane.is_slow:
            return
        self._count(lane, -len(lane.started))
        if lane.is_queued:
            self._queues[lane.is_slow].remove(lane)
            self._queues[is_slow].append(lane)
        lane.is_slow = is_slow
        self._count(lane, len(lane.started))

    def _count(self, lane: ActiveLane, number: int) -> None:
        self._taken[lane.is_slow] += number
        if not lane.is_slow:
            return
        self._slow_by_company[lane.company_id] += number
        if number < 0:
            for waiting in self._deferred.pop(lane.company_id, ()):
                self.enqueue(waiting)
        if not self._slow_by_company[lane.company_id]:
            del self._slow_by_company[lane.company_id]
