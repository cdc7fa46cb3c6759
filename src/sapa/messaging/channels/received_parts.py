"""What a received message has besides its text, as the API shows it."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from sapa.messaging.channels.native_contents import format_degrees
from sapa.values.json import encode_document

MAX_RAW_BYTES = 65_536
MAX_RAW_DEPTH = 50
"""A larger or deeper document is not stored with the message; its callback is kept for some time."""


class ReferredProduct(Struct, frozen=True, rename="camel"):
    """The product that a customer asks about."""

    catalog_id: Annotated[str | None, Meta(examples=["194836987003835"])]
    product_id: Annotated[str, Meta(examples=["KOPI-250"])]


class Story(Struct, frozen=True):
    """A story of yours that a customer replies to."""

    id: Annotated[str | None, Meta(examples=["17990000000000000"])]
    url: Annotated[
        str | None, Meta(examples=["https://example.com/story"], description="It works while the story does.")
    ]


class MessageContext(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a message refers to, and whether it was forwarded."""

    message_id: Annotated[
        str | None, Meta(examples=["wamid.HBgNNjI4MTIz"], description="The quoted message: the channel's own id.")
    ] = None
    message_id2: Annotated[
        str | None,
        Meta(
            examples=["0199a1f0-7c3e-7d52-9b1a-4e6f2c8d0a35"],
            description="The quoted message: our id. Null if it was not stored when this one arrived.",
        ),
    ] = None
    is_forwarded: bool = False
    is_frequently_forwarded: bool = False
    product: ReferredProduct | None = None
    story: Story | None = None


class Referral(Struct, frozen=True, kw_only=True, rename="camel"):
    """The ad, post or link that brought the customer to the conversation."""

    source_type: Annotated[str | None, Meta(examples=["ad"], description="ad, post, link or another word.")] = None
    source_id: Annotated[str | None, Meta(examples=["120210000000000000"], description="The ad or post.")] = None
    source_url: Annotated[str | None, Meta(examples=["https://fb.me/2abc"])] = None
    headline: Annotated[str | None, Meta(examples=["Kopi baru"])] = None
    body: Annotated[str | None, Meta(examples=["Chat untuk memesan"])] = None
    media_type: Annotated[str | None, Meta(examples=["image"])] = None
    image_url: Annotated[str | None, Meta(examples=["https://example.com/ad.jpg"])] = None
    video_url: Annotated[str | None, Meta(examples=[None])] = None
    thumbnail_url: Annotated[str | None, Meta(examples=[None])] = None
    ctwa_clid: Annotated[
        str | None, Meta(examples=["ARAkLkA8rmlFeiCktEJQ"], description="The click's id, for reporting conversions.")
    ] = None
    ref: Annotated[str | None, Meta(examples=[None], description="Your own text in the link or ad.")] = None
    post_id: Annotated[str | None, Meta(examples=[None])] = None
    product_id: Annotated[str | None, Meta(examples=[None])] = None
    welcome_text: Annotated[str | None, Meta(examples=[None])] = None


class CartItem(Struct, frozen=True, rename="camel"):
    """A line of a cart. Price and currency are those of the catalogue when the customer sent it."""

    product_id: Annotated[str, Meta(examples=["KOPI-250"], description="The product in your catalogue at the channel.")]
    quantity: Annotated[int | None, Meta(examples=[2])]
    price: Annotated[Decimal | None, Meta(examples=[75000], description="Of one unit, in major units.")]
    currency: Annotated[str | None, Meta(examples=["IDR"])]


class CartError(Struct, frozen=True):
    """Why a cart did not become an order."""

    code: Annotated[str, Meta(examples=["INSUFFICIENT_STOCK"])]
    message: str


class Cart(Struct, frozen=True, kw_only=True, rename="camel"):
    """A cart that the customer sent."""

    catalog_id: Annotated[str | None, Meta(examples=["194836987003835"])] = None
    text: Annotated[str | None, Meta(examples=[None])] = None
    items: Sequence[CartItem] = ()
    order_id: Annotated[
        str | None,
        Meta(examples=[None], description="The order that it became, if the company's `cartOrders` is on."),
    ] = None
    error: CartError | None = None


class FlowAnswer(Struct, frozen=True, kw_only=True):
    """What the customer filled in: a flow, or a form of the channel such as an address."""

    name: Annotated[str | None, Meta(examples=["flow"], description="flow, address_message or another form.")] = None
    token: Annotated[str | None, Meta(examples=["order-1042"], description="The flowToken of your message.")] = None
    data: Annotated[
        dict[str, Any] | None, Meta(examples=[{"flow_token": "order-1042", "city": "Bandung"}], description="As sent.")
    ] = None
    text: Annotated[str | None, Meta(examples=[None], description="As sent, if it is not a JSON object.")] = None


class ReceivedLocation(Struct, frozen=True, kw_only=True):
    """A place on the map."""

    latitude: Annotated[float, Meta(examples=[-6.2])]
    longitude: Annotated[float, Meta(examples=[106.8])]
    name: Annotated[str | None, Meta(examples=["Monas"])] = None
    address: Annotated[str | None, Meta(examples=["Jl. Medan Merdeka"])] = None
    url: Annotated[str | None, Meta(examples=[None])] = None


