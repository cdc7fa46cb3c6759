"""Types for the records of calls."""

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.http.errors import ErrorBody
from sapa.http.query_string import PageQuery
from sapa.http.responses import Envelope, StoredJson, Timestamp
from sapa.messaging.channels.interface import Source
from sapa.messaging.messages.types import Message
from sapa.values.ids import UuidKind

RECORD_ID = UuidKind("request record")
RecordId = Annotated[str, RECORD_ID]

EndpointType = Literal["send_message", "send_message_template", "send_message_media", "send_message_interactive"]


class RequestSnapshot(Struct, frozen=True, rename="camel"):
    """The call as it came in. It holds the caller's key: treat it as a secret."""

    ip: Annotated[str, Meta(examples=["203.0.113.7"])]
    ips: Annotated[list[str], Meta(examples=[["203.0.113.7"]], description="The addresses that proxies named.")]
    body: Annotated[
        Raw,
        StoredJson(Any),
        Meta(
            examples=[{"to": "+628123456789", "message": "Halo!"}], description="Verbatim; text where it was no JSON."
        ),
    ]
    query: Annotated[dict[str, Any], Meta(examples=[{}])]
    base_url: Annotated[str, Meta(examples=["/messaging/v1"])]
    headers: Annotated[dict[str, str], Meta(examples=[{"content-type": "application/json"}])]
    hostname: Annotated[str, Meta(examples=["sapa.example.com"])]


class ResponseSnapshot(Struct, frozen=True, omit_defaults=True):
    """What the call was answered with: `data`, or `error` if it was refused or failed since."""

    data: Annotated[Raw, StoredJson(Message)] | UnsetType = UNSET
    error: Annotated[Raw, StoredJson(ErrorBody)] | UnsetType = UNSET


class RequestRecord(Struct, frozen=True, rename="camel"):
    """One call that asked for a message, refused ones included."""

    id: RecordId
    company_id: Annotated[int, Meta(examples=[7])]
    message_id2: Annotated[
        str | None, Meta(examples=["0199a1f0-7c3e-7d52-9b1a-4e6f2c8d0a35"], description="Null: no message was made.")
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
    """Where a page stands in the history."""

    page: Annotated[int, Meta(examples=[1])]
    limit: Annotated[int, Meta(examples=[20])]
    total: Annotated[int, Meta(examples=[1])]
    total_pages: Annotated[int, Meta(examples=[1])]
    has_next_page: Annotated[bool, Meta(examples=[False])]
    has_previous_page: Annotated[bool, Meta(examples=[False])]


class RecordsPage(Envelope, frozen=True):
    """One page of the history."""

    data: list[RequestRecord]
    meta: RecordsMeta


class RecordsQuery(PageQuery, frozen=True, kw_only=True, rename="camel"):
    response_id: (
        Annotated[str, Meta(min_length=1, max_length=500, description="A messageId2, or a channel's messageId.")] | None
    ) = None
    template_id: Annotated[str, Meta(min_length=1, max_length=512, description="A template's name.")] | None = None
    start_date: Annotated[datetime, Meta(description="Only calls from then on.")] | None = None
    end_date: Annotated[datetime, Meta(description="Only calls up to then.")] | None = None
