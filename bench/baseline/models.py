"""The tables as SQLAlchemy sees them."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import JSON, BigInteger, Computed, DateTime, ForeignKeyConstraint, LargeBinary, String, func
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's own way to declare it
        datetime: DateTime(timezone=True),
        list[str]: ARRAY(String),
        list[dict[str, Any]]: JSON,
        dict[str, Any]: JSON(none_as_null=True),
    }


class ApiKey(Base):
    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(primary_key=True)
    company_id: Mapped[int] = mapped_column(BigInteger)
    hash: Mapped[bytes] = mapped_column(LargeBinary)
    scopes: Mapped[list[str]]
    status: Mapped[str]
    expires_at: Mapped[datetime | None]


class Customer(Base):
    __tablename__ = "customers"

    company_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    external_id: Mapped[str | None]
    email: Mapped[str | None]
    email_key: Mapped[str | None]
    phone_number: Mapped[str | None]
    first_name: Mapped[str | None]
    last_name: Mapped[str | None]
    image_url: Mapped[str | None]
    tags: Mapped[list[str]]
    addresses: Mapped[list[dict[str, Any]]]
    additional_data: Mapped[dict[str, Any]]
    subscription_status: Mapped[list[dict[str, Any]]]
    search_text: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())


class OrderNumber(Base):
    __tablename__ = "order_numbers"

    company_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    last: Mapped[int] = mapped_column(BigInteger)


class LineItem(Base):
    __tablename__ = "line_items"
    __table_args__ = (
        ForeignKeyConstraint(["company_id", "order_id"], ["orders.company_id", "orders.id"]),
        {"schema": "baseline"},
    )

    company_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    order_id: Mapped[str]
    position: Mapped[int]
    quantity: Mapped[int]
    price: Mapped[Decimal]
    title: Mapped[str]
    product_variant: Mapped[dict[str, Any] | None]
    discount: Mapped[dict[str, Any] | None]
    total: Mapped[Decimal]
    discount_allocation: Mapped[Decimal] = mapped_column(default=Decimal(0))
    tax: Mapped[Decimal] = mapped_column(default=Decimal(0))
    charged: Mapped[Decimal]
    fulfilled_quantity: Mapped[int] = mapped_column(default=0)
    refunded_quantity: Mapped[int] = mapped_column(default=0)


class Order(Base):
    __tablename__ = "orders"

    company_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    order_id: Mapped[str]
    order_number: Mapped[str]
    status: Mapped[str] = mapped_column(default="active")
    fulfillment_status: Mapped[str] = mapped_column(default="unfulfilled")
    financial_status: Mapped[str] = mapped_column(default="pending")
    total: Mapped[Decimal]
    currency: Mapped[str]
    notes: Mapped[str | None]
    customer: Mapped[dict[str, Any] | None]
    shipping_address: Mapped[dict[str, Any] | None]
    tags: Mapped[list[str]]
    subtotal: Mapped[Decimal]
    discount_total: Mapped[Decimal] = mapped_column(default=Decimal(0))
    shipping_total: Mapped[Decimal] = mapped_column(default=Decimal(0))
    fee_total: Mapped[Decimal] = mapped_column(default=Decimal(0))
    tax_total: Mapped[Decimal] = mapped_column(default=Decimal(0))
    total_paid: Mapped[Decimal] = mapped_column(default=Decimal(0))
    total_refunded: Mapped[Decimal] = mapped_column(default=Decimal(0))
    outstanding: Mapped[Decimal]
    discounts: Mapped[list[dict[str, Any]]] = mapped_column(default=list)
    shipping_lines: Mapped[list[dict[str, Any]]] = mapped_column(default=list)
    fees: Mapped[list[dict[str, Any]]] = mapped_column(default=list)
    tax_lines: Mapped[list[dict[str, Any]]] = mapped_column(default=list)
    payments: Mapped[list[dict[str, Any]]] = mapped_column(default=list)
    refunds: Mapped[list[dict[str, Any]]] = mapped_column(default=list)
    fulfillments: Mapped[list[dict[str, Any]]] = mapped_column(default=list)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now(), onupdate=func.now())
    customer_id: Mapped[str | None]
    customer_text: Mapped[str]
    cell: Mapped[str] = mapped_column(Computed("status || '/' || fulfillment_status || '/' || financial_status"))
    recorded_cell: Mapped[str] = mapped_column(default="active/unfulfilled/pending", deferred=True)
    # Sapa's own column, which the table demands; the baseline has its lines in the table above.
    stored_lines: Mapped[list[dict[str, Any]]] = mapped_column("line_items", default=list, deferred=True)
    line_items: Mapped[list[LineItem]] = relationship(order_by=LineItem.position, lazy="raise")

    __mapper_args__ = {"eager_defaults": True}  # noqa: RUF012 - SQLAlchemy's own way to declare it
