"""What was paid, refunded and fulfilled of an order: structs and errors."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.http.errors import Conflict
from sapa.http.responses import Timestamp
from sapa.orders.pricing.types import LineItemId
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind
from sapa.values.money import Amount, shorten

PAYMENT_ID = IdKind("pay_")
REFUND_ID = IdKind("rfd_")
FULFILLMENT_ID = IdKind("ful_")

PaymentId = Annotated[str, PAYMENT_ID]
RefundId = Annotated[str, REFUND_ID]
FulfillmentId = Annotated[str, FULFILLMENT_ID]

FulfillmentStatus = Annotated[Literal["unfulfilled", "fulfilled"], EnumName("FulfillmentStatus")]
FinancialStatus = Annotated[
    Literal["pending", "partially_paid", "paid", "partially_refunded", "refunded"], EnumName("FinancialStatus")
]

Method = Annotated[str, Meta(min_length=1, max_length=100, examples=["bank_transfer"], description="How it was paid.")]
Reference = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        examples=["BCA-20431"],
        description="Your own reference. The same payment with the same reference is recorded once.",
    ),
]
Units = Annotated[int, Meta(ge=1, le=1_000_000, examples=[1])]
LineName = Annotated[str, Meta(max_length=100, examples=["li_01jc9y3q5me8w92v7x4t6r0n1k"])]


class Payment(Struct, frozen=True, rename="camel"):
    """Money that was received for an order."""

    id: PaymentId
    amount: Annotated[Decimal, Meta(examples=[150000])]
    method: Annotated[
        str | None,
        Meta(examples=["bank_transfer"], description="Null if it was recorded by setting financialStatus to paid."),
    ]
    reference: Annotated[str | None, Meta(examples=["BCA-20431"])]
    paid_at: Timestamp
    created_at: Timestamp
    voided_at: Annotated[
        Timestamp | None,
        Meta(description="When financialStatus was set back to pending. A voided payment does not count."),
    ]


class PaymentIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A payment to record: at most the order's outstanding amount."""

    amount: Annotated[Amount, Meta(examples=[150000])]
    method: Method
    reference: Reference | None = None
    paid_at: Annotated[datetime, Meta(description="Defaults to now.")] | None = None


class RefundLine(Struct, frozen=True, rename="camel"):
    """Units of a line that were refunded."""

    id: LineItemId
    quantity: Annotated[int, Meta(examples=[1])]
    amount: Annotated[Decimal, Meta(examples=[150000], description="What these units were charged.")]
    restocked: Annotated[int, Meta(examples=[1], description="How many of them went back into the stock.")]


class RefundLineIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Units of a line to refund."""

    id: LineName
    quantity: Units
    restock: Annotated[
        bool, Meta(description="Whether they go back into the stock, at most as many as the order took from it.")
    ] = True


class Refund(Struct, frozen=True, rename="camel"):
    """Money that was returned for an order."""

    id: RefundId
    amount: Annotated[Decimal, Meta(examples=[150000])]
    shipping: Annotated[Decimal, Meta(examples=[0], description="How much of the shipping was refunded.")]
    adjustment: Annotated[
        Decimal, Meta(examples=[0], description="The amount minus what the lines and the shipping were charged.")
    ]
    line_items: list[RefundLine]
    reason: Annotated[str | None, Meta(examples=["Damaged"])]
    created_at: Timestamp


class RefundIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A refund: units of lines, shipping, an amount, or several of these."""

    line_items: Annotated[list[RefundLineIn], Meta(max_length=500)] | None = None
    shipping: Annotated[Amount, Meta(examples=[10000], description="How much of the shipping to refund.")] | None = None
    amount: (
        Annotated[
            Amount,
            Meta(
                examples=[None], description="The whole refund. Defaults to what the lines and shipping were charged."
            ),
        ]
        | None
    ) = None
    reason: Annotated[str, Meta(max_length=1000, examples=["Damaged"])] | None = None


class FulfillmentLine(Struct, frozen=True, rename="camel"):
    """Units of a line that were handed over."""

    id: LineItemId
    quantity: Annotated[int, Meta(examples=[1])]


class FulfillmentLineIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Units of a line to fulfil."""

    id: LineName
    quantity: Units


class Fulfillment(Struct, frozen=True, rename="camel"):
    """Units that were handed over together."""

    id: FulfillmentId
    line_items: list[FulfillmentLine]
    shipment_id: Annotated[str | None, Meta(examples=["shp_01jc9y3q5me8w92v7x4t6r0n1k"])]
    created_at: Timestamp
    cancelled_at: Annotated[Timestamp | None, Meta(description="When fulfillmentStatus was set back to unfulfilled.")]


class FulfillmentIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A fulfilment: the given units, or all that are still open."""

    line_items: Annotated[list[FulfillmentLineIn], Meta(min_length=1, max_length=500)] | None = None
    shipment_id: (
        Annotated[str, Meta(max_length=100, examples=[None], description="The shipment that carries them.")] | None
    ) = None


class OrderBalance(Struct, frozen=True):
    """What was paid, refunded and fulfilled, and what refunds took off the parts of the total."""

    payments: list[Payment]
    refunds: list[Refund]
    fulfillments: list[Fulfillment]
    total_paid: Decimal
    total_refunded: Decimal
    outstanding: Decimal
    removed_goods: Decimal
    removed_shipping: Decimal
    removed_fees: Decimal
    removed_tax: Decimal

    @property
    def removed(self) -> Decimal:
        return self.removed_goods + self.removed_shipping + self.removed_fees + self.removed_tax

    @property
    def refundable(self) -> Decimal:
        return shorten(self.total_paid - self.total_refunded)


class InvalidTransition(Conflict):
    """The order cannot change to the requested state."""

    code = "INVALID_TRANSITION"
    fix = "Get the order: its `status` and `fulfillmentStatus` decide what can follow."


class PaymentExceedsOutstanding(Conflict):
    """The payment is more than the order's outstanding amount."""

    code = "PAYMENT_EXCEEDS_OUTSTANDING"
    fix = "Get the order and record at most its outstanding amount."


class PaymentReferenceUsed(Conflict):
    """The order has another payment with this reference, of another amount or method."""

    code = "PAYMENT_REFERENCE_USED"
    fix = "If it is the same payment, send the same amount and method. Otherwise use another reference."


class RefundExceedsPaid(Conflict):
    """The refund is more than what was paid and not refunded yet."""

    code = "REFUND_EXCEEDS_PAID"
    fix = "Get the order and refund at most what was paid and is not refunded yet."


class OrderFull(Conflict):
    """The order has too many payments, refunds or fulfilments; an order can have 500 of each."""

    code = "ORDER_FULL"
    fix = "Create another order for what follows."
