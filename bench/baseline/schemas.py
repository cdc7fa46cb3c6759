"""The JSON as Pydantic sees it."""

from datetime import datetime
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

Item = TypeVar("Item")


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


class CustomerIn(Schema):
    email: str | None = None
    phone_number: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    tags: list[str] = []


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
