"""The interface of a channel's adapter, and the types it shares with the rest of messaging."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal, Protocol

from msgspec import Meta, Struct

from sapa.db.pool import Database
from sapa.messaging.channels.account_reports import AccountReport
from sapa.messaging.channels.files import FileDescription, FileRule, MailAttachment
from sapa.messaging.channels.guide import ChannelGuide
from sapa.messaging.channels.native_contents import (
    ButtonParameter,
    CatalogProduct,
    FlowButton,
    LocationRequest,
    MapLocation,
    ProductCard,
    ProductChoices,
    TemplateParameter,
)
from sapa.messaging.channels.template_verdicts import TemplateVerdict
from sapa.outbound.client import Client
from sapa.values.company import Company
from sapa.values.enum_names import EnumName
from sapa.values.provider_accounts import AccountField, mask_secrets
from sapa.values.provider_refusals import RefusalCategory


class Source(StrEnum):
    """The channels."""

    # A new channel is one line at the end. A name that several share means the first. Its folder's name finds the rest.
    MSGAPP_CLOUD = "MSGAPP_CLOUD"
    MSGAPP_COEX = "MSGAPP_COEX"
    PHOTO_SOCIAL = "PHOTO_SOCIAL"
    SOCIAL_NETWORK = "SOCIAL_NETWORK"
    SHORT_VIDEO = "SHORT_VIDEO"
    MAIL = "MAIL"
    WIDGET = "WIDGET"


MediaType = Annotated[Literal["image", "video", "audio", "document"], EnumName("MediaType")]
MEDIA_TYPES: Sequence[MediaType] = ("image", "video", "audio", "document")
Status = Literal["sent", "delivered", "read", "failed"]


class ChannelAccount(Struct, frozen=True):
    """A company's account with a channel, for one call. Never logged, never in a response."""

    company: Company
    id: str
    source: Source
    address: str
    """The address of the channel's API, or of a mail server as host:port."""
    account: Mapping[str, str]
    """The public fields: phone_number_id, page_id, sender address."""
    credentials: Mapping[str, str]
    client: Client
    database: Database | None = None
    """For the web chat, which stores its messages here until the visitor's page fetches them."""
    is_internal: bool = False
    """The channel's server is in this process: calls to it skip the guard, and it gets nothing from outside."""
    find_objection: "Callable[[], Awaitable[SendRefusal | None]] | None" = None
    """Why the message must not go any more. A channel that is slow to connect asks again right before the hand-over."""

    def __repr__(self) -> str:
        """Without secrets, wherever it is printed."""
        return f"ChannelAccount({self.source} {self.id})"

    def mask(self, text: str) -> str:
        """A channel's or a library's message without the account's secrets, for every message that leaves the call."""
        return mask_secrets(text, self.credentials)


class BadIdentity(ValueError):
    """A text that is not an id of the expected kind; the message says what to use instead."""


class IdentityKind(Struct, frozen=True):
    """A kind of ids by which a channel knows people."""

    name: str
    """Stored with every contact."""
    parse: Callable[[str, str], str]
    """The id in a caller's text, with the region of phone numbers without a country code; raises BadIdentity."""
    has_distinct_format: bool = False
    """Whether the form of an id shows its kind. An id of another kind is valid only with its channel's name."""


class Identity(Struct, frozen=True):
    """An id by which a channel knows a person."""

    kind: str
    """The name of its kind."""
    value: str


class Text(Struct, frozen=True, tag=True, tag_field="content"):
    body: str
    subject: str | None = None


class Media(Struct, frozen=True, tag=True, tag_field="content"):
    type: MediaType
    url: str
    caption: str | None = None
    filename: str | None = None
    channel_id: str | None = None
    """The channel's id of the file, if it was uploaded there; the URL is not used then."""
    file_id: str | None = None
    """Of a file that we hold."""


class Button(Struct, frozen=True):
    id: str
    title: str


class ListRow(Struct, frozen=True):
    id: str
    title: str
    description: str | None = None


