"""Compares a line of a statement with its shipment, to the last digit. Pure: no database.

The differences of a line always add up to what was paid out more or less than expected.
"""

from collections.abc import Sequence
from decimal import Decimal

from msgspec import Struct

from sapa.shipping.carriers.interface import Deduction
from sapa.shipping.settlements.types import DifferenceKind, SettlementLineIn
from sapa.shipping.states import GROUP_OF
from sapa.shipping.types import StoredShipment
from sapa.values.money import shorten

ENDED_UNDELIVERED = frozenset({"returned", "cancelled", "failed"})
"""Status groups in which no cash is collected any more."""


class Deviation(Struct, frozen=True):
    """An amount that is not as expected."""

    kind: DifferenceKind
    expected: Decimal
    actual: Decimal
    difference: Decimal
    """What the company got more; negative if it got less."""


class LineResult(Struct, frozen=True):
    expected: Decimal
    deviations: Sequence[Deviation]
    is_remittance: bool
    """Whether the line pays out the cash of its shipment."""


class _Part(Struct, frozen=True):
    """A part of what is paid out, as we know it and as the carrier states it."""

    kind: DifferenceKind
    sign: int
    """A fee is deducted."""
    known: Decimal
    stated: Decimal


def reconcile_line(
    line: SettlementLineIn, shipment: StoredShipment | None, deductions: Sequence[Deduction]
) -> LineResult:
    """`deductions` are the fees that the carrier keeps from the cash."""
    if shipment is None:
        return _refuse(line, "unknown_parcel")
    if shipment.cod_amount is None:
        return _refuse(line, "not_cash_on_delivery")
    if shipment.cod_remitted_at is not None:
        return _refuse(line, "remitted_before")
    if GROUP_OF[shipment.shipping_status] in ENDED_UNDELIVERED:
        return _refuse(line, "not_delivered")
    parts = _list_parts(line, shipment, shipment.cod_amount, deductions)
    expected = shorten(sum((part.sign * part.known for part in parts), Decimal(0)))
    stated = shorten(sum((part.sign * part.stated for part in parts), Decimal(0)))
    deviations = [
        Deviation(part.kind, part.known, part.stated, shorten(part.sign * (part.stated - part.known)))
        for part in parts
        if part.stated != part.known
    ]
    if line.amount != stated:
        deviations.append(Deviation("remitted_amount", stated, line.amount, shorten(line.amount - stated)))
    return LineResult(expected, deviations, is_remittance=True)


def _refuse(line: SettlementLineIn, kind: DifferenceKind) -> LineResult:
    """Nothing was expected."""
    deviation = Deviation(kind, Decimal(0), line.amount, line.amount)
    return LineResult(Decimal(0), [deviation] if line.amount else [], is_remittance=False)


def _list_parts(
    line: SettlementLineIn, shipment: StoredShipment, cod_amount: Decimal, deductions: Sequence[Deduction]
) -> list[_Part]:
    """What the carrier does not state counts as it is known; a fee that is not known counts as it is stated."""
    stated = cod_amount if line.cod_amount is None else line.cod_amount
    parts = [_Part("cod_amount", 1, cod_amount, stated)]
    for name in deductions:
        known_fee, stated_fee = getattr(shipment, name), getattr(line, name)
        known = stated_fee if known_fee is None else known_fee
        parts.append(_Part(name, -1, known or Decimal(0), (known if stated_fee is None else stated_fee) or Decimal(0)))
    return parts
