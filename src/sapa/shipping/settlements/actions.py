"""Cash on delivery after the delivery: the order is paid, the carrier's statements are reconciled, and every difference
is listed until somebody resolves it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256

import msgspec
from msgspec import Struct

from sapa.access.actions import read_clock
from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.http.responses import Created
from sapa.orders import actions as orders
from sapa.orders.settlement.types import OrderFull, PaymentIn
from sapa.shipping.carriers.interface import Deduction
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.events import CashCollected, CashParcelReturned
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.settlements import queries
from sapa.shipping.settlements.reconcile import Deviation, LineResult, reconcile_line
from sapa.shipping.settlements.types import (
    DIFFERENCE_ID,
    MAX_LINES,
    SETTLEMENT_ID,
    CodDifference,
    DifferenceKind,
    Settlement,
    SettlementIn,
    SettlementLineIn,
)
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.types import StoredShipment
from sapa.values.company import Company
from sapa.values.instants import truncate_to_milliseconds
from sapa.values.money import BadMoney, parse_amount, parse_currency, shorten

LOCAL_DEDUCTIONS: Sequence[Deduction] = ("cod_fee",)
"""Of shipments without a carrier's API: the fee that the caller stored."""
METHOD = "cod"
"""Of the payments that carriers collect."""
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
MAX_AHEAD = timedelta(days=1)
MAX_LISTED = 5 * MAX_LINES
"""Of one settlement: a line has at most five differences."""


class _SettledLine(Struct, frozen=True):
    number: int
    line: SettlementLineIn
    shipment: StoredShipment | None
    result: LineResult


async def record_collection(tx: Tx, company: Company, announcement: CashCollected) -> None:
    """The cash pays the order; what it does not owe is listed."""
    shipment = announcement.shipment
    collected = shipment.cod_amount or Decimal(0)
    paid = await _pay_order(tx, company, shipment, collected)
    if shipment.order_id is not None:
        await _record_difference(tx, company, shipment, "order_amount", paid, collected)


async def _pay_order(tx: Tx, company: Company, shipment: StoredShipment, collected: Decimal) -> Decimal:
    """Records what the order owes, at most what was collected, and returns it."""
    order = None if shipment.order_id is None else await orders.find(tx, company, shipment.order_id)
    if order is None or order.currency != shipment.currency:
        return Decimal(0)
    real, collected_at = (await read_clock(tx, company.id)).real, shipment.cod_collected_at
    paid_at = None if collected_at is None else min(collected_at, real)  # a test clock may be ahead
    body = PaymentIn(amount=collected, method=METHOD, reference=shipment.id, paid_at=paid_at)
    try:
        payment = await orders.record_collected(tx, company, order.id, body)
    except OrderFull:
        return Decimal(0)
    return Decimal(0) if payment is None else payment.amount


async def record_return(tx: Tx, company: Company, announcement: CashParcelReturned) -> None:
    """The order stays paid, because nobody knows who has the cash: a person has to find out."""
    shipment = announcement.shipment
    await _record_difference(tx, company, shipment, "returned", Decimal(0), shipment.cod_amount or Decimal(0))


async def _record_difference(
    tx: Tx, company: Company, shipment: StoredShipment, kind: DifferenceKind, expected: Decimal, actual: Decimal
) -> None:
    if expected != actual:
        row = _build_row(
            Deviation(kind, expected, actual, shorten(actual - expected)), shipment, shipment.currency, _name(shipment)
        )
        await queries.insert_differences(tx, company.id, [row])


async def settle(tx: Tx, company: Company, body: SettlementIn) -> Settlement | Created[Settlement]:
    """Reconciles a statement. The same statement again changes nothing."""
    body = await _normalise(tx, company, body)
    fingerprint = sha256(msgspec.json.encode(body)).digest()
    await queries.lock_statements(tx, company.id)
    existing = await queries.find_same(tx, company.id, body.provider, body.reference, fingerprint)
    if existing is not None:
        return existing
    currency = body.currency or company.currency
    settled = await _reconcile(tx, company, body, currency)
    settlement = await queries.insert_settlement(
        tx, company.id, SETTLEMENT_ID.new(), body.provider, body.reference, body.remitted_at, currency, len(settled),
        sum(bool(one.result.deviations) for one in settled),
        shorten(sum((one.result.expected for one in settled), Decimal(0))),
        shorten(sum((one.line.amount for one in settled), Decimal(0))),
        fingerprint,
    )  # fmt: skip
    await queries.insert_lines(tx, company.id, settlement.id, [_build_line(one) for one in settled])
    differences = [
        _build_row(deviation, one.shipment, currency, one.line.parcel, settlement.id, one.number)
        for one in settled
        for deviation in one.result.deviations
    ]
    await queries.insert_differences(tx, company.id, differences)
    return Created(settlement)


