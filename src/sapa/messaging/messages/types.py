"""Messages: types, errors, events."""

from datetime import datetime
from math import ceil
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from sapa.events import Event
from sapa.http.errors import ApiError, Conflict, ErrorBody
from sapa.http.responses import StoredJson, Timestamp
from sapa.messaging.channels.interface import Channel as Channel
from sapa.messaging.channels.interface import SenderAuthentication
from sapa.messaging.channels.interface import Source as Source
from sapa.messaging.channels.received_parts import (
    Cart,
    ContactCard,
    FlowAnswer,
    MessageContext,
    ReceivedLocation,
    Referral,
    SharedContent,
    UnsupportedContent,
)
from sapa.messaging.contacts.types import Window
from sapa.messaging.costs.types import MessagePricing
from sapa.messaging.files.types import Attachment
from sapa.messaging.messages.state import DeliveryState
from sapa.values.api_base import Base
from sapa.values.enum_names import EnumName
from sapa.values.ids import CustomerId, UuidKind
from sapa.values.provider_refusals import ProviderRefusal, RefusalCategory

MESSAGE_ID = UuidKind("message")

MessageId2 = Annotated[str, MESSAGE_ID]
MessageStatus = Annotated[
    Literal["pending", "sent", "delivered", "read", "failed", "received"], EnumName("MessageStatus")
]
FeatureSource = Annotated[
    Literal["API", "INBOX", "AI_AGENT", "BROADCAST", "AUTOMATION", "BUSINESS_APP", "IMPORT", "SANDBOX", "CUSTOMER"],
    EnumName("FeatureSource"),
]
MessageParty = Annotated[Literal["customer", "company"], EnumName("MessageParty")]
Direction = Annotated[Literal["in", "out"], EnumName("MessageDirection")]

NO_WORD = "NO_WORD"
"""The error code of a message that its channel never reported on."""

_BODY = "Halo Ayu, pesanan INV-1042 sudah dikirim."


_CODES = (
    "The channel's own code; UNCLEAR while the outcome is unknown, HELD while the channel holds the message back, "
    "NO_WORD if the channel never reported on it."
)


class SendError(Struct, frozen=True, omit_defaults=True):
    """Why a message failed, or why its outcome is unknown. A refusal of the channel has a category."""

    code: Annotated[str, Meta(examples=["131026"], description=_CODES)]
    message: Annotated[str, Meta(examples=["Message undeliverable"])]
    category: RefusalCategory | None = None
    retryable: Annotated[bool, Meta(description="Whether the same message may be accepted later.")] | None = None


class Choice(Struct, frozen=True):
    """The button or row of an interactive message that the customer chose."""

    kind: Annotated[Literal["button", "list"], EnumName("ChoiceKind")]
    id: Annotated[str, Meta(examples=["yes"])]
    title: Annotated[str, Meta(examples=["Ya"])]


class MessageReaction(Struct, frozen=True):
    """How one side reacted to a message."""

    by: MessageParty
    emoji: Annotated[str | None, Meta(examples=["👍"], description="Null: the reaction was removed.")]
    at: Timestamp