class CardPhone(Struct, frozen=True, kw_only=True, rename="camel"):
    phone: Annotated[str | None, Meta(examples=["+62 811 234"])] = None
    type: Annotated[str | None, Meta(examples=["CELL"])] = None
    wa_id: Annotated[str | None, Meta(examples=["62811234"], description="The number on WhatsApp, if it is there.")] = (
        None
    )


class CardEmail(Struct, frozen=True, kw_only=True):
    email: Annotated[str | None, Meta(examples=["ayu@example.com"])] = None
    type: Annotated[str | None, Meta(examples=["WORK"])] = None


class CardUrl(Struct, frozen=True, kw_only=True):
    url: Annotated[str | None, Meta(examples=["https://example.com"])] = None
    type: Annotated[str | None, Meta(examples=["WORK"])] = None


class CardAddress(Struct, frozen=True, kw_only=True, rename="camel"):
    street: Annotated[str | None, Meta(examples=["Jl. Merdeka 17"])] = None
    city: Annotated[str | None, Meta(examples=["Bandung"])] = None
    state: Annotated[str | None, Meta(examples=["Jawa Barat"])] = None
    zip: Annotated[str | None, Meta(examples=["40111"])] = None
    country: Annotated[str | None, Meta(examples=["Indonesia"])] = None
    country_code: Annotated[str | None, Meta(examples=["ID"])] = None
    type: Annotated[str | None, Meta(examples=["HOME"])] = None


class ContactCard(Struct, frozen=True, kw_only=True):
    """A contact from the customer's address book."""

    name: Annotated[str | None, Meta(examples=["Ayu Lestari"])] = None
    phones: Sequence[CardPhone] = ()
    emails: Sequence[CardEmail] = ()
    addresses: Sequence[CardAddress] = ()
    urls: Sequence[CardUrl] = ()
    organization: Annotated[str | None, Meta(examples=["Toko Kopi, Sales"])] = None
    birthday: Annotated[str | None, Meta(examples=["2000-01-31"])] = None


class SharedContent(Struct, frozen=True, kw_only=True):
    """A post, reel, story, product or link that the customer shared."""

    type: Annotated[
        str,
        Meta(
            examples=["reel"], description="post, reel, story, story_mention, product, sticker, link or another word."
        ),
    ]
    id: Annotated[str | None, Meta(examples=["18139494541428835"])] = None
    url: Annotated[
        str | None,
        Meta(examples=["https://www.instagram.com/reel/abc"], description="Addresses of a channel's files expire."),
    ] = None
    title: Annotated[str | None, Meta(examples=["Kopi Gayo"])] = None


class ContentError(Struct, frozen=True):
    """What the channel says about a message that it cannot pass on."""

    code: Annotated[str | None, Meta(examples=["131051"])]
    message: Annotated[str | None, Meta(examples=["Message type is currently not supported."])]


class UnsupportedContent(Struct, frozen=True, kw_only=True):
    """A message of a kind that is not known yet, or that the channel itself cannot pass on."""

    type: Annotated[str | None, Meta(examples=["poll"], description="The channel's word for its kind.")] = None
    errors: Sequence[ContentError] = ()
    raw: Annotated[
        Any, Meta(description=f"The message as the channel sent it; null above {MAX_RAW_BYTES // 1024} KiB.")
    ] = None


class MessageParts(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    context: MessageContext | None = None
    referral: Referral | None = None
    order: Cart | None = None
    flow: FlowAnswer | None = None
    location: ReceivedLocation | None = None
    contact_cards: Sequence[ContactCard] | None = None
    shares: Sequence[SharedContent] | None = None
    unsupported: UnsupportedContent | None = None


NO_PARTS = MessageParts()


def build_location(
    latitude: Decimal | None,
    longitude: Decimal | None,
    *,
    name: str | None = None,
    address: str | None = None,
    url: str | None = None,
) -> ReceivedLocation | None:
    """None for a place that is not on the map."""
    if latitude is None or longitude is None or not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        return None
    return ReceivedLocation(latitude=float(latitude), longitude=float(longitude), name=name, address=address, url=url)


def describe_location(location: ReceivedLocation) -> str:
    degrees = (format_degrees(location.latitude), format_degrees(location.longitude))
    words = [location.name, location.address, ",".join(degrees)]
    return "\n".join(word for word in words if word)


parse_parts = msgspec.json.Decoder(MessageParts).decode


def encode_parts(parts: MessageParts) -> bytes | None:
    """None if there are none. Numbers are written as receivers of webhooks write them again."""
    return None if parts == NO_PARTS else encode_document(msgspec.to_builtins(parts, builtin_types=(Decimal,)))


def keep_raw(value: Any) -> Any:
    """What can be stored of a document; None if it is too large or too deep."""
    is_small = not _is_deeper(value, MAX_RAW_DEPTH) and len(encode_document(value)) <= MAX_RAW_BYTES
    return value if is_small else None


def _is_deeper(value: Any, depth: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth == 0 or any(_is_deeper(each, depth - 1) for each in inner)