async def _normalise(tx: Tx, company: Company, body: SettlementIn) -> SettlementIn:
    """Amounts in their shortest form. Raises Invalid."""
    if not PROVIDERS[body.provider].collects_cash:
        raise Invalid.field("provider", f"{body.provider} does not collect cash on delivery")
    if not body.reference.strip():
        raise Invalid.field("reference", "must not be blank")
    try:
        currency = parse_currency(body.currency or company.currency)
    except BadMoney as error:
        raise Invalid.field("currency", str(error)) from None
    if body.remitted_at.tzinfo is None:
        raise Invalid.field("remittedAt", "must be an ISO 8601 date-time with an offset")
    if not EARLIEST <= body.remitted_at <= (await read_clock(tx, company.id)).now + MAX_AHEAD:
        raise Invalid.field("remittedAt", f"must be from {EARLIEST.year} on, and not in the future")
    return msgspec.structs.replace(
        body,
        currency=currency,
        remitted_at=truncate_to_milliseconds(body.remitted_at.astimezone(UTC)),
        lines=[_normalise_line(f"lines[{n}]", line, currency) for n, line in enumerate(body.lines)],
    )


def _normalise_line(field: str, line: SettlementLineIn, currency: str) -> SettlementLineIn:
    changes: dict[str, object] = {"parcel": line.parcel.strip()}
    if not changes["parcel"]:
        raise Invalid.field(f"{field}.parcel", "must not be blank")
    for name, shown in _AMOUNTS.items():
        amount = getattr(line, name)
        if amount is not None:
            try:
                short = parse_amount(abs(amount) if name == "amount" else amount, currency)
            except BadMoney as error:
                raise Invalid.field(f"{field}.{shown}", str(error)) from None
            changes[name] = -short if amount < 0 else short
    return msgspec.structs.replace(line, **changes)


_AMOUNTS = {
    "amount": "amount",
    "cod_amount": "codAmount",
    "cod_fee": "codFee",
    "carrier_fee": "carrierFee",
    "insurance_fee": "insuranceFee",
}
"""The amounts of a line, and their names on the wire."""


async def _reconcile(tx: Tx, company: Company, body: SettlementIn, currency: str) -> list[_SettledLine]:
    """Line by line, so that a parcel that a statement has twice is paid out once."""
    numbers = [line.parcel for line in body.lines]
    found = await shipments.lock_parcels(tx, company.id, numbers, body.provider, currency)
    current = {shipment.id: shipment for shipment in found.values()}
    settled = []
    for number, line in enumerate(body.lines, start=1):
        match = found.get(line.parcel)
        shipment = None if match is None else current[match.id]
        result = reconcile_line(line, shipment, () if shipment is None else _list_deductions(shipment))
        settled.append(_SettledLine(number, line, shipment, result))
        if shipment is not None and result.is_remittance:
            current[shipment.id] = await _remit(tx, company, shipment, body, line)
    return settled


def _list_deductions(shipment: StoredShipment) -> Sequence[Deduction]:
    carrier = CARRIERS.get(shipment.adapter or "")
    return LOCAL_DEDUCTIONS if carrier is None else carrier.cod_deductions


async def _remit(
    tx: Tx, company: Company, shipment: StoredShipment, body: SettlementIn, line: SettlementLineIn
) -> StoredShipment:
    """Fees that were not known are filled in from the statement."""
    fees = {
        name: getattr(line, name)
        for name in ("cod_fee", "carrier_fee", "insurance_fee")
        if getattr(shipment, name) is None
    }
    after = msgspec.structs.replace(shipment, cod_remitted_at=body.remitted_at, cod_remitted_amount=line.amount, **fees)
    return await shipments.store(tx, company, shipment, after)


def _name(shipment: StoredShipment) -> str:
    return shipment.awb or shipment.order_no or shipment.id


def _build_line(one: _SettledLine) -> list[object]:
    line = one.line
    return [
        one.number, line.parcel, one.shipment and one.shipment.id, line.cod_amount, line.cod_fee, line.carrier_fee,
        line.insurance_fee, one.result.expected, line.amount,
    ]  # fmt: skip


def _build_row(
    deviation: Deviation,
    shipment: StoredShipment | None,
    currency: str,
    parcel: str,
    settlement_id: str | None = None,
    line: int | None = None,
) -> list[object]:
    return [
        DIFFERENCE_ID.new(), deviation.kind, parcel, shipment and shipment.id, shipment and shipment.order_id,
        settlement_id, line, currency, deviation.expected, deviation.actual, deviation.difference,
    ]  # fmt: skip


async def resolve(tx: Tx, company: Company, id: str, note: str | None) -> CodDifference:
    """A difference that was resolved before keeps its note."""
    now = (await read_clock(tx, company.id)).now
    resolved = await queries.resolve_difference(tx, company.id, id, truncate_to_milliseconds(now), note)
    return resolved or await queries.get_difference(tx, company.id, id)


async def list_differences_of(db: Connection, company: Company, settlement_id: str) -> list[CodDifference]:
    """All differences of a settlement, newest first."""
    filters = {"settlement_id": settlement_id}
    differences, _ = await queries.list_differences(db, company.id, filters, MAX_LISTED, 0)
    return differences
