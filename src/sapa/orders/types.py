"""Orders: their structs, errors and events."""

from decimal import Decimal
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.customers.types import AddressId, CustomerRef, Email, LastName, Name, Phone, Tag
from sapa.events import Event
from sapa.http.errors import Conflict
from sapa.http.responses import StoredJson, Timestamp
from sapa.orders.pricing.types import (
    AdjustmentLimit,
    Discount,
    DiscountIn,
    Fee,
    LineDiscountIn,
    LineItem,
    ShippingLine,
    ShippingLineIn,
    TaxLine,
    TaxLineIn,
)
from sapa.orders.settlement.types import FinancialStatus, Fulfillment, FulfillmentStatus, Payment, Refund
from sapa.ports import Announcement
from sapa.values.api_base import Base
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind
from sapa.values.money import Amount, Currency

ORDER_ID = IdKind("order_")

OrderId = Annotated[str, ORDER_ID]

Status = Annotated[Literal["active", "archived", "cancelled", "refunded"], EnumName("OrderStatus")]

OwnOrderId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        examples=["web-20431"],
        description="Your own id for the order, unique. It must not start or end with whitespace.",
    ),
]
VariantName = Annotated[
    str,
    Meta(
        max_length=100,
        examples=[None],
        description="The id of a variant on sale. The line takes its title and price from it.",
    ),
]
CustomerName = Annotated[
    str, Meta(max_length=100, examples=[None], description="The customer's id, instead of customer.")
]
Title = Annotated[str, Meta(min_length=1, max_length=255, examples=["Kopi Gayo 250 g"])]
Quantity = Annotated[int, Meta(ge=1, le=1_000_000, examples=[2])]
Notes = Annotated[str, Meta(max_length=5000, examples=["Please ring twice."])]
Tags = Annotated[list[Tag], Meta(max_length=250)]
Line = Annotated[str, Meta(max_length=500)]


_read_customer = msgspec.json.Decoder(CustomerRef).decode


class LineItemIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A line to order: a productVariantId, or a title and a price of your own."""

    quantity: Quantity
    product_variant_id: VariantName | None = None
    title: Title | None = None
    price: Amount | None = None
    discount: LineDiscountIn | None = None


class LineItemPatch(LineItemIn, frozen=True, kw_only=True):
    """A line of the order's new list: an existing one by its id, or a new one.

    An existing line keeps what you leave out. If its quantity goes down, a discount that was given as an amount goes
    down with it.
    """

    id: Annotated[str, Meta(max_length=100, examples=[None], description="The id of an existing line.")] | None = None
    discount: LineDiscountIn | None | UnsetType = UNSET  # type: ignore[assignment]


class ShippingAddress(Struct, frozen=True, rename="camel"):
    """The address that an order ships to."""

    id: AddressId
    first_name: Annotated[str | None, Meta(examples=["Ayu"])]
    last_name: Annotated[str | None, Meta(examples=["Lestari"])]
    phone: Annotated[str | None, Meta(examples=["+628123456789"])]
    address1: Annotated[str, Meta(examples=["Jl. Merdeka 17"])]
    address2: Annotated[str | None, Meta(examples=["Lantai 2"])]
    city: Annotated[str | None, Meta(examples=["Bandung"])]
    province: Annotated[str | None, Meta(examples=["Jawa Barat"])]
    country: Annotated[str | None, Meta(examples=["Indonesia"])]
    zip: Annotated[str | None, Meta(examples=["40111"])]


class ShippingAddressIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The address to ship an order to."""

    address1: Annotated[str, Meta(min_length=1, max_length=500, examples=["Jl. Merdeka 17"])]
    id: Annotated[str | None, Meta(examples=[None], description="The id of the order's existing address.")] = None
    first_name: Name | None = None
    last_name: LastName | None = None
    phone: Line | None = None
    address2: Line | None = None
    city: Line | None = None
    province: Line | None = None
    country: Line | None = None
    zip: Line | None = None


