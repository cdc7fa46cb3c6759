"""Orders: their structs, errors and events."""

from decimal import Decimal
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.customers.types import AddressId, CustomerRef, Email, LastName, Name, Phone, Tag
from sapa.events import Event
from sapa.http.errors import Conflict
from sapa.http.responses import StoredJson, Timestamp
from sapa.ports import Announcement
from sapa.values.api_base import Base
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind
from sapa.values.money import Amount, Currency

ORDER_ID = IdKind("order_")
LINE_ITEM_ID = IdKind("li_")

OrderId = Annotated[str, ORDER_ID]
LineItemId = Annotated[str, LINE_ITEM_ID]

Status = Annotated[Literal["active", "archived", "cancelled", "refunded"], EnumName("OrderStatus")]
FulfillmentStatus = Annotated[Literal["unfulfilled", "fulfilled"], EnumName("FulfillmentStatus")]
FinancialStatus = Annotated[Literal["pending", "paid", "refunded"], EnumName("FinancialStatus")]

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


class LineItemIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A line to order: a productVariantId, or a title and a price of your own."""

    quantity: Quantity
    product_variant_id: VariantName | None = None
    title: Title | None = None
    price: Amount | None = None


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
    """An order. Lines and prices stay as they were when it was placed; the customer is kept current."""

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
    created_at: Timestamp
    updated_at: Timestamp

    @property
    def customer_id(self) -> str | None:
        return None if self.customer is None else _read_customer(self.customer).id


class StoredOrder(Order, frozen=True):
    """An order with what its next transition depends on."""

    archived_from: Status | None
    restocked: bool
    taken: Raw

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
        Decimal | None, Meta(examples=[None], description="Optional check: the sum of price × quantity.")
    ] = None
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


class OrderExists(Conflict):
    """An order with this orderId already exists."""

    code = "ORDER_EXISTS"
    constraint = "orders_order_id_key"


class InvalidTransition(Conflict):
    """The order cannot change to the requested state."""

    code = "INVALID_TRANSITION"


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
