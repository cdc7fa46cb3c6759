"""A cache of responses in each process, for endpoints that are declared as cached.

The handler sets how long a response is valid (`OutboundCall.cache_seconds`). A change that makes it wrong earlier calls
`drop_responses`, which reaches all processes through the hub. While the hub is disconnected, the cache is not used.
"""

import time

from msgspec import Struct

from sapa.db.hub import ChannelSubscription
from sapa.db.pool import Database, Tx, notify_after_commit
from sapa.values.company import Company

CHANNEL = "sapa_responses"
"""NOTIFY on this channel with a company id drops its responses from every process."""

MAX_RESPONSES = 256
LARGEST_BYTES = 32 * 1024
_SILENT_SECONDS = 1.0

ResponseKey = tuple[Company, str, tuple[str, ...], bytes, bytes]
"""Who asked, which operation, its path values, and the query string and body exactly as they were sent."""


class _CachedResponse(Struct, frozen=True):
    body: bytes
    ends: float
    """On this process's monotonic clock."""


class ResponseCache:
    """Least recently used responses are dropped first."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._responses: dict[ResponseKey, _CachedResponse] = {}
        self._subscription: ChannelSubscription | None = None
        self.generation = 0
        """Counts changes: a response that was built before one belongs to an earlier generation."""

    def find(self, key: ResponseKey) -> bytes | None:
        found = self._responses.pop(key, None)
        now = time.monotonic()
        if found is None or now >= found.ends or now - self._database.hub.alive_at >= _SILENT_SECONDS:
            return None
        self._responses[key] = found
        return found.body

    def store(self, key: ResponseKey, body: bytes, seconds: float, generation: int) -> None:
        """`generation` is the cache's from before the response was built."""
        if generation != self.generation or len(body) > LARGEST_BYTES:
            return
        if len(self._responses) >= MAX_RESPONSES:
            del self._responses[next(iter(self._responses))]
        self._responses[key] = _CachedResponse(body, time.monotonic() + seconds)

    def start(self) -> None:
        self._subscription = self._database.hub.subscribe(CHANNEL, self._drop, self._drop_all, self._drop_all)

    def stop(self) -> None:
        if self._subscription is not None:
            self._database.hub.unsubscribe(self._subscription)

    def _drop(self, company_id: str) -> None:
        self.generation += 1
        for key in [key for key in self._responses if str(key[0].id) == company_id]:
            del self._responses[key]

    def _drop_all(self) -> None:
        self.generation += 1
        self._responses.clear()


def drop_responses(tx: Tx, company_id: int) -> None:
    """Once the transaction is committed, no process returns the company's cached responses again."""
    notify_after_commit(tx, CHANNEL, str(company_id))
