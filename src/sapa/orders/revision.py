"""The part of an order that can change after it was placed."""

from decimal import Decimal
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct

from sapa.orders.pricing.arithmetic import PricedOrder
from sapa.orders.pricing.types import Discount, Fee, LineItem, ShippingLine, TaxLine
from sapa.orders.settlement.types import FinancialStatus, Fulfillment, FulfillmentStatus, OrderBalance, Payment, Refund
from sapa.orders.types import Status, StoredOrder

T = TypeVar("T")

_KINDS = (LineItem, Discount, ShippingLine, Fee, TaxLine, Payment, Refund, Fulfillment)
_DECODERS: dict[Any, Any] = {kind: msgspec.json.Decoder(list[kind]) for kind in _KINDS}  # type: ignore[valid-type]
_read_taken = msgspec.json.Decoder(dict[str, int]).decode


class StoredPrices(Protocol):
    """An order, or a draft of one, as it is stored."""

    @property
    def line_items(self) -> Raw: ...
    @property
    def discounts(self) -> Raw: ...
    @property
    def shipping_lines(self) -> Raw: ...
    @property
    def fees(self) -> Raw: ...
    @property
    def tax_lines(self) -> Raw: ...
    @property
    def subtotal(self) -> Decimal: ...
    @property
    def discount_total(self) -> Decimal: ...
    @property
    def shipping_total(self) -> Decimal: ...
    @property
    def fee_total(self) -> Decimal: ...
    @property
    def tax_total(self) -> Decimal: ...
    @property
    def total(self) -> Decimal: ...


class OrderState(Struct, frozen=True):
    """An order's statuses, and what later transitions depend on."""

    status: Status
    fulfillment_status: FulfillmentStatus
    financial_status: FinancialStatus
    archived_from: Status | None
    restocked: bool

    @property
    def real_status(self) -> Status:
        """The status, or the one before the order was archived."""
        return self.archived_from or self.status

    @property
    def cell(self) -> str:
        """The counter's cell, as the database computes it."""
        return f"{self.status}/{self.fulfillment_status}/{self.financial_status}"

    @property
    def recorded_cell(self) -> str:
        """What `cell` is when the order is stored with its payments, refunds and fulfilments."""
        return self.cell


class Revision(Struct, frozen=True):
    """An order as it is, or as a change makes it."""

    state: OrderState
    notes: str | None
    shipping_address: bytes | None
    tags: list[str]
    priced: PricedOrder
    balance: OrderBalance
    taken: dict[str, int]
    """Units that the order took from the stock and that can go back."""


def revision_of(stored: StoredOrder) -> Revision:
    """What the order is now."""
    return Revision(
        state=OrderState(
            stored.status, stored.fulfillment_status, stored.financial_status, stored.archived_from, stored.restocked
        ),
        notes=stored.notes,
        shipping_address=None if stored.shipping_address is None else bytes(stored.shipping_address),
        tags=stored.tags,
        priced=read_priced(stored),
        balance=OrderBalance(
            payments=_read(stored.payments, Payment),
            refunds=_read(stored.refunds, Refund),
            fulfillments=_read(stored.fulfillments, Fulfillment),
            total_paid=stored.total_paid,
            total_refunded=stored.total_refunded,
            outstanding=stored.outstanding,
            removed_goods=stored.removed_goods,
            removed_shipping=stored.removed_shipping,
            removed_fees=stored.removed_fees,
            removed_tax=stored.removed_tax,
        ),
        taken={} if stored.restocked else _read_taken(stored.taken),
    )


def read_priced(stored: StoredPrices) -> PricedOrder:
    return PricedOrder(
        line_items=_read(stored.line_items, LineItem),
        discounts=_read(stored.discounts, Discount),
        shipping_lines=_read(stored.shipping_lines, ShippingLine),
        fees=_read(stored.fees, Fee),
        tax_lines=_read(stored.tax_lines, TaxLine),
        subtotal=stored.subtotal,
        discount_total=stored.discount_total,
        shipping_total=stored.shipping_total,
        fee_total=stored.fee_total,
        tax_total=stored.tax_total,
        total=stored.total,
    )


def _read(raw: Raw, kind: type[T]) -> list[T]:
    found: list[T] = _DECODERS[kind].decode(raw)
    return found
