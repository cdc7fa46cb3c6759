"""What the price of an order is made of: lines, discounts, shipping lines, fees and tax lines."""

from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct

from sapa.values.ids import IdKind
from sapa.values.money import Amount

LINE_ITEM_ID = IdKind("li_")
LineItemId = Annotated[str, LINE_ITEM_ID]

Label = Annotated[str, Meta(min_length=1, max_length=255, examples=["JNE REG"])]
Code = Annotated[str, Meta(min_length=1, max_length=255, examples=["LEBARAN10"])]
Percentage = Annotated[
    Decimal, Meta(examples=[10], description="From 0 to 100, with at most 4 decimal places: 11 is 11 %.")
]
Adjustments = Meta(max_length=50)


class LineDiscount(Struct, frozen=True, rename="camel"):
    """The discount on one line, or on one shipping line."""

    amount: Annotated[Decimal, Meta(examples=[15000], description="In money, also if it was given as a percentage.")]
    percentage: Annotated[Decimal | None, Meta(examples=[10], description="Null if an amount was given.")]
    title: Annotated[str | None, Meta(examples=["Member"])]


class LineItemVariant(Struct, frozen=True, rename="camel"):
    """The product variant of a line, as it was when the order was placed."""

    id: Annotated[str, Meta(examples=["var_01jc9y3q5me8w92v7x4t6r0n1k"])]
    key: Annotated[str, Meta(examples=["250 g"])]
    price: Amount
    compare_at_price: Annotated[Decimal | None, Meta(examples=[175000])]
    inventory_sku: Annotated[str | None, Meta(examples=["GAYO-250"])]
    media: Annotated[str | None, Meta(examples=["https://example.com/gayo.png"])]


class LineItem(Struct, frozen=True, rename="camel"):
    """What was ordered, how many of it, and at which price each."""

    id: LineItemId
    quantity: Annotated[int, Meta(examples=[2])]
    price: Amount
    title: Annotated[str, Meta(examples=["Kopi Gayo 250 g"])]
    product_variant: LineItemVariant | None
    discount: LineDiscount | None
    total: Annotated[Decimal, Meta(examples=[300000], description="price × quantity − discount")]
    discount_allocation: Annotated[Decimal, Meta(examples=[0], description="The line's part of the order's discounts.")]
    tax: Annotated[Decimal, Meta(examples=[0], description="The taxes on the line, included or not.")]
    charged: Annotated[
        Decimal,
        Meta(examples=[300000], description="total − discountAllocation + the taxes that are not included."),
    ]
    fulfilled_quantity: Annotated[int, Meta(examples=[0])]
    refunded_quantity: Annotated[int, Meta(examples=[0])]

    @property
    def open_quantity(self) -> int:
        """Units that are neither fulfilled nor refunded; those that were not fulfilled are refunded first."""
        return max(0, self.quantity - self.fulfilled_quantity - self.refunded_quantity)


class LineDiscountIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A discount on one line: an amount or a percentage."""

    amount: Amount | None = None
    percentage: Percentage | None = None
    title: Label | None = None


class Discount(Struct, frozen=True, rename="camel"):
    """A discount on the whole order. It is spread over the lines: see discountAllocation of each line."""

    code: Annotated[str | None, Meta(examples=["LEBARAN10"])]
    title: Annotated[str | None, Meta(examples=["Lebaran"])]
    amount: Annotated[Decimal, Meta(examples=[30000], description="In money, also if it was given as a percentage.")]
    percentage: Annotated[Decimal | None, Meta(examples=[10], description="Of the lines after their own discounts.")]


class DiscountIn(LineDiscountIn, frozen=True, kw_only=True):
    """A discount on the whole order: an amount, or a percentage of the lines after their own discounts."""

    code: Code | None = None


class ShippingLine(Struct, frozen=True, rename="camel"):
    """A way of shipping and what the customer pays for it."""

    title: Label
    code: Annotated[str | None, Meta(examples=["REG"])]
    price: Amount
    discount: LineDiscount | None
    total: Annotated[Decimal, Meta(examples=[18000], description="price − discount")]
    tax: Annotated[Decimal, Meta(examples=[0], description="The taxes on it, included or not.")]
    charged: Annotated[Decimal, Meta(examples=[18000], description="total + the taxes that are not included.")]


class ShippingLineIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What the customer pays for shipping."""

    title: Label
    price: Amount
    code: Code | None = None
    discount: LineDiscountIn | None = None


class Fee(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is charged besides goods and shipping: a service fee, an insurance. Fees are not taxed."""

    title: Label
    amount: Amount


class TaxLine(Struct, frozen=True, rename="camel"):
    """A tax on goods and shipping."""

    title: Annotated[str, Meta(examples=["PPN"])]
    rate: Annotated[Decimal | None, Meta(examples=[11], description="In percent; null if an amount was given.")]
    amount: Annotated[Decimal, Meta(examples=[29730])]
    included: Annotated[bool, Meta(description="Whether the prices contain it; otherwise it is added to the total.")]


class TaxLineIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A tax: a rate, which is computed for each line and rounded half up, or an amount for the whole order."""

    title: Label
    included: Annotated[bool, Meta(description="Whether the prices contain it; otherwise it is added to the total.")]
    rate: Percentage | None = None
    amount: Amount | None = None