class Section(Struct, frozen=True):
    title: str
    rows: Sequence[ListRow]


class Buttons(Struct, frozen=True, tag=True, tag_field="content"):
    body: str
    buttons: Sequence[Button]
    header: str | None = None
    footer: str | None = None


class Choices(Struct, frozen=True, tag=True, tag_field="content"):
    """A list of choices."""

    body: str
    button: str
    sections: Sequence[Section]
    header: str | None = None
    footer: str | None = None


class LinkButton(Struct, frozen=True, tag=True, tag_field="content"):
    """A button that opens an address."""

    body: str
    display_text: str
    url: str


class CardParameters(Struct, frozen=True, kw_only=True):
    """The values of a card."""

    header: Media | CatalogProduct | None = None
    body: Sequence[TemplateParameter] = ()
    buttons: Sequence[ButtonParameter] = ()


class TemplateCall(Struct, frozen=True, tag=True, tag_field="content", kw_only=True):
    """A template with its parameters; `rendered` is the text for channels without templates."""

    name: str
    language: str
    rendered: str
    header_media: Media | None = None
    header: TemplateParameter | MapLocation | CatalogProduct | None = None
    """The value of a header that is not a file."""
    body: Sequence[TemplateParameter] = ()
    buttons: Sequence[ButtonParameter] = ()
    cards: Sequence[CardParameters] = ()
    offer_ends_at: datetime | None = None
    subject: str | None = None
    """The filled header, if it is a text."""
    text: str = ""
    """The filled body."""


Interactive = Buttons | Choices | LinkButton | FlowButton | ProductCard | ProductChoices | LocationRequest
Content = Text | Media | Interactive | TemplateCall


class OutgoingMessage(Struct, frozen=True):
    """An outgoing message. `reference` is our messageId2, which some channels echo."""

    reference: str
    to: Identity
    content: Content
    quoted: str | None = None
    """The channel's id of the message that this one replies to."""
    thread: Sequence[str] = ()
    """Mail: the Message-IDs of the thread so far."""
    subject: str | None = None
    """Mail: the thread's subject, for content without a subject of its own."""
    attachments: Sequence[MailAttachment] = ()
    """Mail: the files of the message that we hold ourselves. Its content names no other address for them."""
    files: Sequence[FileDescription] = ()
    """The web chat: the files of the message, which it serves itself."""
    is_automatic: bool = False
    """Sent by a machine. Mail says so in a header, so that machines do not reply to each other."""
    is_marketing: bool = False
    """Sent only as long as the recipient's consent permits it."""
    unsubscribe_url: str | None = None
    """Mail: where the recipient of a marketing message unsubscribes."""


class SendReceipt(Struct, frozen=True):
    """The channel accepted the message."""

    message_id: str
    """The channel's own id."""
    alias: Identity | None = None
    """The recipient's id at the channel, if it differs."""
    missing: str | None = None
    """The part that was not sent, and why: the message went in two parts, and only the first was accepted."""
    held: str | None = None
    """Why the channel has not sent the message yet, and may still drop it."""


class SendRefusal(Struct, frozen=True):
    """The channel certainly refused the message."""

    code: str
    reason: str
    category: RefusalCategory
    retry_after: float | None = None
    """Seconds after which a retry may succeed; None if a retry is pointless."""


class ErrorMeaning(Struct, frozen=True):
    """What a channel's error code means for the send."""

    category: RefusalCategory
    retry_after: float | None = None
    """As in `SendRefusal`."""
    is_known: bool = True
    """False for a code that the channel does not document."""

    @property
    def is_definite(self) -> bool:
        """The message was certainly not accepted, whatever the HTTP status."""
        return self.is_known and self.category != "temporary"


UNKNOWN_ERROR = ErrorMeaning("validation", is_known=False)


class SendDeferral(Struct, frozen=True):
    """The channel certainly did not accept the message, and asks to send it again later, in minutes or hours."""

    code: str
    reason: str


