"""The tables as SQLAlchemy sees them."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, LargeBinary, String, func
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's own way to declare it
        datetime: DateTime(timezone=True),
        list[str]: ARRAY(String),
        list[dict[str, Any]]: JSON,
        dict[str, Any]: JSON,
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
