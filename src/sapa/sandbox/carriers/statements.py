"""Statements of the simulated carriers: what they pay out for the cash that they collected."""

from datetime import datetime
from hashlib import sha256
from typing import Annotated

from msgspec import Meta, Struct

from sapa.db.pool import Connection
from sapa.http.responses import Timestamp
from sapa.sandbox.carriers import bookings
from sapa.sandbox.carriers.bookings import Booking
from sapa.sandbox.carriers.queries import get_now
from sapa.sandbox.carriers.simulator import SandboxStatementLine
from sapa.sandbox.carriers.simulators import SIMULATORS
from sapa.shipping.carriers.registry import list_adapters
from sapa.shipping.providers import Provider
from sapa.shipping.settlements.types import MAX_LINES
from sapa.shipping.shipments import actions as shipments
from sapa.values.instants import format_instant


class SandboxStatement(Struct, frozen=True, rename="camel"):
    """A simulated carrier's statement, in the form of a new settlement."""

    provider: Provider
    reference: Annotated[str, Meta(examples=["SBX-COD-4F1A9C02D7E3"])]
    remitted_at: Timestamp
    lines: list[SandboxStatementLine]


async def get_statement(
    db: Connection, company_id: int, provider: str, delivered_from: datetime | None
) -> SandboxStatement:
    """Of all parcels that were delivered since and are not paid out yet. The same parcels have the same reference."""
    adapters = {carrier.name for carrier in list_adapters(provider)}
    found = [
        (booking.reference, line)
        for booking in await bookings.list_bookings(db, company_id)
        if booking.adapter in adapters and (line := _find_line(booking, delivered_from))
    ]
    remitted = await shipments.list_remitted(db, company_id, [reference for reference, _ in found])
    lines = [line for reference, line in found if reference not in remitted]
    parcels = ",".join(sorted(line.parcel for line in lines[:MAX_LINES]))
    return SandboxStatement(
        provider=provider,
        reference=f"SBX-COD-{sha256(parcels.encode()).hexdigest()[:12].upper()}",
        remitted_at=format_instant(await get_now(db, company_id)),
        lines=lines[:MAX_LINES],
    )


def _find_line(booking: Booking, delivered_from: datetime | None) -> SandboxStatementLine | None:
    build_line = SIMULATORS[booking.adapter].build_statement_line
    state = booking.state
    if build_line is None or state.state != "delivered" or (delivered_from is not None and state.at < delivered_from):
        return None
    line = build_line(booking)
    return line if line.cod_amount else None
