"""The interface of a carrier's simulator."""

from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct

from sapa.context import AppContext
from sapa.sandbox.carriers.bookings import Booking, Build
from sapa.sandbox.carriers.scenarios import Kind
from sapa.sandbox.external_access import RefusedCall
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
    find_company_id: Callable[[AppContext, HookCall], int | None]
    """The company whose credentials a call has; None if they are not valid."""
    refuse: Callable[[HookCall, RefusedCall], HookAnswer]
    """Refuses a call from outside in the carrier's shape."""
    build_statement_line: Callable[[Booking], SandboxStatementLine] | None = None
    """What the carrier pays out for a delivered parcel that collected cash; None if it collects none."""
    sign_in_paths: frozenset[str] = frozenset()
    """Paths below its prefix with the credentials in the body."""
