"""Requests that send messages, their stages before the send, and the errors."""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from sapa.access.types import CompanyClock
from sapa.http.errors import Conflict, RateLimitExceeded
from sapa.http.responses import Accepted
from sapa.http.schemas import DocumentedAs
from sapa.messaging.channels.interface import Content, Identity, MediaType, Source
from sapa.messaging.channels.received_parts import MessageContext, MessageParts, encode_parts
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.contacts.types import Thread
from sapa.messaging.files.types import FileId, StoredFile
from sapa.messaging.messages.types import FeatureSource, Message
from sapa.messaging.templates.filling import hide_secrets
from sapa.messaging.templates.types import (
    AnySource,
    CatalogProductId,
    Params,
    ProductSectionIn,
    Template,
    TemplateValues,
)
from sapa.values.instants import truncate_to_milliseconds

MAX_METADATA_BYTES = 10_000

Recipient = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=320,
        examples=["+628123456789"],
        description=(
            "A phone number in any common format, an e-mail address, or the channel's own id of the person. "
            "An id of a channel needs that channel in sources."
        ),
    ),
]
SourceWord = Annotated[str, Meta(min_length=1, max_length=50), DocumentedAs(Source)]
Sources = Annotated[
    SourceWord | Annotated[list[SourceWord], Meta(min_length=1, max_length=len(Source))],
    Meta(
        examples=["MSGAPP_CLOUD"],
        description=(
            "The channel to use, or several in order of preference: the first that can send the message is used. Other "
            "spellings, such as `msgapp` or `msgapp cloud api`, are accepted too. "
            "Default: the first connected channel that can send it to this recipient."
        ),
    ),
]
CountryCode = Annotated[
    str,
    Meta(max_length=5, examples=["ID"], description="For a number without a country code: ID, 62 or +62."),
]
Url = Annotated[str, Meta(min_length=1, max_length=2048, examples=["https://shop.example/kopi.jpg"])]
Text = Annotated[str, Meta(min_length=1, max_length=65_536, examples=["Halo Ayu!"])]
IgnoreActiveTicket = Annotated[
    bool, Meta(description="True: while an agent is handling the chat, do not send and answer ACTIVE_TICKET.")
]
ReplyTo = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        examples=[None],
        description="The messageId2 of a message in this conversation, which the new one quotes.",
    ),
]
AgentId = Annotated[int, Meta(ge=1, le=2**53 - 1, description="The agent who sends the message.")]
Metadata = Annotated[
    dict[str, Any],
    Meta(max_length=100, description="Your own data. Numbers beyond 9007199254740991 become strings of their digits."),
]


class SendIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What all four kinds of send have in common."""

    to: Recipient
    sources: Sources | None = None
    country_code: CountryCode | None = None
    ignore_active_ticket: IgnoreActiveTicket = False
    reply_to: ReplyTo | None = None
    agent_id: AgentId | None = None
    metadata: Metadata | None = None


class MessageIn(SendIn, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A plain message, with an image if the channel supports both in one message."""

    message: Text
    image_url: Annotated[str, Meta(max_length=2048)] | None = None
    subject: Annotated[str, Meta(max_length=500, description="The subject of an e-mail.")] | None = None


