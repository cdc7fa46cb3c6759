"""The log of API calls as the API shows it."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from sapa.access.types import KeyId
from sapa.http.query_string import POSITION, PageLimit
from sapa.http.responses import Timestamp

REQUEST_ID_EXAMPLE = "req_5f0c9a3e7b1d2468ace01357"

Cursor = Annotated[str, Meta(max_length=200), POSITION]


class ApiCall(Struct, frozen=True, rename="camel"):
    """One call that was made with a key of the company, without its query string, its headers and its bodies."""

    request_id: Annotated[str, Meta(examples=[REQUEST_ID_EXAMPLE], description="The response's header `X-Request-Id`.")]
    called_at: Timestamp
    key_id: KeyId
    method: Annotated[str, Meta(examples=["GET"])]
    route: Annotated[
        str,
        Meta(
            examples=["/customer/v1/orders/{id}"],
            description="The path with the names of its parameters; `unknown` for a path that does not exist.",
        ),
    ]
    status: Annotated[int, Meta(examples=[404])]
    code: Annotated[str | None, Meta(examples=["NOT_FOUND"], description="The code of the error; null on success.")]
    address: Annotated[str, Meta(examples=["203.0.113.7"], description="The caller's address.")]
    milliseconds: Annotated[float, Meta(examples=[3.217], description="How long the call took on the server.")]


class ApiCallsQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """Which calls to list."""

    limit: PageLimit = 20
    before: Annotated[Cursor, Meta(description="Only calls older than this cursor.")] | None = None
    key_id: Annotated[KeyId, Meta(description="Only calls with this key.")] | None = None
    method: Annotated[str, Meta(max_length=16, description="Only this method, such as POST.")] | None = None
    route: (
        Annotated[str, Meta(max_length=300, description="Only this route, such as /customer/v1/orders/{id}.")] | None
    ) = None
    status: (
        Annotated[
            str,
            Meta(
                pattern="^[1-5]([0-9][0-9]|xx)$",
                examples=["4xx"],
                description="Only this status, such as 404, or a class of them, such as 4xx.",
            ),
        ]
        | None
    ) = None
    code: Annotated[str, Meta(max_length=100, description="Only this error, such as NOT_FOUND.")] | None = None
    address: Annotated[str, Meta(max_length=100, description="Only calls from this address.")] | None = None
    request_id: Annotated[str, Meta(max_length=100, description="Only the call with this X-Request-Id.")] | None = None
    called_from: Annotated[datetime, Meta(description="Called then or later.")] | None = None
    called_to: Annotated[datetime, Meta(description="Called then or earlier.")] | None = None
