"""Webhook endpoints, their deliveries, and what can go wrong with them."""

from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from sapa.events import Event
from sapa.http.errors import Conflict, NotFound
from sapa.http.responses import Timestamp
from sapa.values.api_base import Base
from sapa.values.ids import IdKind

ENDPOINT_ID = IdKind("whe_")
EndpointId = Annotated[str, ENDPOINT_ID]

NOTICE_ID = IdKind("ntc_")

MOST_ENDPOINTS = 10
OVERLAP_SECONDS = 24 * 3600
"""How long a rotated secret still signs in addition to its successor, by company time."""

PROBE_SECONDS = (60, 4 * 60, 10 * 60, 45 * 60, *[3600] * 71)
"""From the suspension to the first probe, and from each probe to the next: after 1, 5, 15 and 60 minutes, then hourly
until three days are over."""


class Missed(StrEnum):
    """What a resumed endpoint gets of the events it missed."""

    ALL = "all"
    LATEST = "latest"
    SKIP = "skip"


class DeliveryStatus(StrEnum):
    """The state of a delivery; the first three are still in the queue."""

    PENDING = "pending"
    RETRYING = "retrying"
    HELD = "held"
    DELIVERED = "delivered"
    FAILED = "failed"
    SKIPPED = "skipped"


class EndpointIn(Struct, frozen=True, kw_only=True):
    """A new endpoint; no events means all of them."""

    url: str
    events: list[str] = []
    description: str | None = None
    headers: dict[str, str] = {}
    auto_resume: bool = True


class EndpointPatch(Struct, frozen=True, kw_only=True):
    """Changes to an endpoint: absent fields stay as they are. Headers replace all existing ones."""

    url: str | UnsetType = UNSET
    events: list[str] | UnsetType = UNSET
    description: str | None | UnsetType = UNSET
    headers: dict[str, str] | UnsetType = UNSET
    auto_resume: bool | UnsetType = UNSET


class WebhookEndpoint(Struct, frozen=True, rename="camel"):
    """An endpoint as it is listed: its secret by the last four characters, its headers by name."""

    id: EndpointId
    company_id: int
    url: str
    events: list[str]
    description: str | None
    headers: list[str]
    status: str
    reason: str | None
    failures: int
    catching_up: str | None
    auto_resume: bool
    suspended_at: Timestamp | None
    next_probe_at: Timestamp | None
    secret_hint: str
    previous_secret_until: Timestamp | None
    created_at: Timestamp
    updated_at: Timestamp


class StoredEndpoint(Struct, frozen=True):
    """An endpoint with its secrets sealed; the previous secret only while it still signs."""

    id: str
    company_id: int
    url: str
    kinds: list[str]
    description: str | None
    status: str
    reason: str | None
    failures: int
    catch_up: str | None
    auto_resume: bool
    suspended_at: str | None
    next_probe_at: str | None
    headers: bytes | None
    secret: bytes
    previous_secret: bytes | None
    previous_until: str | None
    created_at: str
    updated_at: str


class SuspendedEndpoint(Struct, frozen=True, rename="camel"):
    """A suspended endpoint, as other endpoints learn of it. Of its URL only the origin: the path may hold a secret."""

    id: Annotated[str, Meta(examples=["whe_01m7etmd81eve8h9h73rcysnsm"])]
    origin: Annotated[str, Meta(examples=["https://shop.example"])]
    description: str | None
    status: Annotated[str, Meta(examples=["suspended"])]
    failures: Annotated[int, Meta(examples=[10])]
    """Failed attempts in a row."""
    error: Annotated[str, Meta(examples=["http_5xx"])]
    """Why the last attempt failed, as an error code."""
    response_status: Annotated[int | None, Meta(examples=[503])]
    """The HTTP status of the last attempt; null when there was no response."""
    auto_resume: bool
    suspended_at: Timestamp
    next_probe_at: Timestamp | None
    """When it is probed next; null when it does not resume by itself."""


class WebhookSuspended(Event):
    """A webhook endpoint was suspended after ten failed attempts in a row. Other endpoints receive it."""

    kind = "webhook.suspended"
    base = Base.CUSTOMER
    resource_type = SuspendedEndpoint


class NewSecret(Struct, frozen=True):
    """An endpoint with its new secret, which cannot be read again."""

    secret: str
    endpoint: WebhookEndpoint


class Delivery(Struct, frozen=True, rename="camel"):
    """One event for one endpoint: queued, delivered or failed."""

    id: str
    endpoint_id: EndpointId
    event_id: str
    event: str | None
    event_at: Timestamp
    status: str
    attempts: int
    next_attempt_at: Timestamp | None
    response_status: int | None
    error: str | None
    message: str | None


class DeliveryAttempt(Struct, frozen=True, rename="camel"):
    """One attempt of a delivery, and the response."""

    number: int
    is_probe: bool
    """Sent while the endpoint was suspended; not counted, so the next attempt has the same number."""
    started_at: Timestamp
    milliseconds: int
    outcome: str
    response_status: int | None
    error: str | None
    message: str | None
    address: str | None
    response: str


class DeliveryRequest(Struct, frozen=True, rename="camel"):
    """The request that is sent; the body is None once the event is past its retention."""

    url: str | None
    headers: list[str]
    body: str | None


class DeliveryDetails(Struct, frozen=True, rename="camel"):
    """A delivery with all its attempts."""

    delivery: Delivery
    request: DeliveryRequest
    attempts: list[DeliveryAttempt]


class DeliveryFilter(Struct, frozen=True, kw_only=True):
    """Which deliveries to list. `before` is a delivery's id: only older ones."""

    endpoint_id: str | None = None
    status: str | None = None
    event: str | None = None
    event_id: str | None = None
    before: str | None = None
    limit: int = 20


class Notice(Struct, frozen=True, rename="camel"):
    """A notice for the company's users."""

    id: str
    kind: str
    resource_id: str
    message: str
    created_at: Timestamp


class Token(Struct, frozen=True, rename="camel"):
    """A developer token as it is listed: its id identifies it and grants nothing."""

    id: str
    company_id: int
    created_at: Timestamp
    expires_at: Timestamp


class NewToken(Struct, frozen=True):
    """A new token with its raw value, which cannot be read again."""

    token: str
    info: Token


class EndpointNotFound(NotFound):
    """No webhook endpoint has this id; `sapa webhook list` shows them."""


class DeliveryNotFound(NotFound):
    """No delivery has this id; `sapa webhook deliveries` shows them, for 30 days."""


class TokenNotFound(NotFound):
    """No developer token has this id; `sapa token list` shows them."""


class WebhookLimit(Conflict):
    """A company can have at most 10 webhook endpoints. Delete one first."""

    code = "WEBHOOK_LIMIT"


class EndpointActive(Conflict):
    """The webhook endpoint is already active."""

    code = "WEBHOOK_ACTIVE"


class EndpointNotActive(Conflict):
    """The webhook endpoint is not active; resume it first."""

    code = "WEBHOOK_NOT_ACTIVE"


class OverlapRuns(Conflict):
    """The previous secret is still valid, and rotating again would invalidate it now. Wait, or use --end-overlap."""

    code = "WEBHOOK_OVERLAP"


class EventGone(Conflict):
    """The event is past its retention and cannot be sent again. Get the resource instead."""

    code = "EVENT_GONE"
