"""Networks that try unknown API keys: after too many, this process no longer looks their keys up."""

from math import ceil

from msgspec import Struct

from sapa.http.errors import RateLimitExceeded

MAX_BAD_KEYS = 60
WINDOW_SECONDS = 60.0
TRUST_SECONDS = 600.0
"""A network that sent a valid key is not limited for this long."""
MAX_NETWORKS = 10_000


class BadKeyCount(Struct):
    began: float
    number: int = 0


class BadKeyLimiter:
    """Times are on the process's monotonic clock. Each table drops its oldest network when it is full."""

    def __init__(self) -> None:
        self._counts: dict[str, BadKeyCount] = {}
        self._trusted: dict[str, float] = {}

    def check(self, network: str, now: float) -> None:
        """Raises RateLimitExceeded if the network has sent too many unknown keys in the last minute."""
        count = self._counts.get(network)
        if count is None or count.number <= MAX_BAD_KEYS or self._is_trusted(network, now):
            return
        left = ceil(count.began + WINDOW_SECONDS - now)
        if left > 0:
            raise RateLimitExceeded(
                f"Too many requests with unknown API keys came from your network; retry in {left} seconds.",
                headers={"retry-after": str(left)},
            )

    def count(self, network: str, now: float) -> None:
        """Counts an unknown key."""
        count = self._counts.get(network)
        if count is None or now - count.began >= WINDOW_SECONDS:
            self._counts.pop(network, None)
            _make_room(self._counts)
            count = self._counts[network] = BadKeyCount(now)
        count.number += 1

    def trust(self, network: str, now: float) -> None:
        """Notes that a valid key came from the network."""
        if network not in self._trusted:
            _make_room(self._trusted)
        self._trusted[network] = now

    def _is_trusted(self, network: str, now: float) -> bool:
        trusted_at = self._trusted.get(network)
        return trusted_at is not None and now - trusted_at < TRUST_SECONDS


def _make_room(table: dict[str, BadKeyCount] | dict[str, float]) -> None:
    if len(table) >= MAX_NETWORKS:
        del table[next(iter(table))]
