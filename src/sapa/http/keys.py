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
from sapa.http.errors import InvalidApiKey
from sapa.values.company import Company

PREFIXES = {"live": "svc_live_", "test": "svc_test_"}
CHANNEL = "sapa_keys"
"""NOTIFY on this channel with a company id: its keys changed, forget them."""

GRACE_SECONDS = 24 * 3600
"""How long a key goes on working after it was rotated."""

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FORM = re.compile(r"(svc_(?:live|test)_[0-9A-Za-z]{32})([0-9A-Za-z]{6})").fullmatch
_MOST_CACHED = 10_000
_UNHEARD_SECONDS = 1.0

log = structlog.get_logger()


class Retirement(Struct, frozen=True):
    """A rotated key's last while, in Unix time."""

    since: int
    stops: int


class Key(Struct, eq=False):
    """What a valid key lets its bearer do."""

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
    full_until: float = 0.0
    """The rest of the running minute is refused without asking PostgreSQL, once it is used up."""


def new_key(environment: str) -> str:
    """Prefix, 32 random characters, 6 of checksum."""
    body = PREFIXES[environment] + "".join(secrets.choice(_BASE62) for _ in range(32))
    return body + _checksum(body)


def is_well_formed(raw: str) -> bool:
    """Whether the checksum fits: tells typos and noise from keys without a look-up."""
    parts = _FORM(raw)
    return parts is not None and _checksum(parts[1]) == parts[2]


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
    """The keys this process has seen. The hub tells of changes; while it is down, a key is believed for a second."""

    def __init__(self, database: Database, load: Callable[[Connection, bytes], Awaitable[Key | None]]) -> None:
        self._database = database
        self._load = load
        self._keys: dict[bytes, tuple[Key, float]] = {}
        self._is_heard = False
        self._generation = 0
        self._subscription: ChannelSubscription | None = None
        self.uses: dict[str, str] = {}
        """Key id → the address it was last used from, until somebody records it."""

    async def identify(self, raw: str) -> Key:
        """The key's bearer; refuses what is malformed, unknown, revoked or expired."""
        digest = hash_key(raw)
        known = self._keys.get(digest)
        now = time.monotonic()
        if known is not None and (self._is_heard or now - known[1] < _UNHEARD_SECONDS):
            key = known[0]
        else:
            if not is_well_formed(raw):
                raise InvalidApiKey
            key = await self._look_up(digest, now)
        if key.ends is not None and now >= key.ends:
            raise InvalidApiKey
        return key

    async def _look_up(self, digest: bytes, now: float) -> Key:
        generation = self._generation
        async with self._database.connection() as db:
            key = await self._load(db, digest)
        if key is None:
            self._keys.pop(digest, None)
            raise InvalidApiKey
        # What changed while we read may be newer than what we read: use it once, don't keep it.
        if generation == self._generation:
            if len(self._keys) >= _MOST_CACHED:
                self._keys.clear()
            self._keys[digest] = (key, now)
        return key

    def forget(self, company_id: str) -> None:
        self._generation += 1
        for digest in [digest for digest, (key, _) in self._keys.items() if str(key.company.id) == company_id]:
            del self._keys[digest]

    def start(self) -> None:
        hub = self._database.hub
        self._subscription = hub.subscribe(CHANNEL, self.forget, self._begin_to_hear, self._stop_hearing)

    def stop(self) -> None:
        if self._subscription is not None:
            self._database.hub.unsubscribe(self._subscription)
            self._is_heard = False

    def _begin_to_hear(self) -> None:
        self._generation += 1
        self._keys.clear()
        self._is_heard = True

    def _stop_hearing(self) -> None:
        self._is_heard = False
        log.warning("changes of keys are not received, so keys are cached for one second")
