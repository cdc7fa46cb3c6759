"""Companies, their environments, and API keys."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from sapa.http.errors import Conflict, Invalid, NotFound
from sapa.http.responses import Timestamp
from sapa.ports import Announcement
from sapa.values.company import Company
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind
from sapa.values.money import Currency

KEY_ID = IdKind("key_")
KeyId = Annotated[str, KEY_ID]

Language = Annotated[Literal["en", "id"], EnumName("Language")]

DEFAULT_RATE_LIMIT = 100
MAX_RATE_LIMIT = 1_000_000


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
    WEBHOOKS_READ = "webhooks:READ"
    WEBHOOKS_WRITE = "webhooks:WRITE"
    WEBHOOKS_DELETE = "webhooks:DELETE"
    KEYS_READ = "keys:READ"
    KEYS_WRITE = "keys:WRITE"
    KEYS_DELETE = "keys:DELETE"
    CONNECTIONS_READ = "connections:READ"
    CONNECTIONS_WRITE = "connections:WRITE"
    CONNECTIONS_DELETE = "connections:DELETE"

    @property
    def is_management(self) -> bool:
        """Whether it is for managing the company's access and connections, and not its data."""
        return self.partition(":")[0] in {"webhooks", "keys", "connections"}


DATA_SCOPES = [scope for scope in Scope if not scope.is_management]
"""What a key for everything has. Scopes of management must be named one by one."""


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


class CompanyColumns(Struct, frozen=True, rename="camel"):
    """What makes a `Company`, as it is stored."""

    company_id: int
    environment: str
    region: str
    currency: str
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


class CompanyRow(CompanyColumns, frozen=True, rename="camel"):
    name: str
    clock_offset_seconds: float
    created_at: Timestamp


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
    allows_mcp: bool = True
    expires_at: str | None = None


class ApiKey(Struct, frozen=True, rename="camel"):
    """An API key as it is listed, without its value."""

    id: KeyId
    company_id: int
    environment: Annotated[str, Meta(examples=["live"])]
    name: Annotated[str, Meta(examples=["shop"])]
    prefix: Annotated[str, Meta(examples=["svc_live_"])]
    last_four: Annotated[str, Meta(examples=["RiHj"])]
    scopes: Annotated[list[str], Meta(examples=[["customers:READ", "orders:READ"]])]
    products: Annotated[list[str], Meta(examples=[["CRM"]])]
    allow_list: Annotated[
        list[str], Meta(examples=[["203.0.113.0/24"]], description="Who may use the key; empty allows all addresses.")
    ]
    rate_limit: Annotated[int, Meta(examples=[100], description="Calls a minute.")]
    allows_mcp: Annotated[bool, Meta(examples=[True], description="Whether AI agents may use the key with MCP.")]
    status: Annotated[str, Meta(examples=["active"], description="active, expired or revoked.")]
    replaced_by: Annotated[str | None, Meta(description="The key that it was rotated to.")]
    created_at: Timestamp
    expires_at: Annotated[Timestamp | None, Meta(examples=[None])]
    last_used_at: Timestamp | None
    last_used_ip: Annotated[str | None, Meta(examples=["203.0.113.7"])]


class NewKey(Struct, frozen=True):
    """A new key; its value is shown only once."""

    key: str
    info: ApiKey


class CompanyNotFound(NotFound):
    """No company has this id; `sapa company list` shows them."""


class CompanyExists(Conflict):
    """A company with this name already exists."""

    code = "COMPANY_EXISTS"
    constraint = "organisations_name_key"
    fix = "Choose another name, or use the company that has it."


class KeyNotFound(NotFound):
    """No key has this id. List the keys to see their ids."""


class KeyNotActive(Conflict):
    """This key is revoked, expired or already rotated. Create a new key."""

    code = "KEY_NOT_ACTIVE"
    fix = "Create a new key in the console or with `sapa key create`."


class ClockTooFar(Invalid):
    """A test environment's clock can be at most ten years ahead; `sapa clock reset` sets it back."""

    constraint = "companies_clock_check"


class LiveClock(Conflict):
    """Only a test environment's clock can be moved; this is a live one."""

    code = "LIVE_CLOCK"
    fix = "Use a company of the test environment, or a key that begins with `svc_test_`."


class ManagementChange(Announcement, frozen=True):
    """A key, a webhook endpoint or a connection was changed by program."""

    key_id: str
    """The key that the program used."""
    address: str
    action: str
    """The audit log's word for it."""
    subject: str
