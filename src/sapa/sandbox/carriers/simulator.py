"""The interface of a carrier's simulator."""

from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct

from sapa.context import AppContext
from sapa.sandbox.carriers.bookings import Booking, Build
from sapa.sandbox.carriers.scenarios import Kind
from sapa.values.hook_calls import HookAnswer, HookCall


class SandboxStatementLine(Struct, frozen=True, rename="camel"):
    """One parcel, in the form of a settlement's line."""

    parcel: Annotated[str, Meta(examples=["SBX7Q2M4K9XW3TA"])]
    amount: Annotated[Decimal, Meta(examples=[147534])]
    cod_amount: Decimal | None
    cod_fee: Decimal | None
    carrier_fee: Decimal | None
    insurance_fee: Decimal | None


class CarrierSimulator(Struct, frozen=True):
    kind: Kind
    """The kind of steps that its bookings take."""
    serve: Callable[[AppContext, HookCall], Awaitable[HookAnswer]]
    """Serves the carrier's API."""
    build_posting: Build
    """Builds the carrier's callbacks."""
    build_statement_line: Callable[[Booking], SandboxStatementLine] | None = None
    """What the carrier pays out for a delivered parcel that collected cash; None if it collects none."""
