"""Types for the records of calls."""

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.http.errors import ErrorBody
from sapa.http.query_string import PageQuery
from sapa.http.responses import Envelope, StoredJson, Timestamp
from sapa.messaging.channels.interface import Source
from sapa.messaging.messages.types import Message
from sapa.values.enum_names import EnumName
from sapa.values.ids import UuidKind

RECORD_ID = UuidKind("request record")
RecordId = Annotated[str, RECORD_ID]

EndpointType = Annotated[
    Literal["send_message", "send_message_template", "send_message_media", "send_message_interactive"],
    EnumName("EndpointType"),
]


class RequestSnapshot(Struct, frozen=True, rename="camel"):
    """The call as received. It contains the caller's key, unless that key may do more than yours: keep it secret."""

    ip: Annotated[str, Meta(examples=["203.0.113.7"])]
    ips: Annotated[list[str], Meta(examples=[["203.0.113.7"]], description="The addresses that proxies reported.")]
    body: Annotated[
        Raw,
        StoredJson(Any),
        Meta(
            examples=[{"to": "+628123456789", "message": "Halo!"}], description="Verbatim; a string if it is not JSON."
        ),
    ]
    query: Annotated[dict[str, Any], Meta(examples=[{}])]
    base_url: Annotated[str, Meta(examples=["/messaging/v1"])]
    headers: Annotated[dict[str, str], Meta(examples=[{"content-type": "application/json"}])]
    hostname: Annotated[str, Meta(examples=["sapa.example.com"])]


class ResponseSnapshot(Struct, frozen=True, omit_defaults=True):
    """The response: `data`, or `error` if the call was refused or the message failed later."""

    data: Annotated[Raw, StoredJson(Message)] | UnsetType = UNSET
    error: Annotated[Raw, StoredJson(ErrorBody)] | UnsetType = UNSET


class RequestRecord(Struct, frozen=True, rename="camel"):
    """A call that sends a message, accepted or refused."""

    id: RecordId
    company_id: Annotated[int, Meta(examples=[7])]
    message_id2: Annotated[
        str | None,
        Meta(examples=["0199a1f0-7c3e-7d52-9b1a-4e6f2c8d0a35"], description="Null if no message was created."),
    ]
    template_id: Annotated[str | None, Meta(examples=["order_update"])]
    source: Source | None
    request: RequestSnapshot
    response: ResponseSnapshot
    endpoint_type: EndpointType
    sent_at: Timestamp | None
    delivered_at: Timestamp | None
    read_at: Timestamp | None
    replied_at: Timestamp | None
    failed_at: Timestamp | None
    created_at: Timestamp


class RecordsMeta(Struct, frozen=True, rename="camel"):
    """The position of a page in the history."""

    page: Annotated[int, Meta(examples=[1])]
    limit: Annotated[int, Meta(examples=[20])]
    total: Annotated[int, Meta(examples=[1])]
    total_pages: Annotated[int, Meta(examples=[1])]
    has_next_page: Annotated[bool, Meta(examples=[False])]
    has_previous_page: Annotated[bool, Meta(examples=[False])]


class RecordsPage(Envelope, frozen=True):
    """One page of the history."""

    paging = "page"
    data: list[RequestRecord]
    meta: RecordsMeta


class RecordsQuery(PageQuery, frozen=True, kw_only=True, rename="camel"):
    response_id: (
        Annotated[str, Meta(min_length=1, max_length=500, description="A messageId2, or a channel's messageId.")] | None
    ) = None
    template_id: Annotated[str, Meta(min_length=1, max_length=512, description="A template's name.")] | None = None
    start_date: Annotated[datetime, Meta(description="Only calls from this instant on.")] | None = None
    end_date: Annotated[datetime, Meta(description="Only calls up to this instant.")] | None = None
