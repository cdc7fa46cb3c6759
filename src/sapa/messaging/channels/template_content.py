"""The parts of a template, for the API, the rooms of messaging and the channels.

They have no limits of length here: a template of a channel is shown as it is there.
`sapa.messaging.templates.validation` checks new ones.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from sapa.values.enum_names import EnumName

Category = Annotated[Literal["UTILITY", "MARKETING", "AUTHENTICATION"], EnumName("TemplateCategory")]
ParameterFormat = Annotated[Literal["POSITIONAL", "NAMED"], EnumName("TemplateParameterFormat")]
HeaderType = Annotated[
    Literal["text", "image", "video", "document", "location", "product", "unknown"], EnumName("TemplateHeaderType")
]
ButtonType = Annotated[
    Literal[
        "quick_reply",
        "url",
        "phone_number",
        "copy_code",
        "otp",
        "flow",
        "catalog",
        "mpm",
        "spm",
        "voice_call",
        "request_contact_info",
        "unknown",
    ],
    EnumName("TemplateButtonType"),
]

MEDIA_HEADERS = frozenset({"image", "video", "document"})

_TYPES = "unknown is a type that only the channel knows; such a template cannot be sent."


class Header(Struct, frozen=True, forbid_unknown_fields=True):
    """The header above the body: a line of text, or a file, a place or a product that comes with each send."""

    type: Annotated[HeaderType, Meta(description=_TYPES)]
    text: (
        Annotated[str, Meta(examples=["Pesanan Anda"], description="At most 60 characters and one parameter.")] | None
    ) = None


class SupportedApp(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """An Android app that may read a one-time code."""

    package_name: Annotated[str, Meta(examples=["com.tokokopi.app"])]
    signature_hash: Annotated[str, Meta(examples=["K8a/AINcGX7"], description="11 characters.")]


class TemplateButton(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A button. Which fields it has depends on its type."""

    type: Annotated[ButtonType, Meta(description=_TYPES)]
    text: (
        Annotated[
            str,
            Meta(
                examples=["Lihat pesanan"],
                description="At most 25 characters. Null where the channel writes it: copy_code, request_contact_info.",
            ),
        ]
        | None
    ) = None
    url: (
        Annotated[
            str,
            Meta(
                examples=["https://shop.example/orders"],
                description="Of url. It may end with {{1}}, which each send replaces.",
            ),
        ]
        | None
    ) = None
    phone_number: Annotated[str, Meta(examples=["+622150001234"], description="Of phone_number.")] | None = None
    example: (
        Annotated[
            str,
            Meta(
                examples=["https://shop.example/orders/1042"],
                description="Of a url with {{1}}: the whole address with an example. Of copy_code: a code.",
            ),
        ]
        | UnsetType
    ) = UNSET
    otp_type: (
        Annotated[Literal["copy_code", "one_tap", "zero_tap"], EnumName("OneTimeCodeType"), Meta(description="Of otp.")]
        | UnsetType
    ) = UNSET
    autofill_text: Annotated[str, Meta(description="Of otp with one_tap or zero_tap.")] | UnsetType = UNSET
    supported_apps: list[SupportedApp] | UnsetType = UNSET
    zero_tap_terms_accepted: bool | UnsetType = UNSET
    flow_id: Annotated[str, Meta(description="Of flow: the flow by its id, its name or its JSON.")] | UnsetType = UNSET
    flow_name: str | UnsetType = UNSET
    flow_json: str | UnsetType = UNSET
    flow_action: Annotated[Literal["navigate", "data_exchange"], EnumName("FlowAction")] | UnsetType = UNSET
    navigate_screen: Annotated[str, Meta(description="The first screen of a flow with navigate.")] | UnsetType = UNSET


class TemplateCard(Struct, frozen=True, forbid_unknown_fields=True):
    """A card of a carousel."""

    header: Header
    body: Annotated[str, Meta(examples=["Kopi Gayo, {{1}}."])] | None = None
    buttons: list[TemplateButton] = []


class LimitedTimeOffer(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """An offer that ends. With hasExpiration each send says when, and the channel counts down."""

    text: Annotated[str, Meta(examples=["Segera berakhir"], description="At most 16 characters.")]
    has_expiration: bool = True


class Authentication(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What an authentication template says besides the code. The channel writes its text."""

    security_recommendation: Annotated[bool, Meta(description="Adds: do not share this code.")] = True
    code_expiration_minutes: (
        Annotated[int, Meta(examples=[5], description="1 to 90. Adds a footer with this time.")] | None
    ) = None


class CardExamples(Struct, frozen=True, forbid_unknown_fields=True):
    """Example values of a card."""

    header: Annotated[str, Meta(description="The public URL of a sample of the card's file.")] | None = None
    body: list[str] | dict[str, str] | None = None


class TemplateExamples(Struct, frozen=True, forbid_unknown_fields=True):
    """Example values, which the channel's reviewers see. Those of buttons are in the buttons."""

    header: (
        Annotated[
            str,
            Meta(
                examples=["https://shop.example/kopi.jpg"],
                description="Of the header's parameter; for a file, the public URL of a sample.",
            ),
        ]
        | None
    ) = None
    body: (
        Annotated[
            list[str] | dict[str, str],
            Meta(examples=[["Ayu", "INV-1042"]], description="A list, or an object by the parameters' names."),
        ]
        | None
    ) = None
    cards: list[CardExamples] | None = None


class TemplateContent(Struct, frozen=True, kw_only=True):
    """All parts of a template that a channel reviews."""

    category: Category
    parameter_format: ParameterFormat = "POSITIONAL"
    header: Header | None = None
    body: str = ""
    footer: str | None = None
    buttons: list[TemplateButton] = []
    cards: list[TemplateCard] = []
    limited_time_offer: LimitedTimeOffer | None = None
    ttl_seconds: int | None = None
    authentication: Authentication | None = None
    examples: TemplateExamples | None = None
