"""Dash Electric's tokens: fetched once per process and reused until they expire."""

import asyncio
import time
from hashlib import sha256
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct

from sapa.outbound.client import Client
from sapa.shipping.carriers.calls import ask, read
from sapa.shipping.carriers.dash import calls, wire
from sapa.shipping.carriers.interface import BadCredentials, CarrierAccount, CarrierAway


class _CachedToken(Struct, frozen=True):
    token: str
    expires_at: float


class _TokenCache:
    """The tokens of one process's client."""

    def __init__(self) -> None:
        self.cached: dict[bytes, _CachedToken] = {}
        self.locks: dict[bytes, asyncio.Lock] = {}


_CACHES: WeakKeyDictionary[Client, _TokenCache] = WeakKeyDictionary()


async def get_token(connection: CarrierAccount, *, refresh: bool = False) -> str:
    """Concurrent callers wait for one fetch. Raises CarrierAway or BadCredentials."""
    cache, key = _CACHES.setdefault(connection.client, _TokenCache()), _key(connection)
    async with cache.locks.setdefault(key, asyncio.Lock()):
        cached = cache.cached.get(key)
        if refresh or cached is None or cached.expires_at < time.monotonic():
            cached = _CachedToken(await _fetch_token(connection), time.monotonic() + wire.TOKEN_SECONDS)
            cache.cached[key] = cached
        return cached.token


def discard(connection: CarrierAccount, token: str) -> None:
    """Discards a refused token, unless it was replaced in the meantime."""
    cache, key = _CACHES.get(connection.client), _key(connection)
    if cache and (cached := cache.cached.get(key)) and cached.token == token:
        del cache.cached[key]


async def _fetch_token(connection: CarrierAccount) -> str:
    credentials = connection.credentials
    request = calls.build_token(credentials.get("client_key", ""), credentials.get("client_secret", ""))
    response = await ask(connection, request)
    if response.status in {400, 401, 403}:
        raise BadCredentials("Dash refuses the client key and secret")
    if response.status >= 400:
        raise CarrierAway(f"it answered {response.status} instead of a token")
    return read(response, wire.TokenGrant).token


def _key(connection: CarrierAccount) -> bytes:
    account = [connection.address, sorted(connection.credentials.items())]
    return sha256(msgspec.json.encode(account)).digest()
