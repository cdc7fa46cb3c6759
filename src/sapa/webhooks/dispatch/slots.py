"""Places: which delivery goes next, and how many may be under way, so that no endpoint slows down another.

Nothing here waits or touches the database. A lane belongs to one of two pools; endpoints that fail or hang share the
small one, and the large one stays free for those that answer.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from sapa.webhooks.dispatch.types import MOST_FAILURES, DueDelivery, Grant
from sapa.webhooks.sender import Target

MOST_PER_ENDPOINT = 4
HEALTHY_PLACES = 350
SLOW_PLACES = 150
MOST_SLOW_PER_COMPANY = 32
"""Those of its endpoints that answer are bounded by their number only."""
MOST_SOCKETS = 800
"""A lane that turns slow takes its deliveries into the small pool; together they stay below this."""

SLOW_SECONDS = 2.0
_REMEMBERED = 20
_MOST_SLOW = 1

SMALLEST_STOCK = 8
LARGEST_STOCK = 256
IDLE_SECONDS = 2.0
"""After this a lane with nothing to do is given back."""
MOST_KNOWN = 1000

Item = TypeVar("Item")
Group = TypeVar("Group")


def group(items: Iterable[Item], key: Callable[[Item], Group]) -> dict[Group, list[Item]]:
    """Items by what they share, in the order in which they came."""
    groups: dict[Group, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


class ActiveLane:
    """One endpoint's deliveries in this process, for as long as it serves them."""

    def __init__(self, company_id: int, grant: Grant, until: float) -> None:
        self.company_id = company_id
        self.endpoint_id = grant.endpoint_id
        self.epoch = grant.epoch
        self.until = until
        """When our right to serve it ends, on the monotonic clock."""
        self.target: Target | None = None
        self.sealed: object = None
        """What the target was opened from."""
        self.fresh_until = 0.0
        """Until when the target counts as the present one."""
        self.known: set[str] = set()
        """Deliveries that were read and are not settled: in stock, under way, or waiting to be settled."""
        self.is_hungry = True
        """There may be more in the queue."""
        self.is_closed = False
        """The endpoint is not served now."""
        self.is_looked_at = False
        """Somebody is asking the database for more just now."""
        self.used_at = time.monotonic()
        self.is_slow = grant.failures > 0
        self.is_lined_up = False
        self.started: dict[str, float] = {}
        self._width = 1
        self._failures = grant.failures
        self._ready: deque[DueDelivery] = deque()
        self._parked: dict[str, deque[DueDelivery]] = {}
        self._busy: set[str] = set()
        self._was_slow: deque[bool] = deque(maxlen=_REMEMBERED)
        self._stock_size = SMALLEST_STOCK

    @property
    def room(self) -> int:
        """How many more deliveries to read: none while half of the stock is left, or too much waits to be settled."""
        left = len(self._ready)
        wants_more = self.is_hungry and left <= self._stock_size // 2 and len(self.known) < MOST_KNOWN
        return self._stock_size - left if wants_more else 0

    def is_to_be_released(self, now: float) -> bool:
        """Whether it has nothing to do, and had not for a while."""
        is_idle = not self.known and not self.is_looked_at and not self.is_hungry
        return is_idle and (self.is_closed or now > self.used_at + IDLE_SECONDS)

    @property
    def may_start(self) -> bool:
        return bool(self._ready) and len(self.started) < self._width and not self.is_exhausted

    @property
    def is_exhausted(self) -> bool:
        """So many failures in a row suspend it, once they are settled."""
        return self._failures >= MOST_FAILURES

    def needs_look(self, now: float) -> bool:
        """Whether the database is to be asked before it can go on."""
        is_stale = (self.may_start or self.is_exhausted) and now >= self.fresh_until
        return not self.is_looked_at and (self.room > 0 or is_stale)

    def stock(self, deliveries: list[DueDelivery], asked: int) -> None:
        """Adds what was read. A look that found less than it asked for has seen all there is."""
        for delivery in deliveries:
            self.known.add(delivery.id)
            self._ready.append(delivery)
        self.used_at = time.monotonic()
        self.is_hungry = len(deliveries) >= asked
        if self.is_hungry and not self.is_slow:
            self._stock_size = min(self._stock_size * 2, LARGEST_STOCK)

    def clear(self) -> None:
        """Forgets what is in stock: it stays in the queue."""
        stocked = [*self._ready, *(delivery for parked in self._parked.values() for delivery in parked)]
        self.known.difference_update(delivery.id for delivery in stocked)
        self._ready.clear()
        self._parked.clear()

    def close(self) -> None:
        """The endpoint is not to be served: what is not under way stays where it is."""
        self.clear()
        self.is_hungry = False
        self.is_closed = True

    def take(self) -> DueDelivery | None:
        """The next delivery whose resource is not under way; those of one that is wait for it."""
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

    def recount(self, failures: int) -> None:
        """What the database knows holds, unless it does not know all yet."""
        stocked = len(self._ready) + sum(map(len, self._parked.values()))
        if len(self.known) == stocked:
            self._failures = failures

    def finish(self, delivery: DueDelivery, has_failed: bool, is_counted: bool) -> None:
        """An attempt is over, though not settled. Success widens the lane, failure makes it narrow."""
        self.used_at = time.monotonic()
        self._was_slow.append(self.used_at - self.started.pop(delivery.id) > SLOW_SECONDS)
        if is_counted:
            self._failures = self._failures + 1 if has_failed else 0
        self._width = 1 if has_failed else min(self._width + 1, MOST_PER_ENDPOINT)
        if has_failed:
            self._stock_size = SMALLEST_STOCK
        resource = delivery.resource_id or delivery.id
        self._busy.discard(resource)
        if parked := self._parked.get(resource):
            self._ready.appendleft(parked.popleft())
            if not parked:
                del self._parked[resource]

    def find_pace(self) -> bool:
        """Whether it is slow now: failing, hanging, or taking long more than now and then."""
        oldest = next(iter(self.started.values()), None)
        is_hanging = oldest is not None and time.monotonic() - oldest > SLOW_SECONDS
        return self._failures > 0 or is_hanging or sum(self._was_slow) > _MOST_SLOW