class Message(Struct, frozen=True, rename="camel"):
    """A message, to a customer or from one.

    ack is −1 failed, 0 pending, 1 sent, 2 delivered, 3 read. The outcome of a pending message is not known yet: the
    channel did not answer in time, and the message is not sent again automatically; or a mail server asked to try
    later, and it is sent again for some hours.
    """

    ack: Annotated[int, Meta(examples=[1])]
    body: Annotated[str | None, Meta(examples=[_BODY])]
    type: Annotated[str, Meta(examples=["text"])]
    message_id: Annotated[str | None, Meta(examples=["wamid.HBgNNjI4MTIz"], description="The channel's own id.")]
    timestamp: Annotated[int, Meta(examples=[1769851800], description="Unix seconds.")]
    message_id2: MessageId2
    client_number: Annotated[
        str, Meta(examples=["+628123456789"], description="The customer's number or id on the channel.")
    ]
    connected_number: Annotated[
        str, Meta(examples=["+622150001234"], description="The company's number or id on the channel.")
    ]
    feature_source: FeatureSource
    direction: Direction
    source: Source
    status: MessageStatus
    subject: Annotated[str | None, Meta(examples=[None])]
    template_id: Annotated[str | None, Meta(examples=[None], description="The template's name.")]
    media_url: Annotated[str | None, Meta(examples=[None])]
    attachments: Annotated[
        Raw, StoredJson(list[Attachment]), Meta(examples=[[]], description="The files that Sapa holds of it.")
    ]
    interactive: Annotated[Raw | None, StoredJson(dict[str, Any] | None), Meta(examples=[None])]
    interaction: Annotated[Raw | None, StoredJson(Choice | None)]
    customer_id: CustomerId | None
    ticket_id: Annotated[str | None, Meta(examples=[None], description="The message's ticket.")]
    agent_id: Annotated[int | None, Meta(examples=[None])]
    metadata: Annotated[Raw | None, StoredJson(dict[str, Any] | None), Meta(examples=[None])]
    error: Annotated[Raw | None, StoredJson(SendError | None)]
    authentication: Annotated[
        Raw | None,
        StoredJson(SenderAuthentication | None),
        Meta(
            examples=[None],
            description="Of a received mail: what your mail server found out about its sender; null if nothing.",
        ),
    ]
    context: Annotated[
        Raw | None,
        StoredJson(MessageContext | None),
        Meta(examples=[None], description="The quoted message, product or story, and whether it was forwarded."),
    ]
    referral: Annotated[
        Raw | None,
        StoredJson(Referral | None),
        Meta(examples=[None], description="The ad, post or link that brought the customer."),
    ]
    order: Annotated[
        Raw | None, StoredJson(Cart | None), Meta(examples=[None], description="Of the type `order`: the cart.")
    ]
    flow: Annotated[
        Raw | None,
        StoredJson(FlowAnswer | None),
        Meta(examples=[None], description="Of the type `flow`: what the customer filled in."),
    ]
    location: Annotated[
        Raw | None, StoredJson(ReceivedLocation | None), Meta(examples=[None], description="Of the type `location`.")
    ]
    contact_cards: Annotated[
        Raw | None, StoredJson(list[ContactCard] | None), Meta(examples=[None], description="Of the type `contacts`.")
    ]
    shares: Annotated[
        Raw | None,
        StoredJson(list[SharedContent] | None),
        Meta(examples=[None], description="Posts, reels, stories, products and links, with their addresses."),
    ]
    unsupported: Annotated[
        Raw | None,
        StoredJson(UnsupportedContent | None),
        Meta(examples=[None], description="Of the type `unsupported`: the message as the channel sent it."),
    ]
    reactions: Annotated[
        Raw | None,
        StoredJson(list[MessageReaction] | None),
        Meta(examples=[None], description="The latest of the customer and of the company."),
    ]
    edited_at: Annotated[Timestamp | None, Meta(description="`body` is the newest text.")]
    revoked_at: Annotated[Timestamp | None, Meta(description="When its sender deleted the message.")]
    conflict: Annotated[
        bool, Meta(description="The channel reported a failure first, and later that the message arrived.")
    ]
    sequence: Annotated[int, Meta(examples=[1], description="Increases with every change of the status.")]
    sent_at: Timestamp | None
    delivered_at: Timestamp | None
    read_at: Timestamp | None
    replied_at: Timestamp | None
    failed_at: Timestamp | None
    pricing: Annotated[
        Raw | None,
        StoredJson(MessagePricing | None),
        Meta(examples=[None], description="Null until the channel reports it; only WhatsApp does."),
    ]


class MessageUpdate(Message, frozen=True, rename="camel"):
    """A message whose status changed."""

    previous_status: MessageStatus


class MessageChange(Struct, frozen=True):
    """What happened to a message after it was sent."""

    kind: Annotated[Literal["edited", "revoked", "reacted"], EnumName("MessageChangeKind")]
    by: MessageParty
    at: Timestamp
    detail: Annotated[str | None, Meta(examples=["👍"], description="The new text, or the emoji; null if removed.")]


class ChangedMessage(Message, frozen=True, rename="camel"):
    """A message that was edited, deleted or reacted to."""

    change: MessageChange


class Sender(Struct, frozen=True, rename="camel"):
    """The person who wrote."""

    id: Annotated[str, Meta(examples=["ctc_01jc9y3q5me8w92v7x4t6r0n1k"])]
    name: Annotated[str | None, Meta(examples=["Ayu"])]


class ReceivedMessage(Message, frozen=True, rename="camel"):
    """A message from a customer."""

    contact: Sender
    window: Annotated[Window | None, Meta(description="Null on a channel without a reply window.")]


class MessageEvent(Struct, frozen=True, rename="camel"):
    """An event of a message."""

    kind: Annotated[
        str,
        Meta(
            examples=["delivered"],
            description="A status, or replied, edited, revoked, reacted, unclear, deferred, held, incomplete.",
        ),
    ]
    at: Timestamp
    is_implied: Annotated[bool, Meta(description="True if it was not reported, but follows from another report.")]
    sequence: Annotated[
        int | None,
        Meta(examples=[2], description="The sequence of the change that it made; null if it changed nothing."),
    ]
    code: Annotated[str | None, Meta(examples=[None])]
    detail: Annotated[str | None, Meta(examples=[None])]


