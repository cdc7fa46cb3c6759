"""Templates: types and errors."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.http.errors import Conflict
from sapa.http.query_string import PageQuery, SearchText
from sapa.http.responses import StoredJson, Timestamp
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind

TEMPLATE_ID = IdKind("tpl_")
TemplateId = Annotated[str, TEMPLATE_ID]

TemplateSource = Annotated[Literal["CRM", "AUTH"], EnumName("TemplateSource")]
Category = Annotated[Literal["UTILITY", "MARKETING", "AUTHENTICATION"], EnumName("TemplateCategory")]
Approval = Annotated[Literal["PENDING", "APPROVED", "REJECTED", "PAUSED", "DISABLED"], EnumName("TemplateStatus")]
HeaderType = Annotated[Literal["text", "image", "video", "document"], EnumName("TemplateHeaderType")]

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
    Meta(min_length=1, max_length=1024, examples=[_BODY], description="Its parameters are {{1}}, {{2}} and so on."),
]
Footer = Annotated[str, Meta(min_length=1, max_length=60, examples=["Toko Kopi"])]
HeaderText = Annotated[str, Meta(min_length=1, max_length=60, examples=["Pesanan Anda"])]


class Header(Struct, frozen=True, forbid_unknown_fields=True):
    """The header above the body: a line of text, or a file whose URL comes with each send."""

    type: HeaderType
    text: HeaderText | None = None


class TemplateButton(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A button: a quick reply, a URL to open or a number to call."""

    type: Annotated[Literal["quick_reply", "url", "phone_number"], EnumName("TemplateButtonType")]
    text: Annotated[str, Meta(min_length=1, max_length=25, examples=["Lihat pesanan"])]
    url: Annotated[str, Meta(max_length=2000)] | None = None
    phone_number: Annotated[str, Meta(max_length=20)] | None = None


_BUTTONS = [{"type": "url", "text": "Lihat pesanan", "url": "https://shop.example/orders"}]
Buttons = Annotated[list[TemplateButton], Meta(max_length=10, examples=[_BUTTONS])]


class Template(Struct, frozen=True, rename="camel"):
    """A reusable text with parameters."""

    id: TemplateId
    name: Annotated[str, Meta(examples=["order_update"])]
    language: Annotated[str, Meta(examples=["id"])]
    source: TemplateSource
    category: Category
    header: Annotated[Raw | None, StoredJson(Header | None)]
    body: Annotated[str, Meta(examples=[_BODY])]
    footer: Annotated[str | None, Meta(examples=["Toko Kopi"])]
    buttons: Annotated[Raw, StoredJson(list[TemplateButton]), Meta(examples=[[{**_BUTTONS[0], "phoneNumber": None}]])]
    status: Approval
    reason: Annotated[str | None, Meta(examples=[None], description="Why the channel did not approve it.")]
    synced_at: Annotated[Timestamp | None, Meta(description="When it was last synchronised with the channel.")]
    created_at: Timestamp
    updated_at: Timestamp


class TemplateIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new template. A text header can be a plain string."""

    name: TemplateName
    language: Language
    category: Category
    body: Body
    source: TemplateSource | None = None
    header: HeaderText | Header | None = None
    footer: Footer | None = None
    buttons: Buttons = []


class TemplatePatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to a template: absent fields keep their values, null clears a field."""

    category: Category | UnsetType = UNSET
    body: Body | UnsetType = UNSET
    header: HeaderText | Header | None | UnsetType = UNSET
    footer: Footer | None | UnsetType = UNSET
    buttons: Buttons | UnsetType = UNSET


class PreviewIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The parameters of a preview."""

    params: Annotated[list[Annotated[str, Meta(max_length=4096)]], Meta(max_length=100, examples=[["Ayu", "INV-1042"]])]


class Preview(Struct, frozen=True, rename="camel"):
    """A template with its parameters filled in."""

    header: Annotated[str | None, Meta(examples=["Pesanan Anda"])]
    body: Annotated[str, Meta(examples=["Halo Ayu, pesanan INV-1042 sudah dikirim."])]
    footer: Annotated[str | None, Meta(examples=["Toko Kopi"])]
    buttons: Annotated[list[str], Meta(examples=[["Lihat pesanan"]])]
    text: Annotated[
        str, Meta(examples=["Halo Ayu!"], description="The whole text, as channels without templates send it.")
    ]


class TemplatesQuery(PageQuery, frozen=True, kw_only=True, rename="camel"):
    search: Annotated[SearchText, Meta(description="Part of the name.")] | None = None
    language: Annotated[str, Meta(max_length=15, description="Only templates in this language.")] | None = None
    source: Annotated[TemplateSource, Meta(description="Only templates of this source.")] | None = None
    status: Annotated[Approval, Meta(description="Only templates with this status.")] | None = None


class TemplateExists(Conflict):
    """A template with this name and language already exists."""

    code = "TEMPLATE_EXISTS"
    constraint = "message_templates_name_key"


class TemplateOnChannel(Conflict):
    """This template was submitted to the channel and cannot be changed. Create one with another name."""

    code = "TEMPLATE_ON_CHANNEL"


class TemplateNotDeleted(Conflict):
    """The channel did not delete the template. Try again."""

    code = "TEMPLATE_NOT_DELETED"


class TemplateNotFound(Conflict):
    """There is no template with this name. GET /templates lists them."""

    code = "TEMPLATE_NOT_FOUND"


class TemplateNotApproved(Conflict):
    """The channel has not approved this template. Wait for its approval, or send another template."""

    code = "TEMPLATE_NOT_APPROVED"


class TemplateParamsMismatch(Conflict):
    """The parameters do not match the template."""

    code = "TEMPLATE_PARAMS_MISMATCH"