class ReportedPricing(Struct, frozen=True):
    """How a channel charges for a message, without the amount."""

    category: str
    """In the channel's own words, as rates have it: marketing, utility, service …"""
    type: str | None
    """Why it is free, or that it is not."""
    is_billable: bool
    country: str | None
    """The recipient's country, ISO 3166; None if it is not known."""


class StatusReport(Struct, frozen=True, tag=True, tag_field="item"):
    """A channel's report on our message: by its id, by our reference, or for all messages up to a watermark."""

    status: Status
    at: datetime
    message_id: str | None = None
    reference: str | None = None
    watermark: datetime | None = None
    recipient: Identity | None = None
    code: str | None = None
    reason: str | None = None
    category: RefusalCategory | None = None
    is_retryable: bool = False
    pricing: ReportedPricing | None = None


class InboundMedia(Struct, frozen=True):
    type: str
    mime_type: str | None = None
    media_id: str | None = None
    url: str | None = None
    filename: str | None = None
    content: bytes | None = None
    """The bytes, if they came with the message, as mail attachments do."""
    file_id: str | None = None
    """Of a file that a visitor of the web chat uploaded here."""
    size: int | None = None


class Interaction(Struct, frozen=True):
    """A button or row that the customer chose."""

    kind: Literal["button", "list"]
    id: str
    title: str


class SenderAuthentication(Struct, frozen=True):
    """What the receiving mail server found out about a mail's sender: pass, fail, none and so on; null if it did not
    check."""

    spf: Annotated[str | None, Meta(examples=["pass"])]
    dkim: Annotated[str | None, Meta(examples=["pass"])]
    dmarc: Annotated[str | None, Meta(examples=["pass"])]


class ReceivedItem(Struct, frozen=True, tag=True, tag_field="item"):
    """A message from a customer, or (`is_echo`) one that the company sent by other means."""

    message_id: str
    sender: Sequence[Identity]
    """All identities that the channel gives, the one to reply to first. For an echo: the customer's."""
    at: datetime
    type: str
    """text, image, video, audio, document, sticker, location, contacts, button, reaction, unsupported …"""
    body: str | None = None
    sender_name: str | None = None
    media: Sequence[InboundMedia] = ()
    interaction: Interaction | None = None
    quoted: str | None = None
    quoted_reference: str | None = None
    """Our reference of the quoted message, if the channel's id holds it."""
    is_echo: bool = False
    reference: str | None = None
    """Of an echo of our own send: our reference, if the channel returns it."""
    is_automatic: bool = False
    """An out-of-office reply, for example: it opens no ticket and ends no wait."""
    own_text: str | None = None
    """The part of the body that stands above a signature or a quoted mail; None if the channel does not tell."""
    is_imported: bool = False
    thread: Sequence[str] = ()
    subject: str | None = None
    authentication: SenderAuthentication | None = None
    parts: bytes | None = None
    """The JSON of its `MessageParts`, if it has any."""


AmendmentKind = Literal["edit", "revoke", "reaction"]


class MessageAmendment(Struct, frozen=True, tag=True, tag_field="item"):
    """A message was edited, deleted or reacted to."""

    kind: AmendmentKind
    message_id: str
    at: datetime
    body: str | None = None
    """The new text, or the emoji; None if the reaction was removed."""
    sender: Identity | None = None
    is_echo: bool = False
    """The company did it."""


class NumberChanged(Struct, frozen=True, tag=True, tag_field="item"):
    """A customer has a new phone number."""

    old: Identity
    new: Identity
    at: datetime


class MarketingPreference(Struct, frozen=True):
    """A person told the channel whether they want marketing messages."""

    choice: str
    """stop, resume, signup or another word of the channel."""
    category: str | None = None
    detail: str | None = None


NoticeKind = Annotated[
    Literal["preference", "referral", "system", "error", "edit", "revoke", "reaction", "unknown"],
    EnumName("ChannelEventKind"),
]


