"""Templates: types and errors."""

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.http.errors import Conflict
from sapa.http.query_string import PageQuery, SearchText
from sapa.http.responses import StoredJson, Timestamp
from sapa.messaging.channels.template_content import (
    Authentication,
    Category,
    Header,
    LimitedTimeOffer,
    ParameterFormat,
    TemplateButton,
    TemplateCard,
    TemplateExamples,
)
from sapa.messaging.files.types import FileId
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind

TEMPLATE_ID = IdKind("tpl_")
TemplateId = Annotated[str, TEMPLATE_ID]

TemplateSource = Annotated[Literal["CRM", "AUTH"], EnumName("TemplateSource")]
Approval = Annotated[Literal["PENDING", "APPROVED", "REJECTED", "PAUSED", "DISABLED"], EnumName("TemplateStatus")]
Quality = Annotated[Literal["GREEN", "YELLOW", "RED"], EnumName("TemplateQuality")]

_BODY = "Halo {{1}}, pesanan {{2}} sudah dikirim."

TemplateName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=512,
        pattern="^[a-z0-9_]+$",
        examples=["order_update"],
        description="Lower-case letters, digits and underscores.",
    ),
]
Language = Annotated[
    str,
    Meta(
        min_length=2,
        max_length=15,
        pattern="^[a-z]{2,3}(_[A-Za-z]{2,4})?$",
        examples=["id"],
        description="id, en_US …",
    ),
]
Body = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=1024,
        examples=[_BODY],
        description=(
            "Its parameters are {{1}}, {{2}} and so on, or names such as {{order_number}}. They cannot be its first or "
            "last words. Absent for authentication templates, whose text the channel writes."
        ),
    ),
]
Footer = Annotated[str, Meta(min_length=1, max_length=60, examples=["Toko Kopi"])]
HeaderText = Annotated[str, Meta(min_length=1, max_length=60, examples=["Pesanan Anda"])]
TtlSeconds = Annotated[
    int,
    Meta(
        examples=[43_200],
        description=(
            "How long the channel tries to deliver. AUTHENTICATION 30 to 900, UTILITY 30 to 43,200, MARKETING 43,200 "
            "to 2,592,000; -1 is 30 days."
        ),
    ),
]

_BUTTONS = [{"type": "url", "text": "Lihat pesanan", "url": "https://shop.example/orders"}]
Buttons = Annotated[list[TemplateButton], Meta(max_length=10, examples=[_BUTTONS])]
Cards = Annotated[
    list[TemplateCard],
    Meta(max_length=10, examples=[[]], description="A carousel: 2 to 10 cards with the same parts each."),
]

_SENDABLE = "False for a template with parts that Sapa cannot send yet. It is listed, and refused by its name."


_EXAMPLES = {"body": ["Ayu", "INV-1042"]}
AnyCategory = Annotated[Category, Meta(examples=["UTILITY"])]
AnyFormat = Annotated[ParameterFormat, Meta(examples=["POSITIONAL"])]
AnySource = Annotated[TemplateSource, Meta(examples=["CRM"])]
AnyOffer = Annotated[LimitedTimeOffer | None, Meta(examples=[None])]
AnyAuthentication = Annotated[Authentication | None, Meta(examples=[None])]
AnyExamples = Annotated[TemplateExamples | None, Meta(examples=[_EXAMPLES])]


class Template(Struct, frozen=True, rename="camel"):
    """A reusable text with parameters."""

    id: TemplateId
    name: Annotated[str, Meta(examples=["order_update"])]
    language: Annotated[str, Meta(examples=["id"])]
    source: AnySource
    category: AnyCategory
    parameter_format: AnyFormat
    header: Annotated[Raw | None, StoredJson(Header | None), Meta(examples=[{"type": "text", "text": "Pesanan Anda"}])]
    body: Annotated[str, Meta(examples=[_BODY])]
    footer: Annotated[str | None, Meta(examples=["Toko Kopi"])]
    buttons: Annotated[Raw, StoredJson(list[TemplateButton]), Meta(examples=[[{**_BUTTONS[0], "phoneNumber": None}]])]
    cards: Annotated[Raw, StoredJson(list[TemplateCard]), Meta(examples=[[]])]
    limited_time_offer: Annotated[Raw | None, StoredJson(LimitedTimeOffer | None), Meta(examples=[None])]
    ttl_seconds: Annotated[int | None, Meta(examples=[None])]
    authentication: Annotated[Raw | None, StoredJson(Authentication | None), Meta(examples=[None])]
    examples: Annotated[
        Raw | None,
        StoredJson(TemplateExamples | None),
        Meta(examples=[{"header": None, **_EXAMPLES, "cards": None}]),
    ]
    status: Approval
    reason: Annotated[str | None, Meta(examples=[None], description="Why the channel did not approve it.")]
    quality: Annotated[Quality | None, Meta(examples=["GREEN"], description="The channel's rating; null without one.")]
    sendable: Annotated[bool, Meta(examples=[True], description=_SENDABLE)]
    not_sendable_reason: Annotated[str | None, Meta(examples=[None])]
    synced_at: Annotated[Timestamp | None, Meta(description="When it was last synchronised with the channel.")]
    created_at: Timestamp
    updated_at: Timestamp


class TemplateIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new template. A text header can be a plain string."""

    name: TemplateName
    language: Language
    category: AnyCategory
    body: Body | None = None
    source: AnySource | None = None
    parameter_format: ParameterFormat = "POSITIONAL"
    header: HeaderText | Header | None = None
    footer: Footer | None = None
    buttons: Buttons = []
    cards: Cards = []
    limited_time_offer: AnyOffer = None
    ttl_seconds: TtlSeconds | None = None
    authentication: AnyAuthentication = None
    examples: AnyExamples = None


class TemplatePatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to a template: absent fields keep their values, null clears a field."""

    category: AnyCategory | UnsetType = UNSET
    parameter_format: AnyFormat | UnsetType = UNSET
    body: Body | UnsetType = UNSET
    header: HeaderText | Header | None | UnsetType = UNSET
    footer: Footer | None | UnsetType = UNSET
    buttons: Buttons | UnsetType = UNSET
    cards: Cards | UnsetType = UNSET
    limited_time_offer: AnyOffer | UnsetType = UNSET
    ttl_seconds: TtlSeconds | None | UnsetType = UNSET
    authentication: AnyAuthentication | UnsetType = UNSET
    examples: AnyExamples | UnsetType = UNSET


ParamText = Annotated[str, Meta(max_length=4096)]
Params = Annotated[
    list[ParamText],
    Meta(
        max_length=100,
        examples=[["Ayu", "INV-1042"]],
        description="The parameters of the body, then of the header, then of the buttons in their order.",
    ),
]
MediaUrl = Annotated[str, Meta(max_length=2048)]
CatalogProductId = Annotated[str, Meta(min_length=1, max_length=100, examples=["KOPI-250"])]


class LocationIn(Struct, frozen=True, forbid_unknown_fields=True):
    """A place on the map."""

    latitude: Annotated[float, Meta(ge=-90, le=90, examples=[-6.2])]
    longitude: Annotated[float, Meta(ge=-180, le=180, examples=[106.8])]
    name: Annotated[str, Meta(max_length=1000, examples=["Toko Kopi"])] | None = None
    address: Annotated[str, Meta(max_length=1000)] | None = None


