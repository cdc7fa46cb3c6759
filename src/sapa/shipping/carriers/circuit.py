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
OPEN_SECONDS = 30.0


class _CircuitState(Struct):
    failures: int = 0
    open_until: float = 0.0


_CIRCUITS: WeakKeyDictionary[Client, dict[str, _CircuitState]] = WeakKeyDictionary()
"""Of the connections that one process's client calls, by their ids."""


def find_open_reason(connection: CarrierAccount) -> str | None:
    """Why the carrier is not called now; None when it may be."""
    state = _circuits(connection).get(connection.id)
    left = 0.0 if state is None else state.open_until - time.monotonic()
    if state is None or left <= 0:
        return None
    return f"it failed {state.failures} times in a row and is asked again in {ceil(left)} seconds"


def enter(connection: CarrierAccount) -> str | None:
    """The same for whoever calls it then: of those who come after the rest one goes ahead, and the others wait."""
    reason = find_open_reason(connection)
    state = _circuits(connection).get(connection.id)
    if reason is None and state is not None and state.failures >= MOST_FAILURES:
        state.open_until = time.monotonic() + OPEN_SECONDS
    return reason


def record_failure(connection: CarrierAccount) -> None:
    """No answer came that could mean anything."""
    if connection.company.is_test:
        return
    state = _circuits(connection).setdefault(connection.id, _CircuitState())
    state.failures += 1
    if state.failures >= MOST_FAILURES:
        state.open_until = time.monotonic() + OPEN_SECONDS


def reset(connection: CarrierAccount) -> None:
    """It answered, or somebody wants to see for themselves whether it does."""
    _circuits(connection).pop(connection.id, None)


def _circuits(connection: CarrierAccount) -> dict[str, _CircuitState]:
    return _CIRCUITS.setdefault(connection.client, {})