class Slots:
    """The lanes that have something to send, each pool's in turn."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._taken = {True: 0, False: 0}
        self._line: dict[bool, deque[ActiveLane]] = {True: deque(), False: deque()}
        self._slow_by_company: Counter[int] = Counter()
        self._held_back: dict[int, set[ActiveLane]] = {}

    def line_up(self, lane: ActiveLane) -> None:
        if not lane.is_lined_up and lane.may_start:
            lane.is_lined_up = True
            self._line[lane.is_slow].append(lane)

    def assign(self) -> Iterator[tuple[ActiveLane, DueDelivery]]:
        """What may start now; each is started by being taken from here."""
        for is_slow, most in ((False, HEALTHY_PLACES), (True, SLOW_PLACES)):
            line = self._line[is_slow]
            while line and self._taken[is_slow] < most and self.in_flight < MOST_SOCKETS:
                lane = line.popleft()
                lane.is_lined_up = False
                if is_slow and self._slow_by_company[lane.company_id] >= MOST_SLOW_PER_COMPANY:
                    self._held_back.setdefault(lane.company_id, set()).add(lane)
                elif delivery := lane.take():
                    self.in_flight += 1
                    self._count(lane, 1)
                    yield lane, delivery
                    self.line_up(lane)

    def finish(self, lane: ActiveLane, delivery: DueDelivery, has_failed: bool, is_counted: bool) -> None:
        self.in_flight -= 1
        self._count(lane, -1)
        lane.finish(delivery, has_failed, is_counted)
        self.judge(lane)
        self.line_up(lane)

    def judge(self, lane: ActiveLane) -> None:
        """Moves a lane, with what it has under way, to the pool where it belongs."""
        is_slow = lane.find_pace()
        if is_slow == lane.is_slow:
            return
        self._count(lane, -len(lane.started))
        if lane.is_lined_up:
            self._line[lane.is_slow].remove(lane)
            self._line[is_slow].append(lane)
        lane.is_slow = is_slow
        self._count(lane, len(lane.started))

    def _count(self, lane: ActiveLane, number: int) -> None:
        self._taken[lane.is_slow] += number
        if not lane.is_slow:
            return
        self._slow_by_company[lane.company_id] += number
        if number < 0:
            for waiting in self._held_back.pop(lane.company_id, ()):
                self.line_up(waiting)
        if not self._slow_by_company[lane.company_id]:
            del self._slow_by_company[lane.company_id]