class ChannelNotice(Struct, frozen=True, kw_only=True, tag=True, tag_field="item"):
    """Something that a channel reports besides messages and their status."""

    kind: NoticeKind
    name: str
    """The channel's word for it."""
    data: bytes
    """JSON."""
    at: datetime
    key: str = ""
    """The same for each repetition. Empty if the report has no time or id: then its callback identifies it."""
    sender: Sequence[Identity] = ()
    sender_name: str | None = None
    preference: MarketingPreference | None = None


Item = StatusReport | ReceivedItem | MessageAmendment | NumberChanged | TemplateVerdict | ChannelNotice | AccountReport


class BadAccount(Exception):
    """The channel certainly refuses the account: wrong credentials, or credentials of another account."""


class Capabilities(Struct, frozen=True):
    """What a channel supports."""

    sends: frozenset[Literal["message", "template", "media", "interactive"]]
    files: Mapping[MediaType, FileRule]
    longest_text: int
    window: timedelta | None
    """How long after the customer's last message free text is allowed; None if always."""
    identities: Sequence[IdentityKind]
    """Kinds of recipients, the usual kind first."""
    max_in_window: int | None = None
    reports: frozenset[Status] = frozenset({"sent", "failed"})
    per_second: float = 80
    high_per_second: float | None = None
    media_per_second: float | None = None
    """The rate for media, if it is lower; above it the one of accounts whose throughput the channel upgraded."""
    needs_approved_templates: bool = False
    longest_caption: int | None = None
    """The limit for captions, if it is lower."""
    has_captions: bool = True
    has_audio_captions: bool = True
    longest_link_body: int = 1024
    """How long the text above a native link button may be; above a longer one the text itself holds the link. 0 if the
    channel has no such buttons."""
    has_attachments: bool = False
    """Whether a message carries files itself; otherwise the channel fetches them."""
    max_files: int = 1
    """How many files a message may have."""
    max_callback_bytes: int | None = None
    """The largest callback; None for a channel that nobody calls back for. Its token may be public."""
    has_threads: bool = False
    """Whether a message to a customer who wrote is a reply in their thread, with its subject."""
    interactives: frozenset[type[Struct]] = frozenset({Buttons, Choices, LinkButton})
    """The interactive contents that it sends, natively or as text."""
    has_choices: bool = False
    """Whether a list of choices is shown as such, and the chosen row comes back."""
    has_quotes: bool = False
    """Whether a message can quote another one."""
    has_unsubscribe_links: bool = False
    """Whether marketing messages carry a link to unsubscribe."""
    has_forgeable_senders: bool = False
    """Whether anybody can write in another person's name, unless the sender was authenticated."""


class Channel(Protocol):
    """An adapter. It holds no state: everything comes with the connection.

    `send` makes one request, or two if a picture is uploaded first, and returns what the channel certainly did. It
    raises `NotSent` of `sapa.outbound.client` if the request never left, and `Unclear` if the outcome is unknown.
    """

    source: Source
    label: str
    names: Sequence[str]
    """Names for callers besides the source; two channels may share one."""
    own_fields: Sequence[str]
    """The account's fields that hold the company's own address on the channel, the usual one first."""
    address: str
    """The production address; SAPA_UPSTREAM_<SOURCE> overrides it."""
    guide: ChannelGuide
    fields: Sequence[AccountField]
    capabilities: Capabilities

    async def verify(self, connection: ChannelAccount) -> None: ...

    async def send(
        self, connection: ChannelAccount, message: OutgoingMessage
    ) -> SendReceipt | SendRefusal | SendDeferral: ...

    async def fetch_media(
        self, connection: ChannelAccount, media: InboundMedia, max_bytes: int
    ) -> tuple[str, bytes]: ...

    def confirm(self, credentials: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        """The response to the channel's verification of the hook's address; None if the verification fails."""

    def check_callback(self, credentials: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> None:
        """Raises BadSignature. Checks the signature only; the body is parsed later."""

    def read_callback(self, account: Mapping[str, str], body: bytes) -> Sequence[Item]:
        """Reads every array of the body. What it does not know becomes a `ChannelNotice`. Raises ValueError for a body
        that is not in the channel's format at all."""
