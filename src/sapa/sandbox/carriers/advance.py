"""Advances a simulated booking on request."""

from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http.errors import Invalid, NotFound
from sapa.sandbox.carriers import bookings
from sapa.sandbox.carriers.bookings import Booking
from sapa.sandbox.carriers.scenarios import UnknownState, advance_steps
from sapa.sandbox.carriers.simulators import SIMULATORS


async def advance(context: AppContext, tx: Tx, company_id: int, adapter: str, key: str, to: str | None) -> Booking:
    """To its next state, or to the given one. The carrier's callback is posted at once.

    The key is our reference, the carrier's number or the awb.
    """
    booking = await bookings.lock(tx, company_id, adapter, key)
    if booking is None:
        raise NotFound
    simulator = SIMULATORS[adapter]
    try:
        steps = advance_steps(booking.steps, booking.now, simulator.kind, to)
    except UnknownState as error:
        raise Invalid.field("to", str(error)) from None
    return await bookings.replace_steps(context, tx, booking, steps, simulator.build_posting)
