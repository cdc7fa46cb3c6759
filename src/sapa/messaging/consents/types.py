"""Consent to marketing messages: who may get them, who said so, and what proves it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.customers.subscriptions import ConsentProofIn
from sapa.http.errors import Conflict
from sapa.http.responses import StoredJson, Timestamp
from sapa.values.change_actor import ChangeActor
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind

CONSENT_ID = IdKind("cns_")

ConsentId = Annotated[str, CONSENT_ID]

CUSTOMER = "customer"
"""The kind of a subject that is a customer; the others are kinds of identities."""
ALL_CHANNELS = "CRM"
"""The app that stands for all channels."""

ConsentStatus = Annotated[Literal["subscribe", "unsubscribe"], EnumName("SubscriptionStatus")]

ConsentSource = Annotated[
    Literal[
        "api", "console", "import", "system", "word", "link", "one_click", "channel_preference", "channel_refusal"
    ],
    EnumName("ConsentSource"),
]  # fmt: skip

ConsentApp = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=50,
        examples=["CRM"],
        description="CRM for all channels, or the name of one channel.",
    ),
]


class ConsentProof(Struct, frozen=True, kw_only=True, rename="camel"):
    """What shows that the person made this choice."""

    text: Annotated[str | None, Meta(examples=["STOP"], description="The words that the person agreed to or used.")] = (
        None
    )
    place: Annotated[
        str | None, Meta(examples=["https://shop.example/checkout"], description="Where it happened; a channel's name.")
    ] = None
    reference: Annotated[
        str | None, Meta(examples=[None], description="The messageId2, or your id of the document.")
    ] = None
    obtained_at: Annotated[Timestamp | None, Meta(description="When it happened.")] = None


class Consent(Struct, frozen=True, rename="camel"):
    """A decision about marketing messages to a customer, or to a number, address or id that they use on a channel."""

    id: ConsentId
    app: ConsentApp
    identity_kind: Annotated[
        str | None, Meta(examples=["phone"], description="Null if it concerns the customer as a whole.")
    ]
    identity: Annotated[str | None, Meta(examples=["+628123456789"])]
    status: ConsentStatus
    source: Annotated[
        ConsentSource,
        Meta(
            examples=["word"],
            description="word: a message such as STOP. link, one_click: the unsubscribe link or button of a mail. "
            "channel_preference: a setting at the channel. channel_refusal: the channel refused a message for it.",
        ),
    ]
    by_person: Annotated[
        bool, Meta(description="Then only the person lifts it, or a user of the console who records proof.")
    ]
    current: Annotated[bool, Meta(description="False for a decision that a later one replaced.")]
    proof: Annotated[Raw, StoredJson(ConsentProof)]
    actor: Annotated[Raw | None, StoredJson(ChangeActor | None)]
    obtained_at: Timestamp
    created_at: Timestamp


class ConsentIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A decision of a customer, with its proof."""

    app: ConsentApp
    status: ConsentStatus
    proof: Annotated[ConsentProofIn | None, Meta(examples=[None])] = None


class NewConsent(Struct, frozen=True, kw_only=True):
    """A decision to record."""

    kind: str
    key: str
    app: str
    status: ConsentStatus
    source: ConsentSource
    proof: ConsentProof
    obtained_at: datetime
    identity: str | None = None
    actor: ChangeActor | None = None
    """None for the person."""


class ConsentSubject(Struct, frozen=True):
    """A customer or an identity, and the app that a decision was recorded for."""

    kind: str
    key: str
    app: str


class RecipientConsent(Struct, frozen=True):
    """What is known about the consent of a message's recipient."""

    identity_statuses: list[str]
    """Of the decisions about the identities by which the channel knows the recipient."""
    subscriptions: list[str]
    """What each customer with this identity subscribes to, as JSON."""


class StopOfCustomer(Struct, frozen=True):
    """A stop about an identity of one of several customers."""

    number: int
    """The customer's position."""
    kind: str
    key: str
    app: str


Word = Annotated[str, Meta(min_length=1, max_length=50, examples=["STOP PROMO"])]
Words = Annotated[
    list[Word],
    Meta(max_length=50, description="Compared with the whole message, without case and punctuation."),
]
Reply = Annotated[str, Meta(min_length=1, max_length=1000)]
AutomaticMarketing = Annotated[Literal["subscribed", "not_refused"], EnumName("AutomaticMarketing")]


class ConsentSettings(Struct, frozen=True, rename="camel"):
    """How consent works for the company."""

    stop_words: Annotated[
        list[str],
        Meta(
            examples=[["JANGAN KIRIM"]],
            description="More messages that unsubscribe, besides STOP, UNSUBSCRIBE, BERHENTI, STOP PROMO and BATAL "
            "LANGGANAN.",
        ),
    ]
    start_words: Annotated[
        list[str], Meta(examples=[["MULAI"]], description="More messages that subscribe again, besides START.")
    ]
    stop_reply: Annotated[
        str | None,
        Meta(examples=[None], description="Confirms a stop by word; null for a text in the company's language."),
    ]
    start_reply: Annotated[str | None, Meta(examples=[None], description="Confirms that somebody subscribed again.")]
    automatic_marketing: Annotated[
        AutomaticMarketing,
        Meta(
            examples=["subscribed"],
            description="Who gets marketing templates that nobody sends by hand, such as tracking messages: only "
            "people who subscribed, or everybody who did not refuse.",
        ),
    ]


class ConsentSettingsPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to the settings: a field that you leave out keeps its value."""

    stop_words: Words | UnsetType = UNSET
    start_words: Words | UnsetType = UNSET
    stop_reply: Reply | None | UnsetType = UNSET
    start_reply: Reply | None | UnsetType = UNSET
    automatic_marketing: AutomaticMarketing | UnsetType = UNSET


DEFAULT_SETTINGS = ConsentSettings([], [], None, None, "subscribed")


class UnsubscribeLink(Struct, frozen=True):
    """Whom a link in a mail unsubscribes."""

    kind: str
    identity: str
    source: str


class ConsentMissing(Conflict):
    """The recipient unsubscribed from marketing messages. Send a template of another category, or none."""

    code = "CONSENT_MISSING"
    fix = "Do not send marketing to this person. Templates of the categories UTILITY and AUTHENTICATION still arrive."


class UnsubscribedByPerson(Conflict):
    """The customer unsubscribed in person. They can subscribe again with START or the link of a mail, or a user of the
    console records the proof that they want to."""

    code = "UNSUBSCRIBED_BY_PERSON"
    fix = "The person subscribes again with START or the link of a mail. With proof of it, record that in the console."


def merge_patch(stored: ConsentSettings, patch: ConsentSettingsPatch) -> ConsentSettings:
    """The settings with the patch applied."""
    fields: Sequence[str] = patch.__struct_fields__
    return ConsentSettings(
        *(getattr(stored, name) if (value := getattr(patch, name)) is UNSET else value for name in fields)
    )
