"""The JSON as Pydantic sees it."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

Item = TypeVar("Item")

Money = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
"""A number on the wire, where Pydantic alone would print a text."""


class Schema(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, from_attributes=True)


class AddressOut(Schema):
    id: str
    first_name: str | None
    last_name: str | None
    phone: str | None
    address1: str
    address2: str | None
    city: str | None
    province: str | None
    country: str | None
    zip: str | None
    main_address: bool


class SubscriptionOut(Schema):
    app: str
    status: str


class CustomerOut(Schema):
    id: str
    external_id: str | None
    email: str | None
    phone_number: str | None
    first_name: str | None
    last_name: str | None
    image_url: str | None
    tags: list[str]
    addresses: list[AddressOut]
    additional_data: dict[str, str | int | float]
    subscription_status: list[SubscriptionOut]
    created_at: datetime
    updated_at: datetime


class CustomerRefOut(Schema):
    id: str
    first_name: str | None
    last_name: str | None
    email: str | None
    phone_number: str | None


class VariantOut(Schema):
    id: str
    key: str
    price: Money
    compare_at_price: Money | None
    inventory_sku: str | None
    media: str | None


class LineItemOut(Schema):
    id: str
    quantity: int
    price: Money
    title: str
    product_variant: VariantOut | None
    discount: dict[str, Any] | None
    total: Money
    discount_allocation: Money
    tax: Money
    charged: Money
    fulfilled_quantity: int
    refunded_quantity: int


class PaymentOut(Schema):
    id: str
    amount: Money
    method: str | None
    reference: str | None
    paid_at: datetime
    created_at: datetime
    voided_at: datetime | None


class RefundOut(Schema):
    id: str
    amount: Money
    shipping: Money
    adjustment: Money
    line_items: list[dict[str, Any]]
    reason: str | None
    created_at: datetime


class ShippingAddressOut(Schema):
    id: str
    first_name: str | None
    last_name: str | None
    phone: str | None
    address1: str
    address2: str | None
    city: str | None
    province: str | None
    country: str | None
    zip: str | None


class OrderOut(Schema):
    id: str
    order_id: str
    order_number: str
    status: str
    fulfillment_status: str
    financial_status: str
    total: Money
    currency: str
    notes: str | None
    customer: CustomerRefOut | None
    line_items: list[LineItemOut]
    shipping_address: ShippingAddressOut | None
    tags: list[str]
    subtotal: Money
    discount_total: Money
    shipping_total: Money
    fee_total: Money
    tax_total: Money
    total_paid: Money
    total_refunded: Money
    outstanding: Money
    discounts: list[dict[str, Any]]
    shipping_lines: list[dict[str, Any]]
    fees: list[dict[str, Any]]
    tax_lines: list[dict[str, Any]]
    payments: list[PaymentOut]
    refunds: list[RefundOut]
    fulfillments: list[dict[str, Any]]
    created_at: datetime
    updated_at: datetime


class LineItemIn(Schema):
    title: str
    price: Annotated[Decimal, Field(ge=0)]
    quantity: Annotated[int, Field(ge=1)]


class OrderIn(Schema):
    customer_id: str
    line_items: Annotated[list[LineItemIn], Field(min_length=1)]
    notes: str | None = None
    tags: list[str] = []


class OrderPatch(Schema):
    notes: str | None = None
    financial_status: Literal["pending", "paid", "refunded"] | None = None


class MetaOut(Schema):
    page: int
    limit: int
    total: int
    has_next_page: bool


class One(BaseModel, Generic[Item]):
    data: Item


class Many(BaseModel, Generic[Item]):
    data: list[Item]
    meta: MetaOut