class Order(Struct, frozen=True, rename="camel"):
    """An order. Products that change later do not change its lines and prices; the customer is kept current.

    `total` = subtotal − discountTotal + shippingTotal + feeTotal + the taxes that are not included. `outstanding` is
    what the customer still has to pay; if it is negative, that much has to be refunded.
    """

    id: OrderId
    order_id: Annotated[str, Meta(examples=["web-20431"])]
    order_number: Annotated[str, Meta(examples=["1001"])]
    status: Status
    fulfillment_status: FulfillmentStatus
    financial_status: FinancialStatus
    total: Annotated[Decimal, Meta(examples=[300000])]
    currency: Annotated[str, Meta(examples=["IDR"])]
    notes: Annotated[str | None, Meta(examples=["Please ring twice."])]
    customer: Annotated[Raw | None, StoredJson(CustomerRef | None)]
    line_items: Annotated[Raw, StoredJson(list[LineItem])]
    shipping_address: Annotated[Raw | None, StoredJson(ShippingAddress | None)]
    tags: Annotated[list[str], Meta(examples=[["gift"]])]
    subtotal: Annotated[Decimal, Meta(examples=[300000], description="The sum of price × quantity.")]
    discount_total: Annotated[Decimal, Meta(examples=[0], description="Discounts of the lines and of the order.")]
    shipping_total: Annotated[Decimal, Meta(examples=[0])]
    fee_total: Annotated[Decimal, Meta(examples=[0])]
    tax_total: Annotated[Decimal, Meta(examples=[0], description="All taxes, included or not.")]
    total_paid: Annotated[Decimal, Meta(examples=[0])]
    total_refunded: Annotated[Decimal, Meta(examples=[0])]
    outstanding: Annotated[Decimal, Meta(examples=[300000])]
    discounts: Annotated[Raw, StoredJson(list[Discount])]
    shipping_lines: Annotated[Raw, StoredJson(list[ShippingLine])]
    fees: Annotated[Raw, StoredJson(list[Fee])]
    tax_lines: Annotated[Raw, StoredJson(list[TaxLine])]
    payments: Annotated[Raw, StoredJson(list[Payment])]
    refunds: Annotated[Raw, StoredJson(list[Refund])]
    fulfillments: Annotated[Raw, StoredJson(list[Fulfillment])]
    created_at: Timestamp
    updated_at: Timestamp

    @property
    def customer_id(self) -> str | None:
        return None if self.customer is None else _read_customer(self.customer).id

    @property
    def total_sold(self) -> Decimal:
        """The total without what refunds took off it."""
        return self.outstanding + self.total_paid - self.total_refunded


class InsertedOrder(Struct, frozen=True):
    """What the database adds to a new order, and whether webhooks have to be delivered."""

    order_number: str
    created_at: Timestamp
    updated_at: Timestamp
    has_deliveries: bool


class UpdatedOrder(Struct, frozen=True):
    """What the database adds to a changed order, and whether webhooks have to be delivered."""

    updated_at: Timestamp
    has_deliveries: bool


class CustomerSales(Struct, frozen=True):
    """What a customer bought in one currency, without cancelled orders."""

    currency: str
    orders: int
    spent: Decimal
    """What was paid and not refunded."""
    first_at: Timestamp
    last_at: Timestamp


class KnownOrder(Order, frozen=True):
    """An order, and its status before it was archived."""

    archived_from: Status | None


class StoredOrder(KnownOrder, frozen=True):
    """An order with what its next transition depends on."""

    restocked: bool
    taken: Raw
    removed_goods: Decimal
    removed_shipping: Decimal
    removed_fees: Decimal
    removed_tax: Decimal
    earns: bool
    now: Timestamp
    is_complete: bool
    """False for an order of an earlier version whose amounts were not computed yet."""
    is_recorded: bool | None
    """False if code of an earlier version changed the statuses and recorded no payment, refund or fulfilment."""

    @property
    def order(self) -> Order:
        return Order(*(getattr(self, name) for name in Order.__struct_fields__))


class OrderCustomerIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The customer: found by phone number or e-mail address, or created. One of the two is required."""

    email: Email | None = None
    phone_number: Phone | None = None
    first_name: Name | None = None
    last_name: LastName | None = None


class OrderIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new order."""

    line_items: Annotated[list[LineItemIn], Meta(min_length=1, max_length=500)]
    order_id: OwnOrderId | None = None
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


class OrderPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to an order: a field that you leave out keeps its value, null clears it."""

    status: Status | UnsetType = UNSET
    fulfillment_status: FulfillmentStatus | UnsetType = UNSET
    financial_status: FinancialStatus | UnsetType = UNSET
    notes: Notes | None | UnsetType = UNSET
    tags: Tags | None | UnsetType = UNSET
    shipping_address: ShippingAddressIn | None | UnsetType = UNSET
    line_items: Annotated[list[LineItemPatch], Meta(min_length=1, max_length=500)] | UnsetType = UNSET
    discounts: Annotated[list[DiscountIn], AdjustmentLimit] | None | UnsetType = UNSET
    shipping_lines: Annotated[list[ShippingLineIn], AdjustmentLimit] | None | UnsetType = UNSET
    fees: Annotated[list[Fee], AdjustmentLimit] | None | UnsetType = UNSET
    tax_lines: Annotated[list[TaxLineIn], AdjustmentLimit] | None | UnsetType = UNSET


class OrderExists(Conflict):
    """An order with this orderId already exists."""

    code = "ORDER_EXISTS"
    constraint = "orders_order_id_key"
    fix = "Get or update the order that has this `orderId`, or send another one."


class OrderCreated(Event):
    """An order was created."""

    kind = "order.created"
    base = Base.CUSTOMER
    resource_type = Order


class OrderUpdated(Event):
    """An order was updated."""

    kind = "order.updated"
    base = Base.CUSTOMER
    resource_type = Order


class OrderChanged(Announcement, frozen=True):
    """An order was created or changed; it is locked."""

    order: Order
    status: Status
    """The order's status; of an archived order, the one it had before."""
    earns: bool = True
    """False for an order that was brought in as history: it never earns points."""


class OrdersPlaced(Announcement, frozen=True):
    """Many orders were placed together; they are locked."""

    orders: list[OrderChanged]
