"""Webhook endpoints, their deliveries, and what can go wrong with them."""

from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from sapa.events import DELIVERY_ID, EVENT_ID, Event
from sapa.http.errors import Conflict, NotFound
from sapa.http.responses import SHOWN_ONCE, Timestamp
from sapa.values.api_base import Base
from sapa.values.ids import IdKind

ENDPOINT_ID = IdKind("whe_")
EndpointId = Annotated[str, ENDPOINT_ID]
DeliveryId = Annotated[str, DELIVERY_ID]

NOTICE_ID = IdKind("ntc_")

MAX_ENDPOINTS = 10
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


ReceiverUrl = Annotated[
    str,
    Meta(max_length=2048, examples=["https://shop.example/hooks/sapa"], description="Where events are sent: https."),
]
EventKinds = Annotated[
    list[str],
    Meta(
        examples=[["customer.created", "order.created"]],
        description="The kinds of events to deliver. An empty list stands for all, including future ones.",
    ),
]
CustomHeaders = Annotated[
    dict[str, str],
    Meta(
        examples=[{"X-Shop-Token": "5f0c9a3e"}],
        description="Sent with each delivery. Their values are never shown again; give all headers to change one.",
    ),
]


class WebhookEndpointIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new webhook endpoint."""

    url: ReceiverUrl
    events: EventKinds = []
    description: Annotated[str, Meta(max_length=500, examples=["shop"])] | None = None
    headers: CustomHeaders = {}
    auto_resume: Annotated[
        bool, Meta(description="Probe it while it is suspended, and resume it with the first success.")
    ] = True


class WebhookEndpointPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to a webhook endpoint: a field that you leave out keeps its value."""

    url: ReceiverUrl | UnsetType = UNSET
    events: EventKinds | UnsetType = UNSET
    description: Annotated[str, Meta(max_length=500, examples=["shop"])] | None | UnsetType = UNSET
    headers: CustomHeaders | UnsetType = UNSET
    auto_resume: bool | UnsetType = UNSET


class WebhookEndpoint(Struct, frozen=True, rename="camel"):
    """A webhook endpoint as it is listed: its secret by the last four characters, its headers by name."""

    id: EndpointId
    company_id: int
    url: Annotated[str, Meta(examples=["https://shop.example/hooks/sapa"])]
    events: Annotated[
        list[str],
        Meta(
            examples=[["customer.created", "order.created"]],
            description="The kinds of events that it gets; empty for all.",
        ),
    ]
    description: Annotated[str | None, Meta(examples=["shop"])]
    headers: Annotated[list[str], Meta(examples=[["X-Shop-Token"]], description="The names of the custom headers.")]
    status: Annotated[str, Meta(examples=["active"], description="active, paused or suspended.")]
    reason: Annotated[str | None, Meta(examples=[None], description="Why it is suspended.")]
    failures: Annotated[int, Meta(examples=[0], description="Failed attempts in a row; ten suspend it.")]
    catching_up: Annotated[
        str | None,
        Meta(
            examples=[None],
            description="What it still gets of the events that it missed: all, latest or skip; null when it is done.",
        ),
    ]
    auto_resume: Annotated[bool, Meta(examples=[True])]
    suspended_at: Annotated[Timestamp | None, Meta(examples=[None])]
    next_probe_at: Annotated[
        Timestamp | None, Meta(examples=[None], description="When it is probed next while it is suspended.")
    ]
    secret_hint: Annotated[str, Meta(examples=["dGVz"], description="The last characters of the signing secret.")]
    previous_secret_until: Annotated[
        Timestamp | None,
        Meta(examples=[None], description="Until then deliveries are also signed with the previous secret."),
    ]
    created_at: Timestamp
    updated_at: Timestamp


class NewWebhookEndpoint(WebhookEndpoint, frozen=True, rename="camel"):
    """A webhook endpoint with its new signing secret, which cannot be read again."""

    secret: Annotated[
        str | None,
        SHOWN_ONCE,
        Meta(
            examples=["whsec_…"],
            description="Shown once. Null when a retry with the same Idempotency-Key gets this response.",
        ),
    ]


class WebhookResumeIn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to resume an endpoint."""

    missed: Annotated[
        Missed, Meta(description="Which missed events to deliver: all, the latest of each resource, or none (skip).")
    ] = Missed.ALL


class WebhookSecretIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How to rotate a secret."""

    end_overlap: Annotated[bool, Meta(description="While a previous secret is still valid: whether to end it now.")] = (
        False
    )


