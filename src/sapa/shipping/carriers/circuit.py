"""Circuit breaker: a carrier that keeps failing is not called for a while, so that callers do not wait for a time-out.

The state is kept per process: each process learns it from a few calls, without a read or a write per call, and recovers
in half a minute.
"""

import time
from math import ceil
from weakref import WeakKeyDictionary

from msgspec import Struct

from sapa.outbound.client import Client
from sapa.shipping.carriers.interface import CarrierAccount

MAX_FAILURES = 5
OPEN_SECONDS = 30.0


class _CircuitState(Struct):
    failures: int = 0
    open_until: float = 0.0


_CIRCUITS: WeakKeyDictionary[Client, dict[str, _CircuitState]] = WeakKeyDictionary()
"""By client and connection id."""


def find_open_reason(connection: CarrierAccount) -> str | None:
    """Why the carrier is not called now; None if it may be."""
    state = _circuits(connection).get(connection.id)
    left = 0.0 if state is None else state.open_until - time.monotonic()
    if state is None or left <= 0:
        return None
    return f"it failed {state.failures} times in a row and is called again in {ceil(left)} seconds"


def enter(connection: CarrierAccount) -> str | None:
    """Like find_open_reason, for the next caller: after the pause one call goes through and the others wait."""
    reason = find_open_reason(connection)
    state = _circuits(connection).get(connection.id)
    if reason is None and state is not None and state.failures >= MAX_FAILURES:
        state.open_until = time.monotonic() + OPEN_SECONDS
    return reason


def record_failure(connection: CarrierAccount) -> None:
    """There was no usable response."""
    if not connection.breaks_circuit:
        return
    state = _circuits(connection).setdefault(connection.id, _CircuitState())
    state.failures += 1
    if state.failures >= MAX_FAILURES:
        state.open_until = time.monotonic() + OPEN_SECONDS


def reset(connection: CarrierAccount) -> None:
    """The carrier responded, or a person tests the connection."""
    _circuits(connection).pop(connection.id, None)


def _circuits(connection: CarrierAccount) -> dict[str, _CircuitState]:
    return _CIRCUITS.setdefault(connection.client, {})
