"""Responses that a process returns again without asking PostgreSQL, for endpoints that are declared as remembered.

The handler says for how long (`OutboundCall.remembered_seconds`). A change that makes them wrong earlier calls
`drop_responses`; the hub tells all processes. While the hub hears nothing, no response is returned again.
"""

import time

from msgspec import Struct

from sapa.db.hub import ChannelSubscription
from sapa.db.pool import Database, Tx, notify_after_commit
from sapa.values.company import Company

CHANNEL = "sapa_responses"
"""NOTIFY on this channel with a company id drops its responses from every process."""

MOST_RESPONSES = 256
LARGEST_BYTES = 32 * 1024
_SILENT_SECONDS = 1.0

ResponseKey = tuple[Company, str, tuple[str, ...], bytes, bytes]
"""Who asked, which operation, its path values, and the query string and body exactly as they were sent."""


class _RememberedResponse(Struct, frozen=True):
    body: bytes
    ends: float
    """On this process's monotonic clock."""


class ResponseMemory:
    """What was used longest ago is dropped first."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._responses: dict[ResponseKey, _RememberedResponse] = {}
        self._subscription: ChannelSubscription | None = None
        self.generation = 0
        """A response that was built before a change belongs to an earlier one."""

    def find(self, key: ResponseKey) -> bytes | None:
        found = self._responses.pop(key, None)
        now = time.monotonic()
        if found is None or now >= found.ends or now - self._database.hub.alive_at >= _SILENT_SECONDS:
            return None
        self._responses[key] = found
        return found.body

    def store(self, key: ResponseKey, body: bytes, seconds: float, generation: int) -> None:
        """`generation` is the memory's from before the response was built."""
        if generation != self.generation or len(body) > LARGEST_BYTES:
            return
        if len(self._responses) >= MOST_RESPONSES:
            del self._responses[next(iter(self._responses))]
        self._responses[key] = _RememberedResponse(body, time.monotonic() + seconds)

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
    """Once the transaction is committed, no process returns the company's remembered responses again."""
    notify_after_commit(tx, CHANNEL, str(company_id))
