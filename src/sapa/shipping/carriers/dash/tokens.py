"""Dash Electric's tokens: asked for once, used by every call of a process until they end."""

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


class _Held(Struct, frozen=True):
    token: str
    ends: float


class _Wallet:
    """The tokens that belong to one process's client."""

    def __init__(self) -> None:
        self.held: dict[bytes, _Held] = {}
        self.asking: dict[bytes, asyncio.Lock] = {}


_WALLETS: WeakKeyDictionary[Client, _Wallet] = WeakKeyDictionary()


async def get_token(connection: CarrierAccount, *, anew: bool = False) -> str:
    """Those who need one at the same time wait for the one that asks. Raises CarrierAway or BadCredentials."""
    wallet, key = _WALLETS.setdefault(connection.client, _Wallet()), _key(connection)
    async with wallet.asking.setdefault(key, asyncio.Lock()):
        held = wallet.held.get(key)
        if anew or held is None or held.ends < time.monotonic():
            held = _Held(await _ask(connection), time.monotonic() + wire.TOKEN_SECONDS)
            wallet.held[key] = held
        return held.token


def forget(connection: CarrierAccount, token: str) -> None:
    """A token that was refused; another one that came in its place stays."""
    wallet, key = _WALLETS.get(connection.client), _key(connection)
    if wallet and (held := wallet.held.get(key)) and held.token == token:
        del wallet.held[key]


async def _ask(connection: CarrierAccount) -> str:
    credentials = connection.credentials
    request = calls.build_token(credentials.get("client_key", ""), credentials.get("client_secret", ""))
    response = await ask(connection, request)
    if response.status in {400, 401, 403}:
        raise BadCredentials("Dash refuses the client key and secret")
    if response.status >= 400:
        raise CarrierAway(f"it answered {response.status} instead of a token")
    return read(response, wire.Granted).token


def _key(connection: CarrierAccount) -> bytes:
    said = [connection.address, sorted(connection.credentials.items())]
    return sha256(msgspec.json.encode(said)).digest()
