"""Companies, their environments, and API keys."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from sapa.http.errors import Conflict, Invalid, NotFound
from sapa.http.responses import Timestamp
from sapa.values.company import Company
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind
from sapa.values.money import Currency

KEY_ID = IdKind("key_")
KeyId = Annotated[str, KEY_ID]

Language = Annotated[Literal["en", "id"], EnumName("Language")]

DEFAULT_RATE_LIMIT = 100
MOST_RATE_LIMIT = 1_000_000


class Scope(StrEnum):
    """What a key may do: a resource and an action."""

    CUSTOMERS_READ = "customers:READ"
    CUSTOMERS_WRITE = "customers:WRITE"
    CUSTOMERS_DELETE = "customers:DELETE"
    ORDERS_READ = "orders:READ"
    ORDERS_WRITE = "orders:WRITE"
    ORDERS_DELETE = "orders:DELETE"
    PRODUCTS_READ = "products:READ"
    PRODUCTS_WRITE = "products:WRITE"
    PRODUCTS_DELETE = "products:DELETE"
    MESSAGES_READ = "messages:READ"
    MESSAGES_WRITE = "messages:WRITE"
    ANALYTICS_READ = "analytics:READ"


class KeyProduct(StrEnum):
    """Parts of the platform that a key needs access to, in addition to its scopes."""

    CRM = "CRM"


class CompanyClock(Struct, frozen=True):
    """The company's time, which a test environment can move ahead, and the real time."""

    now: datetime
    real: datetime


class NewCompany(Struct, frozen=True, rename="camel"):
    """A company with its two environments."""

    name: str
    live_company_id: int
    test_company_id: int


class CompanyRow(Struct, frozen=True, rename="camel"):
    company_id: int
    name: str
    environment: str
    region: str
    currency: str
    clock_offset_seconds: float
    created_at: Timestamp
    time_zone: str
    language: str
    cart_orders: bool

    @property
    def company(self) -> Company:
        return Company(
            id=self.company_id,
            environment=self.environment,
            region=self.region,
            currency=self.currency,
            time_zone=self.time_zone,
            language=self.language,
            cart_orders=self.cart_orders,
        )


class CompanySettings(Struct, frozen=True, rename="camel"):
    """A company's settings in the key's environment."""

    id: Annotated[int, Meta(examples=[1])]
    name: Annotated[str, Meta(examples=["Toko Kopi"])]
    environment: Annotated[Literal["live", "test"], EnumName("Environment"), Meta(examples=["live"])]
    country: Annotated[str, Meta(examples=["ID"], description="Phone numbers without a country code belong to it.")]
    currency: Annotated[str, Meta(examples=["IDR"])]
    language: Annotated[Language, Meta(examples=["id"])]
    time_zone: Annotated[str, Meta(examples=["Asia/Jakarta"], description="The days of reports follow it.")]
    cart_orders: Annotated[
        bool, Meta(examples=[False], description="Whether a cart that a customer sends becomes an order.")
    ]


class CompanySettingsPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to the settings: a field that you leave out keeps its value."""

    country: Annotated[str, Meta(max_length=10, examples=["ID"], description="An ISO 3166 code.")] | UnsetType = UNSET
    currency: (
        Annotated[
            Currency,
            Meta(
                description="The default of new orders. Prices of products and the tiers of loyalty are amounts of it,"
                " and are not converted."
            ),
        ]
        | UnsetType
    ) = UNSET
    language: Language | UnsetType = UNSET
    time_zone: (
        Annotated[str, Meta(max_length=100, examples=["Asia/Jakarta"], description="An IANA time zone.")] | UnsetType
    ) = UNSET
    cart_orders: (
        Annotated[
            bool,
            Meta(
                examples=[True],
                description="True: a cart that a customer sends from now on becomes an order, at its prices.",
            ),
        ]
        | UnsetType
    ) = UNSET


class KeyIn(Struct, frozen=True, kw_only=True):
    """A new key."""

    name: str
    scopes: list[str]
    products: list[str] = []
    allow_list: list[str] = []
    rate_limit: int = DEFAULT_RATE_LIMIT
    expires_at: str | None = None


class KeyInfo(Struct, frozen=True, rename="camel"):
    """A key as listed, without its value."""

    id: KeyId
    company_id: int
    environment: str
    name: str
    prefix: str
    last_four: str
    scopes: list[str]
    products: list[str]
    allow_list: list[str]
    rate_limit: int
    status: str
    replaced_by: str | None
    created_at: Timestamp
    expires_at: Timestamp | None
    last_used_at: Timestamp | None
    last_used_ip: str | None


class NewKey(Struct, frozen=True):
    """A new key; its value is shown only once."""

    key: str
    info: KeyInfo


class CompanyNotFound(NotFound):
    """No company has this id; `sapa company list` shows them."""


class CompanyExists(Conflict):
    """A company with this name already exists."""

    code = "COMPANY_EXISTS"
    constraint = "organisations_name_key"


class KeyNotFound(NotFound):
    """No key has this id; `sapa key list` shows them."""


class KeyNotActive(Conflict):
    """This key is revoked, expired or already rotated. Create a new key."""

    code = "KEY_NOT_ACTIVE"


class ClockTooFar(Invalid):
    """A test environment's clock can be at most ten years ahead; `sapa clock reset` sets it back."""

    constraint = "companies_clock_check"


class LiveClock(Conflict):
    """Only a test environment's clock can be moved; this is a live one."""

    code = "LIVE_CLOCK"
