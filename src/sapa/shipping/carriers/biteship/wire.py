"""Biteship's JSON, as far as it is read."""

from decimal import Decimal

from msgspec import Raw, Struct

from sapa.shipping.carriers.reading import Number, Word

PRODUCTION = "https://api.biteship.com"

COURIERS_PATH = "/v1/couriers"
AREAS = "/v1/maps/areas"
RATES = "/v1/rates/couriers"
ORDERS = "/v1/orders"

COURIERS = "jne,sicepat,jnt,anteraja,tiki,ninja,lion,pos,sap,idexpress"
"""The couriers to ask for prices."""

SERVICE_TYPES = {"instant": "INSTANT", "same_day": "SAME_DAY"}
"""Its service types in ours; all others are EXPRESS, the only one offered here."""

REASON_CODE = "others"
LONGEST_REASON = 200
LOCAL_CATEGORY = "others"

COD_TERM = "7_days"
"""How long after the delivery it remits cash: `3_days`, `5_days` or `7_days`, the cheapest."""

COD_LIMITS = {
    "jne": (25_000, 5_000_000),
    "sicepat": (1_000, 2_500_000),
    "anteraja": (5_000, 2_500_000),
    "sap": (1, 10_000_000),
}
"""What a courier collects on delivery at least and at most; the others' limits are not known."""


class Verdict(Struct, frozen=True):
    """Every response has these: a refusal may be an HTTP 200."""

    success: bool = True


class Problem(Struct, frozen=True):
    error: str | None = None
    message: str | None = None
    code: int | str | None = None
    details: "Twin | None" = None


class Twin(Struct, frozen=True):
    """The existing order with the same reference."""

    order_id: Word | None = None
    waybill_id: Word | None = None
    reference_id: Word | None = None


class Price(Struct, frozen=True):
    courier_code: Word
    courier_service_code: Word
    price: Decimal
    courier_name: Word | None = None
    courier_service_name: Word | None = None
    duration: Word | None = None
    service_type: Word | None = None
    insurance_fee: Decimal | None = None
    cash_on_delivery_fee: Decimal | None = None
    available_for_cash_on_delivery: bool | None = None
    currency: Word = "IDR"
    available_collection_method: list[str] | None = None

    def __post_init__(self) -> None:
        if self.shipping < 0:
            raise ValueError("the insurance and the fee for cash on delivery are parts of the price")

    @property
    def shipping(self) -> Decimal:
        """The price without its other parts."""
        return self.price - (self.insurance_fee or 0) - (self.cash_on_delivery_fee or 0)


class Rates(Struct, frozen=True):
    success: bool
    pricing: list[Raw] | None = None
    """Each is a Price."""


class HistoryEntry(Struct, frozen=True):
    status: Word
    updated_at: Word | None = None
    note: str | None = None


class Courier(Struct, frozen=True):
    tracking_id: Word | None = None
    waybill_id: Word | None = None
    link: str | None = None
    routing_code: Word | None = None
    driver_name: str | None = None
    driver_phone: str | None = None
    driver_photo_url: str | None = None
    driver_plate_number: str | None = None
    history: list[Raw] | None = None
    """Each is a HistoryEntry."""
    insurance: Raw = Raw(b"null")
    """An OrderInsurance."""


class OrderInsurance(Struct, frozen=True):
    fee: Decimal | None = None


class OrderCash(Struct, frozen=True):
    fee: Decimal | None = None


class OrderDestination(Struct, frozen=True):
    cash_on_delivery: Raw = Raw(b"null")
    """An OrderCash."""


class Delivery(Struct, frozen=True):
    distance: Decimal | None = None
    distance_unit: str | None = None


class Order(Struct, frozen=True):
    id: Number
    status: Word
    price: Decimal | None = None
    courier: Courier | None = None
    delivery: Delivery | None = None
    destination: Raw = Raw(b"null")
    """An OrderDestination."""
    reference_id: str | None = None


class Callback(Struct, frozen=True):
    event: Word
    order_id: Word
    status: Word | None = None
    order_price: Decimal | None = None
    courier_waybill_id: Word | None = None
    courier_driver_name: str | None = None
    courier_driver_phone: str | None = None
    courier_driver_photo_url: str | None = None
    courier_driver_plate_number: str | None = None
    courier_link: str | None = None
    updated_at: str | None = None


class Area(Struct, frozen=True):
    id: str
    name: str
    postal_code: int | str | None = None


class Areas(Struct, frozen=True):
    areas: list[Area] | None = None
