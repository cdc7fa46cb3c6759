"""Webhook endpoints, their deliveries, and what can go wrong with them."""

from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Struct, UnsetType

from sapa.http.errors import Conflict, NotFound
from sapa.http.responses import Timestamp
from sapa.values.ids import IdKind

ENDPOINT_ID = IdKind("whe_")
EndpointId = Annotated[str, ENDPOINT_ID]

MOST_ENDPOINTS = 10
OVERLAP_SECONDS = 24 * 3600
"""How long a rotated secret still signs in addition to its successor, by company time."""


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


class EndpointPatch(Struct, frozen=True, kw_only=True):
    """Changes to an endpoint: absent fields stay as they are. Headers replace all existing ones."""

    url: str | UnsetType = UNSET
    events: list[str] | UnsetType = UNSET
    description: str | None | UnsetType = UNSET
    headers: dict[str, str] | UnsetType = UNSET


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
    headers: bytes | None
    secret: bytes
    previous_secret: bytes | None
    previous_until: str | None
    created_at: str
    updated_at: str


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