class CatalogProductIn(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A product of your catalogue at the channel."""

    product_id: CatalogProductId
    catalog_id: Annotated[str, Meta(min_length=1, max_length=100)] | None = None


class ProductSectionIn(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Products under a title."""

    title: Annotated[str, Meta(min_length=1, max_length=24, examples=["Kopi"])]
    product_ids: Annotated[list[CatalogProductId], Meta(min_length=1, max_length=30)]


class HeaderValue(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The value of a header: one of text, mediaUrl, attachmentId, location and product."""

    text: ParamText | None = None
    media_url: MediaUrl | None = None
    attachment_id: Annotated[FileId | None, Meta(description="The id of an uploaded file, instead of mediaUrl.")] = None
    filename: Annotated[str, Meta(min_length=1, max_length=255, description="Of a document.")] | None = None
    location: LocationIn | None = None
    product: CatalogProductIn | None = None


class ButtonValue(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The value of a button; which field it has depends on the button's type."""

    index: Annotated[int, Meta(ge=0, le=9, description="The button's place among all buttons, from 0.")]
    payload: (
        Annotated[str, Meta(min_length=1, max_length=256, description="Of quick_reply: comes back when it is pressed.")]
        | None
    ) = None
    suffix: Annotated[str, Meta(min_length=1, max_length=2000, description="Of url: the end of the URL.")] | None = None
    code: Annotated[str, Meta(min_length=1, max_length=15, description="Of copy_code.")] | None = None
    flow_token: Annotated[str, Meta(min_length=1, max_length=200, description="Of flow.")] | None = None
    flow_data: Annotated[dict[str, Any], Meta(description="Of flow: the data of its first screen.")] | None = None
    product_id: (
        Annotated[CatalogProductId, Meta(description="Of catalog and mpm: the product of the thumbnail.")] | None
    ) = None
    sections: (
        Annotated[
            list[ProductSectionIn],
            Meta(min_length=1, max_length=10, description="Of mpm: at most 30 products in total."),
        ]
        | None
    ) = None


class CardValue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values of a carousel's card."""

    header: HeaderValue | None = None
    body: list[ParamText] | dict[str, ParamText] | None = None
    buttons: list[ButtonValue] = []


class OfferValue(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """When an offer ends."""

    expires_at: Annotated[datetime, Meta(tz=True, examples=["2026-12-31T16:59:59Z"])]


class TemplateValues(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A template's values by their places. `params` fill the places that are absent here."""

    header: HeaderValue | None = None
    body: (
        Annotated[
            list[ParamText] | dict[str, ParamText],
            Meta(examples=[["Ayu", "INV-1042"]], description="A list, or an object by the parameters' names."),
        ]
        | None
    ) = None
    buttons: Annotated[list[ButtonValue], Meta(max_length=10, examples=[[{"index": 0, "suffix": "1042"}]])] = []
    cards: Annotated[list[CardValue], Meta(max_length=10, examples=[[]])] = []
    limited_time_offer: OfferValue | None = None


class PreviewIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The values of a preview, as send-template takes them."""

    params: Params = []
    media_url: MediaUrl | None = None
    components: Annotated[TemplateValues | None, Meta(examples=[None])] = None


class Preview(Struct, frozen=True, rename="camel"):
    """A template with its parameters filled in."""

    header: Annotated[str | None, Meta(examples=["Pesanan Anda"])]
    body: Annotated[str, Meta(examples=["Halo Ayu, pesanan INV-1042 sudah dikirim."])]
    footer: Annotated[str | None, Meta(examples=["Toko Kopi"])]
    buttons: Annotated[list[str], Meta(examples=[["Lihat pesanan"]])]
    text: Annotated[
        str, Meta(examples=["Halo Ayu!"], description="The whole text, as channels without templates send it.")
    ]


class SyncResult(Struct, frozen=True):
    """The result of a synchronisation."""

    found: Annotated[int, Meta(examples=[12], description="The number of templates at the channel.")]


class TemplatesQuery(PageQuery, frozen=True, kw_only=True, rename="camel"):
    search: Annotated[SearchText, Meta(description="Part of the name.")] | None = None
    language: Annotated[str, Meta(max_length=15, description="Only templates in this language.")] | None = None
    source: Annotated[TemplateSource, Meta(description="Only templates of this source.")] | None = None
    status: Annotated[Approval, Meta(description="Only templates with this status.")] | None = None


class TemplateExists(Conflict):
    """A template with this name and language already exists."""

    code = "TEMPLATE_EXISTS"
    constraint = "message_templates_name_key"
    fix = "Change the template that has this name and language, or choose another name."


class TemplateOnChannel(Conflict):
    """The channel is reviewing this template, so it cannot be changed now. Wait for its decision."""

    code = "TEMPLATE_ON_CHANNEL"
    fix = "Create a template with another name."


class TemplateNotChanged(Conflict):
    """The channel did not take the change. The template stays as it was."""

    code = "TEMPLATE_NOT_CHANGED"
    fix = "The message has the channel's reason. Change what it names, and send the change again."


class TemplatesNotRead(Conflict):
    """The channel did not list its templates. Try again."""

    code = "TEMPLATES_NOT_READ"
    fix = "Send the request again. If it goes on failing, test the connection with the channel."


class TemplateNotDeleted(Conflict):
    """The channel did not delete the template. Try again."""

    code = "TEMPLATE_NOT_DELETED"
    fix = "Try again. If it stays, delete the template with the channel."


class TemplateNotFound(Conflict):
    """There is no template with this name. GET /templates lists them."""

    code = "TEMPLATE_NOT_FOUND"
    fix = "Use a name from the list of templates, in a language that the template has."


class TemplateNotApproved(Conflict):
    """The channel has not approved this template. Wait for its approval, or send another template."""

    code = "TEMPLATE_NOT_APPROVED"
    fix = "Get the template to see its status and why it was refused."


class TemplateNotSendable(Conflict):
    """The template has parts that cannot be sent yet. Send another template."""

    code = "TEMPLATE_NOT_SENDABLE"
    fix = "Send another template; the list of templates says which can be sent."


class TemplateParamsMismatch(Conflict):
    """The parameters do not match the template."""

    code = "TEMPLATE_PARAMS_MISMATCH"
    fix = "Send exactly the parameters that the template's body, header and buttons have."