class MessageWithEvents(Message, frozen=True, rename="camel"):
    """A message with its events, the oldest first."""

    events: list[MessageEvent]


class StoredMessageWithEvents(Message, frozen=True, rename="camel"):
    """A message read with its events by one statement, so that the two agree."""

    events: Raw


class LockedMessage(Message, frozen=True, rename="camel"):
    """A locked message, with the instants that the API does not show."""

    created_at: datetime
    accepted_at: datetime | None

    @property
    def id(self) -> str:
        return self.message_id2

    @property
    def provider_id(self) -> str | None:
        return self.message_id

    @property
    def state(self) -> DeliveryState:
        return DeliveryState(
            self.status,
            self.created_at,
            self.accepted_at,
            _parse_instant(self.sent_at),
            _parse_instant(self.delivered_at),
            _parse_instant(self.read_at),
            _parse_instant(self.failed_at),
            self.conflict,
        )


def _parse_instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


class ChangedState(Struct, frozen=True):
    """What a report changes; the fields are the columns."""

    id: str
    status: str
    accepted_at: datetime | None
    sent_at: datetime | None
    delivered_at: datetime | None
    read_at: datetime | None
    failed_at: datetime | None
    conflict: bool
    provider_id: str | None
    error: str | None
    sequence: int
    pricing: str | None


class AmendableMessage(Struct, frozen=True):
    """A locked message: the fields that its sender and recipient change."""

    id: str
    direction: Direction
    body: str | None
    edited_at: datetime | None
    revoked_at: datetime | None
    reactions: Raw | None


class NewMessage(Struct, frozen=True, kw_only=True):
    """A message to insert; the fields are the columns."""

    id: str
    direction: str
    source: str
    connection_id: str
    contact_id: str | None = None
    customer_id: str | None = None
    identity_kind: str
    identity: str
    client_number: str
    connected_number: str
    provider_id: str | None = None
    quoted: str | None = None
    thread: list[str] | None = None
    type: str
    body: str | None = None
    subject: str | None = None
    template_id: str | None = None
    media_url: str | None = None
    attachments: bytes = b"[]"
    interactive: bytes | None = None
    interaction: bytes | None = None
    metadata: bytes | None = None
    authentication: bytes | None = None
    parts: bytes | None = None
    """The JSON of its `MessageParts`."""
    feature_source: str
    agent_id: int | None = None
    ticket_id: str | None = None
    status: str
    created_at: datetime
    sent_at: datetime | None = None
    delivered_at: datetime | None = None
    request_id: str | None = None
    request_stored_at: datetime | None = None


class NewEvent(Struct, frozen=True):
    """An event of a message to insert; the fields are the columns."""

    message_id: str
    kind: str
    reported_at: datetime
    at: datetime
    is_implied: bool = False
    sequence: int | None = None
    code: str | None = None
    detail: str | None = None


class ChannelUnsupported(Conflict):
    """The channel does not support this kind of message."""

    code = "CHANNEL_UNSUPPORTED"
    fix = "Send another kind of message, or use another channel. The guide to messaging lists what each one can do."


class SendFailed(ApiError):
    """The channel refused the message. Its reason follows."""

    status = 502
    code = "SEND_FAILED"
    may_have_retry_after = True
    fix = (
        "`details` has a category, the provider's code and whether a retry may help. Retry only then, and after "
        "`Retry-After` if the response has it."
    )

    def __init__(self, message: str | None = None, *, refusal: ProviderRefusal | None = None, pause: float = 0) -> None:
        """`pause` is how many seconds to wait before a retry, if the channel says so."""
        super().__init__(message, headers={"retry-after": str(ceil(pause))} if pause else None)
        self.refusal = refusal

    def build_body(self) -> ErrorBody:
        return ErrorBody(self.code, self.message, [self.refusal] if self.refusal else None)


class MessageReceived(Event):
    """An inbound message was received."""

    kind = "message.received"
    base = Base.MESSAGING
    resource_type = ReceivedMessage

    @property
    def resource_id(self) -> str:
        return str(self.resource.message_id2)


class MessageStatusUpdated(Event):
    """A message's delivery status changed."""

    kind = "message.status.updated"
    base = Base.MESSAGING
    resource_type = MessageUpdate

    @property
    def resource_id(self) -> str:
        return str(self.resource.message_id2)


class MessageUpdated(Event):
    """A message was edited or deleted, or somebody reacted to it."""

    kind = "message.updated"
    base = Base.MESSAGING
    resource_type = ChangedMessage

    @property
    def resource_id(self) -> str:
        return str(self.resource.message_id2)
