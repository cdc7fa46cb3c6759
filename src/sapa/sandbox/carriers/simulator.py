"""What the simulator of a carrier consists of."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from sapa.context import AppContext
from sapa.sandbox.carriers.bookings import Build
from sapa.sandbox.carriers.scenarios import Kind
from sapa.values.hook_calls import HookAnswer, HookCall


class CarrierSimulator(Struct, frozen=True):
    kind: Kind
    """How a booking goes on by itself."""
    serve: Callable[[AppContext, HookCall], Awaitable[HookAnswer]]
    """Plays the carrier's API."""
    build_posting: Build
    """Writes the carrier's callbacks."""
