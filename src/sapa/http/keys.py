"""API keys at the edge: their form, what they carry, and the process's cache of them."""

import re
import secrets
import time
import zlib
from collections.abc import Awaitable, Callable
from hashlib import sha256

import structlog
from msgspec import Struct

from sapa.db.hub import ChannelSubscription
from sapa.db.pool import Connection, Database
from sapa.http.allow_list import AllowList
from sapa.http.bad_keys import BadKeyLimiter
from sapa.http.errors import InvalidApiKey
from sapa.values.change_actor import ChangeActor
from sapa.values.company import Company

PREFIXES = {"live": "svc_live_", "test": "svc_test_"}
CHANNEL = "sapa_keys"
"""NOTIFY on this channel with a company id drops its keys from every cache."""

GRACE_SECONDS = 24 * 3600
"""How long a rotated key still works."""

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_match_key = re.compile(r"(svc_(?:live|test)_[0-9A-Za-z]{32})([0-9A-Za-z]{6})").fullmatch
_MAX_CACHED = 10_000
_CACHED_SECONDS = 1.0
"""After which a key is read again, unless the hub has proved since that it reports changes."""

log = structlog.get_logger()


class Retirement(Struct, frozen=True):
    """When a rotated key or an operation was deprecated and when it stops, in Unix time."""

    since: int
    stops: int


class Key(Struct, eq=False):
    """A valid key and what it permits."""

    id: str
    company: Company
    scopes: frozenset[str]
    products: frozenset[str]
    allow_list: AllowList
    rate_limit: int
    ends: float | None
    """When the key stops working, on this process's monotonic clock."""
    retirement: Retirement | None
    """Set when the key was rotated."""
    allows_mcp: bool = True
    user: ChangeActor | None = None
    """The user of the console on whose behalf it is used."""
    full_until: float = 0.0
    """Once the rate limit is used up, the rest of the minute is refused without asking PostgreSQL."""


def new_key(environment: str) -> str:
    """Prefix, 32 random characters, 6 characters of checksum."""
    body = PREFIXES[environment] + "".join(secrets.choice(_BASE62) for _ in range(32))
    return body + _checksum(body)


def is_well_formed(raw: str) -> bool:
    """Whether the checksum matches: finds typos without a look-up."""
    parts = _match_key(raw)
    return parts is not None and _checksum(parts[1]) == parts[2]


def mask_key(raw: str) -> str:
    """Prefix and last four characters, as the list of keys shows them."""
    prefix = next((prefix for prefix in PREFIXES.values() if raw.startswith(prefix)), "")
    return f"{prefix}…{raw[-4:]}"


def hash_key(raw: str) -> bytes:
    return sha256(raw.encode()).digest()


def _checksum(body: str) -> str:
    number = zlib.crc32(body.encode())
    digits = ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits


class KeyRing:
    """This process's cache of keys. The hub reports changes; while it hears nothing, a key is cached for a second."""

    def __init__(self, database: Database, load: Callable[[Connection, bytes], Awaitable[Key | None]]) -> None:
        self._database = database
        self._load = load
        self._keys: dict[bytes, tuple[Key, float]] = {}
        self._is_subscribed = False
        self._generation = 0
        self._subscription: ChannelSubscription | None = None
        self._bad_keys = BadKeyLimiter()
        self.uses: dict[str, str] = {}
        """Key id → the address it was last used from, until it is recorded."""

    def record_use(self, key: Key, address: str) -> None:
        self.uses[key.id] = address

    async def identify(self, raw: str, network: str) -> Key:
        """Raises when the key is malformed, unknown, revoked or expired, or its network sent too many such keys."""
        digest = hash_key(raw)
        cached = self._keys.get(digest)
        now = time.monotonic()
        if cached is not None and (
            now - cached[1] < _CACHED_SECONDS
            or (self._is_subscribed and now - self._database.hub.alive_at < _CACHED_SECONDS)
        ):
            key = cached[0]
        else:
            if cached is None:
                self._bad_keys.check(network, now)
            found = await self._look_up(digest, now) if is_well_formed(raw) else None
            if found is None:
                self._bad_keys.count(network, now)
                raise InvalidApiKey
            key = found
        if key.ends is not None and now >= key.ends:
            raise InvalidApiKey
        self._bad_keys.trust(network, now)
        return key

    async def _look_up(self, digest: bytes, now: float) -> Key | None:
        generation = self._generation
        async with self._database.connection() as db:
            key = await self._load(db, digest)
        if key is None:
            self._keys.pop(digest, None)
            return None
        # A change while we read may be newer than what we read: use the key once, don't cache it.
        if generation == self._generation:
            if len(self._keys) >= _MAX_CACHED:
                self._keys.clear()
            self._keys[digest] = (key, now)
        return key

    def invalidate(self, company_id: str) -> None:
        self._generation += 1
        for digest in [digest for digest, (key, _) in self._keys.items() if str(key.company.id) == company_id]:
            del self._keys[digest]

    def start(self) -> None:
        hub = self._database.hub
        self._subscription = hub.subscribe(CHANNEL, self.invalidate, self._on_up, self._on_down)

    def stop(self) -> None:
        if self._subscription is not None:
            self._database.hub.unsubscribe(self._subscription)
            self._is_subscribed = False

    def _on_up(self) -> None:
        self._generation += 1
        self._keys.clear()
        self._is_subscribed = True

    def _on_down(self) -> None:
        self._is_subscribed = False
        log.warning("key changes not received", cached_seconds=_CACHED_SECONDS)
