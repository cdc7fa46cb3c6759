"""The interface of a carrier's simulator."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from sapa.context import AppContext
from sapa.sandbox.carriers.bookings import Booking, Build
from sapa.sandbox.carriers.scenarios import Kind
from sapa.shipping.settlements.types import SettlementLineIn
from sapa.values.hook_calls import HookAnswer, HookCall


class CarrierSimulator(Struct, frozen=True):
    kind: Kind
    """The kind of steps that its bookings take."""
    serve: Callable[[AppContext, HookCall], Awaitable[HookAnswer]]
    """Serves the carrier's API."""
    build_posting: Build
    """Builds the carrier's callbacks."""
    build_statement_line: Callable[[Booking], SettlementLineIn] | None = None
    """What the carrier pays out for a delivered parcel that collected cash; None if it collects none."""