class WebhookTestIn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to send as a sample."""

    event: (
        Annotated[str, Meta(max_length=100, description="The kind of event. The endpoint's first unless given.")] | None
    ) = None


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


class WebhookDelivery(Struct, frozen=True, rename="camel"):
    """One event for one endpoint: queued, delivered or failed."""

    id: DeliveryId
    endpoint_id: EndpointId
    event_id: Annotated[str, Meta(examples=[EVENT_ID.example])]
    event: Annotated[str | None, Meta(examples=["customer.created"])]
    event_at: Timestamp
    status: Annotated[
        str, Meta(examples=["retrying"], description="pending, retrying, held, delivered, failed or skipped.")
    ]
    attempts: Annotated[int, Meta(examples=[1])]
    next_attempt_at: Timestamp | None
    response_status: Annotated[
        int | None, Meta(examples=[503], description="Of the last attempt; null if there was no response.")
    ]
    error: Annotated[str | None, Meta(examples=["http_5xx"])]
    message: Annotated[str | None, Meta(examples=["The receiver answered 503."])]


class DeliveryAttempt(Struct, frozen=True, rename="camel"):
    """One attempt of a delivery, and the response."""

    number: Annotated[int, Meta(examples=[1])]
    is_probe: Annotated[
        bool,
        Meta(
            examples=[False],
            description="Sent while the endpoint was suspended; not counted, so the next attempt has the same number.",
        ),
    ]
    started_at: Timestamp
    milliseconds: Annotated[int, Meta(examples=[87])]
    outcome: Annotated[str, Meta(examples=["retrying"])]
    response_status: Annotated[int | None, Meta(examples=[503])]
    error: Annotated[str | None, Meta(examples=["http_5xx"])]
    message: Annotated[str | None, Meta(examples=["The receiver answered 503."])]
    address: Annotated[str | None, Meta(examples=["198.51.100.7"])]
    response: Annotated[
        str, Meta(examples=["Service Unavailable"], description="The beginning of the response's body, at most 4 KB.")
    ]


class DeliveryRequest(Struct, frozen=True, rename="camel"):
    """The request that is sent; the body is null once the event is past its retention."""

    url: Annotated[str | None, Meta(examples=["https://shop.example/hooks/sapa"])]
    headers: Annotated[list[str], Meta(examples=[["Content-Type", "X-Service-Webhook-Id"]])]
    body: Annotated[str | None, Meta(examples=['{"id":"cust_01jc9y3q5me8w92v7x4t6r0n1k"}'])]
    header_values: Annotated[
        dict[str, str],
        Meta(
            examples=[{"Content-Type": "application/json"}],
            description="The headers with their values, signed for the time of the last attempt with the secrets that "
            "sign now. The values of custom headers are masked.",
        ),
    ]


class DeliveryDetails(Struct, frozen=True, rename="camel"):
    """A delivery with all its attempts."""

    delivery: WebhookDelivery
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
    """No webhook endpoint has this id. List the endpoints to see their ids."""


class DeliveryNotFound(NotFound):
    """No delivery has this id. List the deliveries to see their ids; they are kept for 30 days."""


class TokenNotFound(NotFound):
    """No developer token has this id; `sapa token list` shows them."""


class WebhookLimit(Conflict):
    """A company can have at most 10 webhook endpoints. Delete one first."""

    code = "WEBHOOK_LIMIT"
    fix = "Delete an endpoint, or let one receive several kinds of events."


class EndpointActive(Conflict):
    """The webhook endpoint is already active."""

    code = "WEBHOOK_ACTIVE"
    fix = "Nothing is to be done: it receives events."


class EndpointNotActive(Conflict):
    """The webhook endpoint is not active; resume it first."""

    code = "WEBHOOK_NOT_ACTIVE"
    fix = "Resume the endpoint, then try again."


class OverlapRuns(Conflict):
    """The previous secret is still valid, and rotating again would invalidate it now. Wait, or end the overlap."""

    code = "WEBHOOK_OVERLAP"
    fix = "Wait until the 24 hours are over, or force it and replace the secret at once."


class EventGone(Conflict):
    """The event is past its retention and cannot be sent again. Get the resource instead."""

    code = "EVENT_GONE"
    fix = "Get the resource to see its current state."
