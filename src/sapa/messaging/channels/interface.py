"""What a channel's adapter offers, and the words it speaks with the rest of messaging."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, Protocol

from msgspec import Struct

from sapa.db.pool import Database
from sapa.outbound.client import Client
from sapa.values.company import Company
from sapa.values.provider_accounts import AccountField


class Source(StrEnum):
    """The channels."""

    MSGAPP_CLOUD = "MSGAPP_CLOUD"
    MSGAPP_COEX = "MSGAPP_COEX"
    PHOTO_SOCIAL = "PHOTO_SOCIAL"
    SOCIAL_NETWORK = "SOCIAL_NETWORK"
    SHORT_VIDEO = "SHORT_VIDEO"
    MAIL = "MAIL"
    WIDGET = "WIDGET"


IdentityKind = Literal["phone", "wa_id", "bsuid", "psid", "igsid", "tt_conv", "email", "visitor"]
MediaType = Literal["image", "video", "audio", "document"]
Status = Literal["sent", "delivered", "read", "failed"]


class ChannelAccount(Struct, frozen=True):
    """A company's account with a channel, opened for one call. Never logged, never answered."""

    company: Company
    id: str
    source: Source
    address: str
    """Where the channel's API (or mail server, as host:port) listens."""
    account: Mapping[str, str]
    """What is not secret: phone_number_id, page_id, sender address and the like."""
    credentials: Mapping[str, str]
    client: Client
    database: Database | None = None
    """For the channel that is our own: what it carries lies there until the visitor's page fetches it."""
    is_simulated: bool = False
    """The channel is a simulator of this process: it is reached without the guard of outbound calls, and reaches
    nothing outside itself."""

    def __repr__(self) -> str:
        """Wherever it may be printed: not its secrets."""
        return f"Connection({self.source} {self.id})"


class Identity(Struct, frozen=True):
    """Whom a channel knows somebody as."""

    kind: IdentityKind
    value: str


class Text(Struct, frozen=True):
    body: str
    subject: str | None = None


class Media(Struct, frozen=True):
    type: MediaType
    url: str
    caption: str | None = None
    filename: str | None = None


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


class Buttons(Struct, frozen=True):
    body: str
    buttons: Sequence[Button]
    header: str | None = None
    footer: str | None = None


class Choices(Struct, frozen=True):
    """A list to choose from."""

    body: str
    button: str
    sections: Sequence[Section]
    header: str | None = None
    footer: str | None = None


class LinkButton(Struct, frozen=True):
    """A button that opens an address."""

    body: str
    display_text: str
    url: str


class TemplateCall(Struct, frozen=True):
    """A template with its parameters filled in; `rendered` is the text that channels without templates send."""

    name: str
    language: str
    params: Sequence[str]
    header_media: Media | None
    rendered: str
    subject: str | None = None


Content = Text | Media | Buttons | Choices | LinkButton | TemplateCall


class OutgoingMessage(Struct, frozen=True):
    """A message on its way out. `reference` is ours (messageId2) and comes back with what the channel can echo."""

    reference: str
    to: Identity
    content: Content
    quoted: str | None = None
    """The channel's own id of the message that this one answers."""
    thread: Sequence[str] = ()
    """Mail: the ids of the conversation so far."""
    subject: str | None = None
    """Mail: what the conversation is about, for content that has no subject of its own."""
    is_automatic: bool = False
    """Nobody wrote it by hand: mail says so, that machines do not answer each other."""


class SendReceipt(Struct, frozen=True):
    """The channel took it."""

    message_id: str
    """The channel's own id."""
    alias: Identity | None = None
    """Whom the channel says the recipient is, when that differs."""
    missing: str | None = None
    """What of the message did not go out, and why: it went in two parts, and only the first was taken."""


class SendRefusal(Struct, frozen=True):
    """The channel said no, for certain."""

    code: str
    reason: str
    category: Literal[
        "auth", "rate", "quality", "policy", "recipient", "window", "consent", "validation", "media", "template",
        "config", "billing", "transient",
    ]  # fmt: skip
    retry_after: float | None = None
    """Seconds after which the channel would take it, where trying again is sensible."""


class StatusReport(Struct, frozen=True):
    """What a channel says became of a message of ours: by its id, by our reference, or of all up to a watermark."""

    status: Status
    at: datetime
    message_id: str | None = None
    reference: str | None = None
    watermark: datetime | None = None
    recipient: Identity | None = None
    code: str | None = None
    reason: str | None = None


