"""Which refunded units go back into the stock. Pure: no database."""

from collections.abc import Collection, Mapping, Sequence

import msgspec
from msgspec import Struct

from sapa.orders.pricing.types import LineItem
from sapa.orders.settlement.types import Refund, RefundIn, RefundLine


class Restocking(Struct, frozen=True):
    """Units that a refund returns, never more than the order took from the stock."""

    returned: dict[str, int]
    """By variant."""
    by_line: dict[str, int]
    taken: dict[str, int]
    """What is left of the units that the order took. Units that are refunded and not returned are gone."""


def build_restocking(lines: Sequence[LineItem], body: RefundIn, taken: Mapping[str, int]) -> Restocking:
    variants = list_variants(lines)
    left, returned, by_line = dict(taken), dict[str, int](), dict[str, int]()
    for line in body.line_items or ():
        variant = variants.get(line.id)
        units = min(line.quantity, left.get(variant, 0)) if variant else 0
        if not variant or not units:
            continue
        left[variant] -= units
        if line.restock:
            returned[variant] = returned.get(variant, 0) + units
            by_line[line.id] = units
    return Restocking(returned, by_line, {id: units for id, units in left.items() if units})


def count_restocked(
    refunded: Sequence[RefundLine], restocking: Restocking, lines: Sequence[LineItem], tracked: Collection[str]
) -> list[RefundLine]:
    """The lines with the units that went back: a variant that is gone or no longer tracked has no stock."""
    variants = list_variants(lines)
    return [
        msgspec.structs.replace(line, restocked=restocking.by_line.get(line.id, 0))
        if variants.get(line.id) in tracked
        else line
        for line in refunded
    ]


def refund_lines(lines: Sequence[LineItem], refund: Refund) -> list[LineItem]:
    """The order's lines after the refund."""
    units = {line.id: line.quantity for line in refund.line_items}
    return [
        msgspec.structs.replace(line, refunded_quantity=line.refunded_quantity + units.get(line.id, 0))
        for line in lines
    ]


def list_variants(lines: Sequence[LineItem]) -> dict[str, str]:
    """The variant of each line that has one."""
    return {line.id: line.product_variant.id for line in lines if line.product_variant is not None}
