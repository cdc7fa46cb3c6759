"""Customers: their structs, errors and events."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.events import Event
from sapa.http.errors import Conflict, Invalid
from sapa.http.responses import StoredJson, Timestamp
from sapa.ports import Announcement
from sapa.values.api_base import Base
from sapa.values.enum_names import EnumName
from sapa.values.ids import CustomerId, IdKind
from sapa.values.web_addresses import WEB_ADDRESS

ADDRESS_ID = IdKind("addr_")

AddressId = Annotated[str, ADDRESS_ID]

Email = Annotated[str, Meta(max_length=254, examples=["ayu@example.com"], extra_json_schema={"format": "idn-email"})]
Phone = Annotated[
    str,
    Meta(
        max_length=40,
        examples=["+628123456789"],
        description="In any common format; stored as E.164. Without a country code, the company's region applies.",
    ),
]
Name = Annotated[str, Meta(max_length=255, examples=["Ayu"])]
LastName = Annotated[str, Meta(max_length=255, examples=["Lestari"])]
Url = Annotated[
    str,
    Meta(
        max_length=2048,
        pattern=f"^$|{WEB_ADDRESS}",
        examples=["https://example.com/ayu.png"],
        description="With https or http.",
    ),
]
Tag = Annotated[str, Meta(min_length=1, max_length=100, examples=["vip"], description="Without a comma.")]
ExternalId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        examples=["shop-1042"],
        description="Your own id for the customer. It must not start or end with whitespace.",
    ),
]
DataKey = Annotated[str, Meta(min_length=1, max_length=100)]
DataText = Annotated[str, Meta(max_length=5000)]
AdditionalData = Annotated[
    dict[DataKey, DataText | int | float],
    Meta(
        max_length=200,
        examples=[{"card": "A-17", "visits": 12}],
        description="Free keys; strings, or numbers up to 9007199254740991.",
    ),
]


class Address(Struct, frozen=True, rename="camel"):
    """A customer's address."""

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
    main_address: bool


class AddressIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An address. One of a customer's addresses is the main one: the first, unless you mark another."""

    address1: Annotated[str, Meta(min_length=1, max_length=500, examples=["Jl. Merdeka 17"])]
    id: Annotated[str | None, Meta(examples=[None], description="The id of an existing address of the customer.")] = (
        None
    )
    first_name: Name | None = None
    last_name: LastName | None = None
    phone: Annotated[str, Meta(max_length=500, examples=["+628123456789"])] | None = None
    address2: Annotated[str, Meta(max_length=500, examples=["Lantai 2"])] | None = None
    city: Annotated[str, Meta(max_length=500, examples=["Bandung"])] | None = None
    province: Annotated[str, Meta(max_length=500, examples=["Jawa Barat"])] | None = None
    country: Annotated[str, Meta(max_length=500, examples=["Indonesia"])] | None = None
    zip: Annotated[str, Meta(max_length=500, examples=["40111"])] | None = None
    main_address: bool = False


