"""The interface of a carrier's simulator."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from sapa.context import AppContext
from sapa.sandbox.carriers.bookings import Build
from sapa.sandbox.carriers.scenarios import Kind
from sapa.values.hook_calls import HookAnswer, HookCall


class CarrierSimulator(Struct, frozen=True):
    kind: Kind
    """The kind of steps that its bookings take."""
    serve: Callable[[AppContext, HookCall], Awaitable[HookAnswer]]
    """Serves the carrier's API."""
    build_posting: Build
    """Builds the carrier's callbacks."""
