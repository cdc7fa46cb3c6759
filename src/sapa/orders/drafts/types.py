"""Draft orders: their structs and errors."""

from decimal import Decimal
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.http.errors import Conflict
from sapa.http.responses import StoredJson, Timestamp
from sapa.orders.pricing.types import (
    AdjustmentLimit,
    Discount,
    DiscountIn,
    Fee,
    LineItem,
    ShippingLine,
    ShippingLineIn,
    TaxLine,
    TaxLineIn,
)
from sapa.orders.types import (
    CustomerName,
    LineItemIn,
    LineItemPatch,
    Notes,
    OrderCustomerIn,
    OwnOrderId,
    ShippingAddress,
    ShippingAddressIn,
    Tags,
)
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind
from sapa.values.money import Currency

DRAFT_ORDER_ID = IdKind("dord_")
DraftOrderId = Annotated[str, DRAFT_ORDER_ID]

DraftStatus = Annotated[Literal["open", "completed"], EnumName("DraftOrderStatus")]


class DraftCustomer(Struct, frozen=True, rename="camel"):
    """The customer of a draft who is looked up or created when it is completed."""

    email: Annotated[str | None, Meta(examples=["ayu@example.com"])]
    phone_number: Annotated[str | None, Meta(examples=["+628123456789"])]
    first_name: Annotated[str | None, Meta(examples=["Ayu"])]
    last_name: Annotated[str | None, Meta(examples=["Lestari"])]


class DraftOrder(Struct, frozen=True, rename="camel"):
    """An order that is prepared and priced. It has no number and takes nothing from the stock until it is completed."""

    id: DraftOrderId
    status: DraftStatus
    order_id: Annotated[
        str | None, Meta(examples=[None], description="The id of the order that it became; null while it is open.")
    ]
    customer_id: Annotated[str | None, Meta(examples=["cust_01jc9y3q5me8w92v7x4t6r0n1k"])]
    customer: Annotated[Raw | None, StoredJson(DraftCustomer | None)]
    shipping_address: Annotated[Raw | None, StoredJson(ShippingAddress | None)]
    currency: Annotated[str, Meta(examples=["IDR"])]
    notes: Annotated[str | None, Meta(examples=["Please ring twice."])]
    tags: Annotated[list[str], Meta(examples=[["gift"]])]
    line_items: Annotated[Raw, StoredJson(list[LineItem])]
    discounts: Annotated[Raw, StoredJson(list[Discount])]
    shipping_lines: Annotated[Raw, StoredJson(list[ShippingLine])]
    fees: Annotated[Raw, StoredJson(list[Fee])]
    tax_lines: Annotated[Raw, StoredJson(list[TaxLine])]
    subtotal: Annotated[Decimal, Meta(examples=[300000])]
    discount_total: Annotated[Decimal, Meta(examples=[0])]
    shipping_total: Annotated[Decimal, Meta(examples=[0])]
    fee_total: Annotated[Decimal, Meta(examples=[0])]
    tax_total: Annotated[Decimal, Meta(examples=[0])]
    total: Annotated[Decimal, Meta(examples=[300000])]
    created_at: Timestamp
    updated_at: Timestamp
    completed_at: Timestamp | None


class DraftOrderIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new draft order. A line of a product variant keeps the price that the variant has now."""

    line_items: Annotated[list[LineItemIn], Meta(min_length=1, max_length=500)]
    customer_id: CustomerName | None = None
    customer: OrderCustomerIn | None = None
    shipping_address: ShippingAddressIn | None = None
    currency: Annotated[Currency, Meta(description="Defaults to the company's currency.")] | None = None
    total: Annotated[
        Decimal | None, Meta(examples=[None], description="Optional check: the total that you computed.")
    ] = None
    discounts: Annotated[list[DiscountIn], AdjustmentLimit] | None = None
    shipping_lines: Annotated[list[ShippingLineIn], AdjustmentLimit] | None = None
    fees: Annotated[list[Fee], AdjustmentLimit] | None = None
    tax_lines: Annotated[list[TaxLineIn], AdjustmentLimit] | None = None
    notes: Notes | None = None
    tags: Tags | None = None


class DraftOrderPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to an open draft: a field that you leave out keeps its value, null clears it. `lineItems` is the whole
    list; a line with its id is kept."""

    line_items: Annotated[list[LineItemPatch], Meta(min_length=1, max_length=500)] | UnsetType = UNSET
    customer_id: CustomerName | None | UnsetType = UNSET
    customer: OrderCustomerIn | None | UnsetType = UNSET
    shipping_address: ShippingAddressIn | None | UnsetType = UNSET
    discounts: Annotated[list[DiscountIn], AdjustmentLimit] | None | UnsetType = UNSET
    shipping_lines: Annotated[list[ShippingLineIn], AdjustmentLimit] | None | UnsetType = UNSET
    fees: Annotated[list[Fee], AdjustmentLimit] | None | UnsetType = UNSET
    tax_lines: Annotated[list[TaxLineIn], AdjustmentLimit] | None | UnsetType = UNSET
    notes: Notes | None | UnsetType = UNSET
    tags: Tags | None | UnsetType = UNSET


class DraftCompletion(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How to complete a draft."""

    order_id: OwnOrderId | None = None


class DraftCompleted(Conflict):
    """The draft is completed. Change the order that it became."""

    code = "DRAFT_COMPLETED"
    fix = "Change the order that it became: the draft has its id."
