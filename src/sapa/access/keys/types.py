"""API keys as the API takes and returns them."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from sapa.access.types import MAX_RATE_LIMIT, ApiKey, KeyProduct, Scope
from sapa.http.allow_list import MAX_ENTRIES
from sapa.http.errors import ApiError
from sapa.http.query_string import PageQuery
from sapa.http.responses import SHOWN_ONCE
from sapa.values.enum_names import EnumName


class ApiKeysQuery(PageQuery, frozen=True, kw_only=True, rename="camel"):
    """Which keys to list."""

    status: (
        Annotated[
            Literal["active", "expired", "revoked"],
            EnumName("ApiKeyStatus"),
            Meta(description="Only keys with this status."),
        ]
        | None
    ) = None


class ApiKeyIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new key. It can have at most the rights of the key that creates it."""

    name: Annotated[str, Meta(min_length=1, max_length=100, examples=["shop"], description="What the key is for.")]
    scopes: Annotated[list[Scope], Meta(min_length=1, examples=[["customers:READ", "orders:READ"]])]
    products: Annotated[list[KeyProduct], Meta(description="Shipping needs `CRM`.")] = []
    allow_list: (
        Annotated[
            list[str],
            Meta(
                max_length=MAX_ENTRIES,
                description="The addresses and CIDR ranges that may use it; none allows all. Your key's own unless"
                " given.",
            ),
        ]
        | UnsetType
    ) = UNSET
    rate_limit: (
        Annotated[int, Meta(ge=1, le=MAX_RATE_LIMIT, description="Calls a minute. 100, or your key's own if less.")]
        | UnsetType
    ) = UNSET
    allows_mcp: (
        Annotated[bool, Meta(description="Whether AI agents may use it with MCP. As your key unless given.")]
        | UnsetType
    ) = UNSET
    expires_at: (
        Annotated[
            datetime,
            Meta(tz=True, examples=[None], description="When it stops working. With your own key unless given."),
        ]
        | None
        | UnsetType
    ) = UNSET


class ApiKeyPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to a key: a field that you leave out keeps its value."""

    name: Annotated[str, Meta(min_length=1, max_length=100, examples=["shop"])] | UnsetType = UNSET
    scopes: Annotated[list[Scope], Meta(min_length=1, examples=[["customers:READ"]])] | UnsetType = UNSET
    products: list[KeyProduct] | UnsetType = UNSET
    allow_list: (
        Annotated[
            list[str], Meta(max_length=MAX_ENTRIES, examples=[["203.0.113.0/24"]], description="None allows all.")
        ]
        | UnsetType
    ) = UNSET
    rate_limit: (
        Annotated[int, Meta(ge=1, le=MAX_RATE_LIMIT, examples=[100], description="Calls a minute.")] | UnsetType
    ) = UNSET
    allows_mcp: (
        Annotated[bool, Meta(examples=[False], description="Whether AI agents may use it with MCP.")] | UnsetType
    ) = UNSET


class NewApiKey(ApiKey, frozen=True, rename="camel"):
    """A new key with its value, which cannot be read again."""

    key: Annotated[
        str | None,
        SHOWN_ONCE,
        Meta(
            examples=["svc_live_…"],
            description="Shown once. Null when a retry with the same Idempotency-Key gets this response.",
        ),
    ]


class BeyondOwnRights(ApiError):
    """A key can create and rotate only keys that have at most its own rights."""

    status = 403
    code = "BEYOND_OWN_RIGHTS"
    fix = "The message names the right that your key lacks. Give the new key less, or use a key that has it."
