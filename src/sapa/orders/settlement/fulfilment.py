"""Which units of an order were handed over. Pure: no database."""

from collections.abc import Sequence

import msgspec

from sapa.http.errors import Invalid
from sapa.orders.pricing.types import LineItem
from sapa.orders.settlement.types import (
    FULFILLMENT_ID,
    Fulfillment,
    FulfillmentLine,
    FulfillmentLineIn,
    FulfillmentStatus,
    InvalidTransition,
)


def derive_fulfillment_status(lines: Sequence[LineItem]) -> FulfillmentStatus:
    """Fulfilled when no line has open units and at least one unit was handed over."""
    return "fulfilled" if has_fulfilled(lines) and not has_open(lines) else "unfulfilled"


def has_fulfilled(lines: Sequence[LineItem]) -> bool:
    return any(line.fulfilled_quantity for line in lines)


def has_open(lines: Sequence[LineItem]) -> bool:
    return any(line.open_quantity for line in lines)


def build_fulfillment(
    lines: Sequence[LineItem], requested: Sequence[FulfillmentLineIn] | None, shipment_id: str | None, now: str
) -> Fulfillment:
    """The requested units, or all that are open; raises InvalidTransition when they are not open."""
    units = _list_open(lines) if requested is None else _check_units(lines, requested)
    if not units:
        raise InvalidTransition("All units of the order are fulfilled or refunded; there is nothing left to fulfil.")
    return Fulfillment(FULFILLMENT_ID.new(), units, shipment_id, now, None)


def fulfil_lines(lines: Sequence[LineItem], fulfillment: Fulfillment) -> list[LineItem]:
    units = {line.id: line.quantity for line in fulfillment.line_items}
    return [
        msgspec.structs.replace(line, fulfilled_quantity=line.fulfilled_quantity + units.get(line.id, 0))
        for line in lines
    ]


def reopen_lines(lines: Sequence[LineItem]) -> list[LineItem]:
    return [msgspec.structs.replace(line, fulfilled_quantity=0) for line in lines]


def cancel_fulfillments(fulfillments: Sequence[Fulfillment], now: str) -> list[Fulfillment]:
    return [one if one.cancelled_at else msgspec.structs.replace(one, cancelled_at=now) for one in fulfillments]


def _list_open(lines: Sequence[LineItem]) -> list[FulfillmentLine]:
    return [FulfillmentLine(line.id, line.open_quantity) for line in lines if line.open_quantity]


def _check_units(lines: Sequence[LineItem], requested: Sequence[FulfillmentLineIn]) -> list[FulfillmentLine]:
    open_units = {line.id: line.open_quantity for line in lines}
    checked: list[FulfillmentLine] = []
    for index, line in enumerate(requested):
        if line.id not in open_units:
            raise Invalid.field(f"lineItems[{index}].id", "is not the id of a line of this order")
        if any(line.id == other.id for other in checked):
            raise Invalid.field(f"lineItems[{index}].id", "is given twice; send each line once")
        if line.quantity > open_units[line.id]:
            raise InvalidTransition(
                f"The line {line.id} has {open_units[line.id]} units that are neither fulfilled nor refunded;"
                f" {line.quantity} cannot be fulfilled."
            )
        checked.append(FulfillmentLine(line.id, line.quantity))
    return checked
