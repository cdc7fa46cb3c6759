"""Dash Electric's JSON, as far as it is read. Unverified paths and names are here only."""

from decimal import Decimal

from msgspec import Raw, Struct

from sapa.shipping.carriers.reading import Number, Word

PRODUCTION = "https://api.dashelectric.co"

TOKEN = "/v1/auth/providers/token"  # noqa: S105 - a path
QUOTES = "/v1/deliveries/quotes"
BOOK = "/express/v1/deliveries"
DELIVERIES = "/v1/deliveries"

TIME_ZONE = "Asia/Jakarta"
CATEGORY = "EXPRESS"
PAYMENT = "CASHLESS"
SERVICE_TYPES = ("INSTANT", "SAME_DAY")
TOKEN_SECONDS = 50 * 60
"""How long a token is used. Dash does not say how long it lasts; a refused one is replaced sooner."""

PICKUP_PROOF = "PICKUP_PROOF"

CITIES: dict[int, str] = {
    3171: "Kota Jakarta Pusat",
    3172: "Kota Jakarta Utara",
    3173: "Kota Jakarta Barat",
    3174: "Kota Jakarta Selatan",
    3175: "Kota Jakarta Timur",
    3273: "Kota Bandung",
    3275: "Kota Bekasi",
    3578: "Kota Surabaya",
    3671: "Kota Tangerang",
    3674: "Kota Tangerang Selatan",
    5171: "Kota Denpasar",
}
"""The cities in which it picks up, by the ministry's codes: Dash has no list to fetch."""


class TokenGrant(Struct, frozen=True):
    token: str


class Problem(Struct, frozen=True):
    """An error's body; either name occurs."""

    code: str | int | None = None
    message: str | None = None
    error: str | None = None


class QuoteRow(Struct, frozen=True, rename="camel"):
    service_type: Word
    amount: Decimal
    currency: Word = "IDR"
    distance: Decimal | None = None
    """Kilometres."""
    estimated_time: str | None = None


class Quotes(Struct, frozen=True):
    quotes: list[Raw]
    """Each is a QuoteRow."""


class Vehicle(Struct, frozen=True, rename="camel"):
    license_plate: str | None = None


class Courier(Struct, frozen=True, rename="camel"):
    name: str | None = None
    phone: str | None = None
    photo_url: str | None = None
    vehicle: Vehicle | None = None


class Medium(Struct, frozen=True):
    type: str
    url: str


class Recipient(Struct, frozen=True):
    actualRecipientName: str | None = None  # noqa: N815


class Fare(Struct, frozen=True):
    amount: Decimal | None = None


class Delivery(Struct, frozen=True):
    """A delivery: the response to a booking or a lookup, and the body of a callback."""

    deliveryID: Number  # noqa: N815 - its own spelling
    status: Word
    providerOrderID: Word | None = None  # noqa: N815
    trackingURL: str | None = None  # noqa: N815
    quote: Fare | None = None
    distance: Decimal | None = None
    courier: Courier | None = None
    recipient: Recipient | None = None
    media: list[Raw] | None = None
    """Each is a Medium."""
    updatedAt: Word | None = None  # noqa: N815
    pickupAt: Word | None = None  # noqa: N815
    failedReason: str | None = None  # noqa: N815
    cancelledReason: str | None = None  # noqa: N815
    cancelledBy: str | None = None  # noqa: N815