class Subscription(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the customer subscribes to messages from one app.

    CRM and the channels decide who gets marketing messages: see `GET /customers/{id}/consents`.
    """

    app: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=50,
            examples=["CRM"],
            description="CRM for all channels, or the name of one channel. Other apps are stored and decide nothing.",
        ),
    ]
    status: Annotated[Literal["subscribe", "unsubscribe"], EnumName("SubscriptionStatus")]


class Customer(Struct, frozen=True, rename="camel"):
    """A customer of the company."""

    id: CustomerId
    external_id: Annotated[str | None, Meta(examples=["shop-1042"])]
    email: Annotated[str | None, Meta(examples=["ayu@example.com"], extra_json_schema={"format": "idn-email"})]
    phone_number: Annotated[str | None, Meta(examples=["+628123456789"])]
    first_name: Annotated[str | None, Meta(examples=["Ayu"])]
    last_name: Annotated[str | None, Meta(examples=["Lestari"])]
    image_url: Annotated[str | None, Meta(examples=["https://example.com/ayu.png"])]
    tags: Annotated[list[str], Meta(examples=[["vip"]])]
    addresses: Annotated[Raw, StoredJson(list[Address])]
    additional_data: Annotated[Raw, StoredJson(AdditionalData)]
    subscription_status: Annotated[Raw, StoredJson(list[Subscription])]
    created_at: Timestamp
    updated_at: Timestamp


class CustomerRef(Struct, frozen=True, rename="camel"):
    """A customer as shown in another resource. A deleted customer is shown in its last state."""

    id: CustomerId
    first_name: Annotated[str | None, Meta(examples=["Ayu"])]
    last_name: Annotated[str | None, Meta(examples=["Lestari"])]
    email: Annotated[str | None, Meta(examples=["ayu@example.com"], extra_json_schema={"format": "idn-email"})]
    phone_number: Annotated[str | None, Meta(examples=["+628123456789"])]


def build_ref(customer: Customer) -> CustomerRef:
    return CustomerRef(*(getattr(customer, name) for name in CustomerRef.__struct_fields__))


class CustomerIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new customer. An e-mail address or a phone number is required."""

    email: Email | None = None
    phone_number: Phone | None = None
    external_id: ExternalId | None = None
    first_name: Name | None = None
    last_name: LastName | None = None
    image_url: Url | None = None
    tags: Annotated[list[Tag], Meta(max_length=250)] | None = None
    addresses: Annotated[list[AddressIn], Meta(max_length=50)] | None = None
    additional_data: AdditionalData | None = None
    subscription_status: Annotated[list[Subscription], Meta(max_length=50)] | None = None


class CustomerPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to a customer: a field that you leave out keeps its value, null clears it."""

    email: Email | None | UnsetType = UNSET
    phone_number: Phone | None | UnsetType = UNSET
    first_name: Name | None | UnsetType = UNSET
    last_name: LastName | None | UnsetType = UNSET
    image_url: Url | None | UnsetType = UNSET
    tags: Annotated[list[Tag], Meta(max_length=250)] | None | UnsetType = UNSET
    addresses: Annotated[list[AddressIn], Meta(max_length=50)] | None | UnsetType = UNSET
    additional_data: AdditionalData | None | UnsetType = UNSET
    subscription_status: Annotated[list[Subscription], Meta(max_length=50)] | None | UnsetType = UNSET


class CustomerUnreachable(Invalid):
    """A customer needs an email or a phoneNumber."""

    constraint = "customers_reachable_check"


class CustomerExists(Conflict):
    """A customer with these details already exists."""

    code = "CUSTOMER_EXISTS"
    fix = (
        "`details` has the field and the id of the customer who has this value. Update that customer instead, or send "
        "another value."
    )


class EmailTaken(CustomerExists):
    """A customer with this email already exists."""

    constraint = "customers_email_key"


class PhoneNumberTaken(CustomerExists):
    """A customer with this phoneNumber already exists."""

    constraint = "customers_phone_number_key"


class ExternalIdTaken(CustomerExists):
    """A customer with this externalId already exists."""

    constraint = "customers_external_id_key"


class IdentityConflict(Conflict):
    """The email and the phoneNumber belong to two different customers; send the customerId of one of them instead."""

    code = "IDENTITY_CONFLICT"
    fix = "Decide which customer it is, and send `customerId`."


class CustomerCreated(Event):
    """A customer was created."""

    kind = "customer.created"
    base = Base.CUSTOMER
    resource_type = Customer


class CustomerUpdated(Event):
    """A customer's details were updated."""

    kind = "customer.updated"
    base = Base.CUSTOMER
    resource_type = Customer


class CustomerDeleted(Event):
    """A customer was deleted; the body is the customer's last state."""

    kind = "customer.deleted"
    base = Base.CUSTOMER
    resource_type = Customer


class CustomerRenamed(Announcement, frozen=True):
    """The name or contact of a customer changed; the customer is locked."""

    customer: CustomerRef


class CustomerRemoved(Announcement, frozen=True):
    """A customer was deleted."""

    customer_id: str