class TemplateMessageIn(SendIn, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A template with its parameters."""

    template_name: Annotated[str, Meta(min_length=1, max_length=512, examples=["order_update"])] = field(
        name="template_name"
    )
    template_source: AnySource | None = field(default=None, name="template_source")
    params: Params = []
    media_url: (
        Annotated[
            str,
            Meta(max_length=2048, description="The file of a media header. components.header takes an uploaded one."),
        ]
        | None
    ) = None
    components: Annotated[TemplateValues | None, Meta(examples=[None])] = None
    language: (
        Annotated[
            str, Meta(max_length=20, description="Required if the template has several and you want a certain one.")
        ]
        | None
    ) = None


class MediaMessageIn(SendIn, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An uploaded file, or a file at a public URL. The channel fetches the latter, or Sapa does if the channel accepts
    uploads only."""

    media_url: Annotated[
        Url | None,
        Meta(
            examples=["https://shop.example/kopi.jpg"],
            description="A public URL, or the `mediaUrl` of a message. Required without attachmentId.",
        ),
    ] = None
    attachment_id: Annotated[
        FileId | None,
        Meta(examples=[None], description="The id of an uploaded file, or of a file of a message; without mediaUrl."),
    ] = None
    media_type: (
        Annotated[
            MediaType,
            Meta(description="Default: derived from the file, or from the URL's file extension."),
        ]
        | None
    ) = None
    caption: Annotated[str, Meta(max_length=1024)] | None = None
    filename: Annotated[str, Meta(min_length=1, max_length=255)] | None = None


Short = Annotated[str, Meta(min_length=1, max_length=60, examples=["INV-1042"])]
Title = Annotated[str, Meta(min_length=1, max_length=20, examples=["Ya"])]
InteractiveBody = Annotated[str, Meta(min_length=1, max_length=1024, examples=["Apakah pesanan sudah benar?"])]


class ReplyButtonIn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A button. Its id comes back when it is pressed."""

    id: Annotated[str, Meta(min_length=1, max_length=256, examples=["yes"])]
    title: Title


class RowIn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One choice of a list."""

    id: Annotated[str, Meta(min_length=1, max_length=200, examples=["gayo"])]
    title: Annotated[str, Meta(min_length=1, max_length=24, examples=["Kopi Gayo"])]
    description: Annotated[str, Meta(max_length=72)] | None = None


class SectionIn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rows under a title."""

    title: Annotated[str, Meta(max_length=24, examples=["Kopi"], description="May be empty if it is the only section.")]
    rows: Annotated[list[RowIn], Meta(min_length=1, max_length=10)]


class ButtonsIn(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, tag_field="type", tag="buttons"
):
    """Up to three buttons."""

    body: InteractiveBody
    buttons: Annotated[list[ReplyButtonIn], Meta(min_length=1, max_length=3, examples=[[{"id": "yes", "title": "Ya"}]])]
    header: Short | None = None
    footer: Short | None = None


class ListIn(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, tag_field="type", tag="list"
):
    """A list of up to ten rows to choose from, behind a button."""

    body: InteractiveBody
    button: Title
    sections: Annotated[list[SectionIn], Meta(min_length=1, max_length=10)]
    header: Short | None = None
    footer: Short | None = None


class LinkIn(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, tag_field="type", tag="cta_url"
):
    """A button that opens a URL."""

    body: InteractiveBody
    display_text: Title
    url: Annotated[str, Meta(min_length=1, max_length=2000, examples=["https://shop.example/orders/1042"])]


class FlowIn(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, tag_field="type", tag="flow"
):
    """A button that opens a form of the channel. The answers come back with the token."""

    body: InteractiveBody
    button: Title
    flow_id: Annotated[str, Meta(min_length=1, max_length=100, examples=["1278236563912"])]
    flow_token: Annotated[str, Meta(min_length=1, max_length=200, examples=["order-1042"])]
    screen: (
        Annotated[
            str, Meta(min_length=1, max_length=100, description="The first screen. Without one your server chooses it.")
        ]
        | None
    ) = None
    data: Annotated[dict[str, Any], Meta(max_length=100, description="The data of the first screen.")] | None = None
    draft: Annotated[bool, Meta(description="Send the flow although it is not published, to test it.")] = False
    header: Short | None = None
    footer: Short | None = None


CatalogId = Annotated[str, Meta(min_length=1, max_length=100, examples=["194836987003835"])]


class ProductMessageIn(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, tag_field="type", tag="product"
):
    """One product of your catalogue at the channel."""

    catalog_id: CatalogId
    product_id: CatalogProductId
    body: InteractiveBody | None = None
    footer: Short | None = None


class ProductListIn(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, tag_field="type", tag="product_list"
):
    """Up to 30 products of your catalogue at the channel."""

    catalog_id: CatalogId
    header: Short
    body: InteractiveBody
    sections: Annotated[list[ProductSectionIn], Meta(min_length=1, max_length=10)]
    footer: Short | None = None


class LocationRequestIn(
    Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    forbid_unknown_fields=True,
    tag_field="type",
    tag="location_request",
):
    """Asks for the customer's location, which comes as an ordinary message."""

    body: InteractiveBody


AnyInteractiveIn = ButtonsIn | ListIn | LinkIn | FlowIn | ProductMessageIn | ProductListIn | LocationRequestIn


class InteractiveMessageIn(SendIn, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A message with buttons, a list of choices, a link, a form, products, or a request for a location."""

    interactive: AnyInteractiveIn


class ReplyMessageIn(SendIn, frozen=True, kw_only=True):
    """A reply in a ticket: a text, uploaded files, or both."""

    message: Text | None
    attachment_ids: Sequence[str]


AnySendIn = MessageIn | TemplateMessageIn | MediaMessageIn | InteractiveMessageIn | ReplyMessageIn

SendKind = Literal["message", "template", "media", "interactive"]


class ReactionIn(Struct, frozen=True, forbid_unknown_fields=True):
    """A reaction to a message."""

    emoji: Annotated[str, Meta(min_length=1, max_length=32, examples=["👍"])]


class SendContext(Struct, frozen=True, kw_only=True):
    """Why a message is sent: for an API call, as a reply in a ticket, or automatically. Only API calls are recorded."""

    agent_id: int | None
    yields_to_agent: bool = False
    """Refuse the send while an agent is handling the chat."""
    feature_source: FeatureSource = "API"
    ticket_id: str | None = None
    connection_id: str | None = None
    """The connection that the message has to use."""
    is_handover: bool = False
    seen_sequence: int | None = None
    """Refuse the message if another agent wrote after this entry of the ticket."""
    opens_ticket: bool = False
    """Open a ticket if the chat has no active one."""
    needs_subscription: bool = False
    """Whether a marketing template needs a recipient who subscribed, not only one who did not unsubscribe."""

    @property
    def is_api_call(self) -> bool:
        return self.ticket_id is None and self.feature_source == "API"


class MessageFile(Struct, frozen=True):
    """A stored file that is sent with a message."""

    file: StoredFile
    type: MediaType
    field: str
    """The request's field that names it."""


class MessageLink(Struct, frozen=True):
    """The address of a file that is sent with a message, and that Sapa does not store."""

    url: str
    type: MediaType
    field: str
    """The request's field that holds it."""


class MessageDraft(Struct, frozen=True, kw_only=True):
    """A message whose content is valid, before a channel is chosen."""

    kind: SendKind
    content: Content
    type: str
    body: str | None
    subject: str | None = None
    media_url: str | None = None
    interactive: bytes | None = None
    metadata: bytes | None = None
    template: Template | None = None
    stored_body: str | None = None
    """What is stored instead of the body, if that holds a one-time code."""
    secrets: Sequence[str] = ()
    """The code itself, in whatever form it was sent."""
    caption_field: str = "caption"
    """The request's field that holds the caption of a file."""
    files: Sequence[MessageFile] = ()
    links: Sequence[MessageLink] = ()
    has_media_type: bool = True
    """Whether the request sets the type of its files; otherwise the channel's rules decide."""

    @property
    def is_marketing(self) -> bool:
        """Whether the recipient's consent decides: replies and messages about an order need none."""
        return self.template is not None and self.template.category == "MARKETING"


class AnsweredMail(Struct, frozen=True):
    """The mail that a message replies to."""

    message_id: str
    """Its Message-ID."""
    thread: Sequence[str]
    subject: str | None
    """The subject of the reply; None if the mail had no subject."""


class Conversation(Struct, frozen=True):
    """The company's time, its account with a channel, and the recipient's thread there."""

    clock: CompanyClock
    clock_read: float
    """The monotonic time at which the clock was read."""
    connected: ConnectedChannel
    thread: Thread | None
    """None if neither side has written yet."""
    customer_id: str | None
    throughput: str | None
    """The channel's word for that of the account."""


class SendPlan(Struct, frozen=True):
    """A message that passed all checks: what to send, to whom, over which account."""

    draft: MessageDraft
    connected: ConnectedChannel
    to: Identity
    clock: CompanyClock
    clock_read: float
    """The monotonic time at which the clock was read."""
    thread: Thread | None = None
    """With the recipient; None if it was not found, or may have changed since."""
    customer_id: str | None = None
    answered: AnsweredMail | None = None
    quoted: str | None = None
    """The channel's id of the message that this one quotes."""
    quoted_id: str | None = None
    """The messageId2 of that message, or of the mail that this one replies to."""
    unsubscribe_url: str | None = None
    """For the recipient of a marketing message, on channels that have such links."""
    throughput: str | None = None
    is_automatic: bool = False

    def read_clock(self) -> datetime:
        """The company's time by now, without asking the database again."""
        return truncate_to_milliseconds(self.clock.now + timedelta(seconds=time.monotonic() - self.clock_read))

    def build_parts(self) -> bytes | None:
        quoted = self.answered.message_id if self.answered else self.quoted
        if quoted is None:
            return None
        return encode_parts(MessageParts(context=MessageContext(message_id=quoted, message_id2=self.quoted_id)))

    def reveal(self, message: Message) -> Message:
        """The message as its sender gets it: with the one-time code, which is not stored."""
        return message if self.draft.stored_body is None else replace(message, body=self.draft.body)

    def conceal(self, result: Message | Accepted[Message]) -> Message | Accepted[Message]:
        """What a repeated request gets: the message as it is stored, without a one-time code."""
        if isinstance(result, Accepted):
            return Accepted(self.conceal_message(result.data))
        return self.conceal_message(result)

    def conceal_message(self, message: Message) -> Message:
        """The message as it is stored."""
        return message if self.draft.stored_body is None else replace(message, body=self.draft.stored_body)

    def mask_secrets(self, text: str) -> str:
        return hide_secrets(text, self.draft.secrets)


class WindowClosed(Conflict):
    """The reply window is closed: the customer has not written recently enough. Send a template."""

    code = "WINDOW_CLOSED"
    fix = "Send an approved template. The customer's next message opens the window again."


class ActiveTicket(Conflict):
    """An agent is handling this chat. Send without ignoreActiveTicket, or wait until the ticket is resolved."""

    code = "ACTIVE_TICKET"
    fix = "Send without `ignoreActiveTicket`, or wait until the ticket is resolved."


class MessageNotOnChannel(Conflict):
    """The channel has no such message: it was not accepted there, or a customer did not write it."""

    code = "MESSAGE_NOT_ON_CHANNEL"
    fix = "Use the `messageId2` of a message that a customer wrote and that the channel delivered."


class ChannelBusy(RateLimitExceeded):
    """Too many messages are waiting for this channel. Retry after the seconds in Retry-After."""

    fix = "Wait as long as `Retry-After` says and send again."


QUOTA_USED = "{most} messages were sent since the customer last wrote, the most that this channel allows."
