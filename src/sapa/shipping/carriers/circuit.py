"""A carrier that fails again and again is left alone for a while, so that nobody waits for what will not come.

What is known of a connection stays in the process that found it out: each learns it from a handful of calls, no call
pays a read or a write for it, and a process that was wrong is wrong for half a minute. The simulators of a test
environment are never left alone: they fail on request, one shipment at a time.
"""

import time
from math import ceil
from weakref import WeakKeyDictionary

from msgspec import Struct

from sapa.outbound.client import Client
from sapa.shipping.carriers.interface import CarrierAccount

MOST_FAILURES = 5
REST_SECONDS = 30.0


class _Trouble(Struct):
    failures: int = 0
    rests_until: float = 0.0


_TROUBLES: WeakKeyDictionary[Client, dict[str, _Trouble]] = WeakKeyDictionary()
"""Of the connections that one process's client calls, by their ids."""


def find_rest(connection: CarrierAccount) -> str | None:
    """Why the carrier is not called now; None when it may be."""
    trouble = _troubles(connection).get(connection.id)
    left = 0.0 if trouble is None else trouble.rests_until - time.monotonic()
    if trouble is None or left <= 0:
        return None
    return f"it failed {trouble.failures} times in a row and is asked again in {ceil(left)} seconds"


def enter(connection: CarrierAccount) -> str | None:
    """The same for whoever calls it then: of those who come after the rest one goes ahead, and the others wait."""
    reason = find_rest(connection)
    trouble = _troubles(connection).get(connection.id)
    if reason is None and trouble is not None and trouble.failures >= MOST_FAILURES:
        trouble.rests_until = time.monotonic() + REST_SECONDS
    return reason


def note_failure(connection: CarrierAccount) -> None:
    """No answer came that could mean anything."""
    if connection.company.is_test:
        return
    trouble = _troubles(connection).setdefault(connection.id, _Trouble())
    trouble.failures += 1
    if trouble.failures >= MOST_FAILURES:
        trouble.rests_until = time.monotonic() + REST_SECONDS


def forget(connection: CarrierAccount) -> None:
    """It answered, or somebody wants to see for themselves whether it does."""
    _troubles(connection).pop(connection.id, None)


def _troubles(connection: CarrierAccount) -> dict[str, _Trouble]:
    return _TROUBLES.setdefault(connection.client, {})
