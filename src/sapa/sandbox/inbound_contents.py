"""The contents of simulated messages besides text, buttons and files."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from sapa.values.enum_names import EnumName

Word = Annotated[str, Meta(min_length=1, max_length=256)]
Url = Annotated[str, Meta(min_length=1, max_length=2048, examples=["https://example.com/p/1"])]
OriginalId = Annotated[
    str,
    Meta(min_length=1, max_length=500, examples=["wamid.HBgNNjI4MTIz"], description="The messageId of the message."),
]


class SimulatedItem(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An item of a cart."""

    product_id: Annotated[Word, Meta(examples=["KOPI-250"])]
    quantity: Annotated[int, Meta(ge=1, le=1_000_000, examples=[2])] = 1
    price: Annotated[Decimal, Meta(examples=[75000])]
    currency: Annotated[str, Meta(pattern="^[A-Z]{3}$", examples=["IDR"])] = "IDR"


class SimulatedCart(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A cart of the customer."""

    items: Annotated[list[SimulatedItem], Meta(max_length=500)]
    catalog_id: Annotated[Word, Meta(examples=["194836987003835"])] = "194836987003835"
    text: Annotated[str, Meta(max_length=1024)] | None = None


class SimulatedAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer of a flow, or of an address form."""

    data: Annotated[dict[str, Any], Meta(examples=[{"city": "Bandung"}])]
    name: Annotated[Literal["flow", "address_message"], EnumName("SimulatedAnswerName"), Meta(examples=["flow"])] = (
        "flow"
    )
    token: Annotated[Word, Meta(examples=["order-1042"])] | None = None


class SimulatedLocation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place on the map."""

    latitude: Annotated[float, Meta(ge=-90, le=90, examples=[-6.2])]
    longitude: Annotated[float, Meta(ge=-180, le=180, examples=[106.8])]
    name: Word | None = None
    address: Word | None = None


class SimulatedCard(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A contact from the customer's address book."""

    name: Annotated[Word, Meta(examples=["Ayu Lestari"])]
    phone: Annotated[Word, Meta(examples=["+62 811 234"])] | None = None
    email: Annotated[Word, Meta(examples=["ayu@example.com"])] | None = None


class SimulatedShare(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the customer shares."""

    type: Annotated[
        Literal["post", "reel", "story_mention", "link"], EnumName("SimulatedShareType"), Meta(examples=["reel"])
    ] = "post"
    url: Url
    id: Word | None = None
    title: Word | None = None


class SimulatedStory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A story of yours that the customer replies to."""

    id: Annotated[Word, Meta(examples=["17990000000000000"])]
    url: Url


class SimulatedReferral(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The ad that the customer came by."""

    source_id: Annotated[Word, Meta(examples=["120210000000000000"], description="The ad.")]
    headline: Word | None = None
    source_url: Url | None = None
    image_url: Url | None = None
    ctwa_clid: Annotated[Word, Meta(examples=["ARAkLkA8rmlFeiCktEJQ"])] | None = None
    ref: Word | None = None


class SimulatedProduct(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The product that the customer asks about."""

    product_id: Annotated[Word, Meta(examples=["KOPI-250"])]
    catalog_id: Annotated[Word, Meta(examples=["194836987003835"])] = "194836987003835"


class SimulatedEdit(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The customer edits a message."""

    message_id: OriginalId
    text: Annotated[str, Meta(min_length=1, max_length=4096, examples=["Dua kopi"])]


class SimulatedRevocation(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The customer deletes a message."""

    message_id: OriginalId


class SimulatedReaction(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The customer reacts to a message; without an emoji the reaction is removed."""

    message_id: OriginalId
    emoji: Annotated[str, Meta(min_length=1, max_length=20, examples=["👍"])] | None = None


class SimulatedError(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An error of the account, without a message."""

    code: Annotated[int, Meta(ge=1, le=10_000_000, examples=[131000])]
    message: Annotated[Word, Meta(examples=["Something went wrong"])]


class SimulatedKind(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message of a kind that nobody knows yet."""

    type: Annotated[str, Meta(pattern="^[a-z_]{1,40}$", examples=["hologram"])]
    content: Annotated[dict[str, Any], Meta(examples=[{"depth": 3}])] = {}


NOT_SHOWN = Meta(examples=[None])
"""The example of a message is a text."""


class SimulatedContents(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """At most one of them, except that a text may have a referral, a product or a story, and be forwarded."""

    order: Annotated[SimulatedCart | None, NOT_SHOWN] = None
    flow: Annotated[SimulatedAnswer | None, NOT_SHOWN] = None
    location: Annotated[SimulatedLocation | None, NOT_SHOWN] = None
    contact_cards: Annotated[
        Annotated[list[SimulatedCard], Meta(min_length=1, max_length=20)] | None,
        NOT_SHOWN,
    ] = None
    share: Annotated[SimulatedShare | None, NOT_SHOWN] = None
    edit: Annotated[SimulatedEdit | None, NOT_SHOWN] = None
    revocation: Annotated[SimulatedRevocation | None, NOT_SHOWN] = None
    reaction: Annotated[SimulatedReaction | None, NOT_SHOWN] = None
    preference: Annotated[
        Annotated[Literal["stop", "resume", "signup"], EnumName("MarketingChoice")] | None,
        Meta(examples=[None], description="The customer's choice about marketing messages."),
    ] = None
    error: Annotated[SimulatedError | None, NOT_SHOWN] = None
    unknown: Annotated[SimulatedKind | None, NOT_SHOWN] = None
    referral: Annotated[
        SimulatedReferral | None,
        Meta(examples=[None], description="Beside a message; on Messenger also alone, on TikTok only alone."),
    ] = None
    product: Annotated[SimulatedProduct | None, NOT_SHOWN] = None
    story: Annotated[SimulatedStory | None, NOT_SHOWN] = None
    forwarded: bool = False


ALONE = (
    "order", "flow", "location", "contact_cards", "share", "edit", "revocation", "reaction", "preference", "error",
    "unknown",
)  # fmt: skip
"""Contents that are a message of their own."""
BESIDE = ("referral", "product", "story", "forwarded")
NO_CONTENTS = SimulatedContents()
