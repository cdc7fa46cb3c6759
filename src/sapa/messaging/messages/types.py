"""Messages: what they look like, what can go wrong, what they announce."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from sapa.customers.types import CustomerId
from sapa.events import Event
from sapa.http.errors import ApiError, Conflict
from sapa.http.responses import StoredJson, Timestamp
from sapa.messaging.channels.interface import Channel as Channel
from sapa.messaging.channels.interface import Source as Source
from sapa.values.ids import UuidKind

MESSAGE_ID = UuidKind("message")

MessageId2 = Annotated[str, MESSAGE_ID]
MessageStatus = Literal["pending", "sent", "delivered", "read", "failed", "received"]
FeatureSource = Literal[
    "API", "INBOX", "AI_AGENT", "BROADCAST", "AUTOMATION", "BUSINESS_APP", "IMPORT", "SANDBOX", "CUSTOMER"
]
Direction = Literal["in", "out"]

ACKS: dict[str, int] = {"failed": -1, "pending": 0, "sent": 1, "delivered": 2, "read": 3, "received": 2}

NO_WORD = "NO_WORD"
"""Why a message failed of which its channel never said anything."""

_BODY = "Halo Ayu, pesanan INV-1042 sudah dikirim."


_CODES = "The channel's own code; UNCLEAR while it has given none, NO_WORD when it was waited for in vain."


class SendError(Struct, frozen=True):
    """Why a message did not arrive, or why nobody knows whether it did."""

    code: Annotated[str, Meta(examples=["131026"], description=_CODES)]
    message: Annotated[str, Meta(examples=["Message undeliverable"])]


class Choice(Struct, frozen=True):
    """What the customer chose of an interactive message."""

    kind: Literal["button", "list"]
    id: Annotated[str, Meta(examples=["yes"])]
    title: Annotated[str, Meta(examples=["Ya"])]


class Message(Struct, frozen=True, rename="camel"):
    """A message, to a customer or from one.

    ack is −1 failed, 0 pending, 1 sent, 2 delivered, 3 read. A pending message is one whose outcome is not known
    (yet): the channel did not answer in time, and it is not sent again by itself.
    """

    ack: Annotated[int, Meta(examples=[1])]
    body: Annotated[str | None, Meta(examples=[_BODY])]
    type: Annotated[str, Meta(examples=["text"])]
    message_id: Annotated[str | None, Meta(examples=["wamid.HBgNNjI4MTIz"], description="The channel's own id.")]
    timestamp: Annotated[int, Meta(examples=[1769851800], description="Unix seconds.")]
    message_id2: MessageId2
    client_number: Annotated[str, Meta(examples=["+628123456789"], description="The customer, as the channel has it.")]
    connected_number: Annotated[str, Meta(examples=["+622150001234"], description="The company's side.")]
    feature_source: FeatureSource
    direction: Direction
    source: Source
    status: MessageStatus
    subject: Annotated[str | None, Meta(examples=[None])]
    template_id: Annotated[str | None, Meta(examples=[None], description="The template's name.")]
    media_url: Annotated[str | None, Meta(examples=[None])]
    interactive: Annotated[Raw | None, StoredJson(dict[str, Any] | None), Meta(examples=[None])]
    interaction: Annotated[Raw | None, StoredJson(Choice | None)]
    customer_id: CustomerId | None
    ticket_id: Annotated[str | None, Meta(examples=[None], description="The ticket that it belongs to.")]
    agent_id: Annotated[int | None, Meta(examples=[None])]
    metadata: Annotated[Raw | None, StoredJson(dict[str, Any] | None), Meta(examples=[None])]
    error: Annotated[Raw | None, StoredJson(SendError | None)]
    conflict: Annotated[
        bool, Meta(description="The channel reported a failure first, and later that the message arrived all the same.")
    ]
    sequence: Annotated[int, Meta(examples=[1], description="Grows with every change of the status.")]
    sent_at: Timestamp | None
    delivered_at: Timestamp | None
    read_at: Timestamp | None
    replied_at: Timestamp | None
    failed_at: Timestamp | None


class MessageUpdate(Message, frozen=True, rename="camel"):
    """A message whose status changed."""

    previous_status: MessageStatus


class Window(Struct, frozen=True, rename="camel"):
    """For how long the customer may be sent free messages over the channel."""

    closes_at: Timestamp


class Sender(Struct, frozen=True, rename="camel"):
    """Who wrote, as the channels know them."""

    id: Annotated[str, Meta(examples=["ctc_01jc9y3q5me8w92v7x4t6r0n1k"])]
    name: Annotated[str | None, Meta(examples=["Ayu"])]


class ReceivedMessage(Message, frozen=True, rename="camel"):
    """A message from a customer."""

    contact: Sender
    window: Annotated[Window | None, Meta(description="Null on a channel that takes free messages at any time.")]


class MessageEvent(Struct, frozen=True, rename="camel"):
    """Something that became known of a message."""

    kind: Annotated[
        str,
        Meta(
            examples=["delivered"], description="A status, or replied, edited, revoked, reacted, unclear, incomplete."
        ),
    ]
    at: Timestamp
    is_implied: Annotated[bool, Meta(description="Nobody reported it; it follows from something that was.")]
    sequence: Annotated[int | None, Meta(examples=[2], description="The change it made; null when it made none.")]
    code: Annotated[str | None, Meta(examples=[None])]
    detail: Annotated[str | None, Meta(examples=[None])]


class MessageWithEvents(Message, frozen=True, rename="camel"):
    """A message and all that became known of it, the oldest first."""

    events: list[MessageEvent]


class WindowClosed(Conflict):
    """The customer has not written lately enough for a free message on this channel; send a template."""

    code = "WINDOW_CLOSED"


class TemplateNotFound(Conflict):
    """There is no template with this name."""

    code = "TEMPLATE_NOT_FOUND"


class TemplateNotApproved(Conflict):
    """The channel has not approved this template."""

    code = "TEMPLATE_NOT_APPROVED"


class TemplateParamsMismatch(Conflict):
    """The parameters are not those that the template takes."""

    code = "TEMPLATE_PARAMS_MISMATCH"


class ChannelUnsupported(Conflict):
    """The channel cannot carry this kind of message."""

    code = "CHANNEL_UNSUPPORTED"


class ActiveTicket(Conflict):
    """An agent is handling this chat, and the call asked not to send then."""

    code = "ACTIVE_TICKET"


class SendFailed(ApiError):
    """The channel refused the message; the reason it gave follows."""

    status = 502
    code = "SEND_FAILED"


class MessageReceived(Event):
    """An inbound message was received."""

    kind = "message.received"
    resource_type = ReceivedMessage

    @property
    def resource_id(self) -> str:
        return str(self.resource.message_id2)


class MessageStatusUpdated(Event):
    """A message's delivery status changed."""

    kind = "message.status.updated"
    resource_type = MessageUpdate

    @property
    def resource_id(self) -> str:
        return str(self.resource.message_id2)
