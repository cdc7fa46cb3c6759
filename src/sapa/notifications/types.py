"""Notifications: customers are notified of chosen steps of their parcels."""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from sapa.http.responses import StoredJson, Timestamp
from sapa.messaging.sending.types import Sources
from sapa.messaging.templates.types import TemplateSource
from sapa.values.enum_names import EnumName, words_of

Step = Annotated[
    Literal[
        "booked", "picked_up", "out_for_delivery", "on_hold", "delivery_failed", "delivered", "returning", "returned"
    ],
    EnumName("NotificationStep"),
]
STEPS: tuple[Step, ...] = words_of(Step)

NotificationStatus = Annotated[
    Literal["queued", "sending", "sent", "skipped", "failed", "unknown"], EnumName("ShipmentNotificationStatus")
]

ParamName = Annotated[
    Literal["name", "orderNumber", "awb", "courier", "service", "city", "status", "shop", "trackingUrl"],
    EnumName("NotificationParam"),
]
PARAM_NAMES: tuple[ParamName, ...] = words_of(ParamName)


class NotificationRule(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The template that notifies a customer of one step."""

    step: Annotated[Step, Meta(examples=["out_for_delivery"])]
    template_name: Annotated[str, Meta(min_length=1, max_length=512, examples=["parcel_update"])]
    template_source: Annotated[TemplateSource | None, Meta(examples=["CRM"])] = None
    language: Annotated[Annotated[str, Meta(max_length=20)] | None, Meta(examples=["id"])] = None
    sources: Sources | None = None
    params: Annotated[
        list[ParamName],
        Meta(
            max_length=20,
            examples=[["name", "awb", "trackingUrl"]],
            description="What fills the template's parameters, in their order.",
        ),
    ] = []


class NotificationSettingsIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which steps customers are notified of."""

    enabled: Annotated[bool, Meta(examples=[True])]
    rules: Annotated[list[NotificationRule], Meta(max_length=len(STEPS), description="At most one for each step.")]


class NotificationSettings(Struct, frozen=True, rename="camel"):
    """Which steps customers are notified of. Off until it is enabled."""

    enabled: bool
    rules: Annotated[Raw, StoredJson(list[NotificationRule])]
    updated_at: Timestamp | None


class ShipmentNotification(Struct, frozen=True, rename="camel"):
    """A step that a customer was or will be notified of."""

    step: Step
    status: Annotated[
        NotificationStatus,
        Meta(
            examples=["sent"],
            description="sent: the channel has it, and the message's own status tells more. skipped: not sent, because "
            "of `reason`. unknown: the process ended while it was sent, and it is not sent again.",
        ),
    ]
    reason: Annotated[str | None, Meta(examples=[None], description="Why it was not sent.")]
    code: Annotated[str | None, Meta(examples=[None], description="The reason as an error code.")]
    message_id2: Annotated[str | None, Meta(description="The message.")]
    occurred_at: Annotated[Timestamp, Meta(description="When the parcel took the step.")]
    updated_at: Timestamp


class DueNotification(Struct, frozen=True):
    """A notification that the worker has to send now."""

    company_id: int
    shipment_id: str
    step: Step
    is_abandoned: bool
    """Its worker died while it sent it."""