class InboundMedia(Struct, frozen=True):
    type: str
    mime_type: str | None = None
    media_id: str | None = None
    url: str | None = None
    filename: str | None = None
    content: bytes | None = None
    """Mail brings its attachments along."""


class Interaction(Struct, frozen=True):
    """A button or row that the customer chose."""

    kind: Literal["button", "list"]
    id: str
    title: str


class ReceivedItem(Struct, frozen=True):
    """A message from a customer, or (`is_echo`) one that our side sent by other means."""

    message_id: str
    sender: Sequence[Identity]
    """Every identity the channel gives, the one to answer to first. Of an echo: the customer's."""
    at: datetime
    type: str
    """text, image, video, audio, document, sticker, location, contacts, button, reaction, unsupported …"""
    body: str | None = None
    sender_name: str | None = None
    media: Sequence[InboundMedia] = ()
    interaction: Interaction | None = None
    quoted: str | None = None
    quoted_reference: str | None = None
    """Our own reference of the message that it quotes, where the channel's id of that one holds it."""
    is_echo: bool = False
    reference: str | None = None
    """Of an echo of our own send: our reference, where the channel returns it."""
    is_automatic: bool = False
    """An out-of-office note and the like: opens no ticket, stops no clock."""
    is_imported: bool = False
    thread: Sequence[str] = ()
    subject: str | None = None


class MessageAmendment(Struct, frozen=True):
    """A message that was changed, taken back or reacted to afterwards."""

    kind: Literal["edit", "revoke", "reaction"]
    message_id: str
    at: datetime
    body: str | None = None
    sender: Identity | None = None


class NumberChanged(Struct, frozen=True):
    """A customer is known by another number from now on."""

    old: Identity
    new: Identity
    at: datetime


class TemplateVerdict(Struct, frozen=True):
    """The channel decided on a template."""

    name: str
    language: str
    status: str
    reason: str | None = None


Item = StatusReport | ReceivedItem | MessageAmendment | NumberChanged | TemplateVerdict


class BadAccount(Exception):
    """The channel refuses the account, for certain: wrong credentials, or not the account they belong to."""


class Capabilities(Struct, frozen=True):
    """What a channel can carry."""

    sends: frozenset[Literal["message", "template", "media", "interactive"]]
    media_types: frozenset[str]
    longest_text: int
    window: timedelta | None
    """How long after the customer's last message free text is allowed; None where it always is."""
    most_in_window: int | None = None
    reports: frozenset[Status] = frozenset({"sent", "failed"})
    identities: tuple[IdentityKind, ...] = ("phone",)
    """Whom it can send to, the usual kind first."""
    per_second: float = 80
    media_per_second: float | None = None
    """Where pictures and the like have a slower pace of their own."""
    needs_approved_templates: bool = False
    longest_caption: int | None = None
    """Where the words beside a file may not be as long as others."""
    has_captions: bool = True
    """Whether a file may have words beside it."""
    has_link_buttons: bool = True
    """Whether a link is a button of the channel's own; else it is written out in the text."""
    has_threads: bool = False
    """Whether a message to somebody who wrote is an answer to what they wrote, with its subject."""


class Channel(Protocol):
    """An adapter. It holds no state: everything comes with the connection.

    `send` makes one request (two where a picture has to be uploaded first). It returns what the channel said for
    certain, and raises `sapa.outbound.client.NotSent` when the request certainly never left,
    `sapa.outbound.client.Unclear` when nobody can tell (no answer, a 5xx, an answer that cannot be read).
    """

    source: Source
    label: str
    names: Sequence[str]
    """How callers may name it besides its source; two channels may share a name."""
    own_fields: Sequence[str]
    """The fields of an account that name the company's side as somebody to write to, the usual one first."""
    address: str
    """The production address; SAPA_UPSTREAM_<SOURCE> puts another in its place."""
    fields: Sequence[AccountField]
    capabilities: Capabilities

    async def verify(self, connection: ChannelAccount) -> None: ...

    async def send(self, connection: ChannelAccount, message: OutgoingMessage) -> SendReceipt | SendRefusal: ...

    async def fetch_media(
        self, connection: ChannelAccount, media: InboundMedia, most_bytes: int
    ) -> tuple[str, bytes]: ...

    def confirm(self, credentials: Mapping[str, str], query: Mapping[str, str]) -> str | None:
        """The answer to a channel that asks whether this address is ours; None when it asks wrongly."""

    def check_callback(self, credentials: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> None:
        """Raises BadSignature. Looks at nothing else: what it says is read later."""

    def read_callback(self, account: Mapping[str, str], body: bytes) -> Sequence[Item]:
        """Walks every array. Unknown parts are left out."""
