"""GoSend's JSON, as far as it is read."""

from decimal import Decimal

from msgspec import Struct

from sapa.shipping.carriers.reading import Number, Word

PRODUCTION = "https://kilat-api.gojekapi.com"

PRICE = "/gokilat/v10/calculate/price"
BOOK = "/gokilat/v10/booking"
BY_ORDER_NO = "/gokilat/v10/booking/orderno/"
BY_REFERENCE = "/gokilat/v10/booking/storeOrderId/"
CANCEL = "/gokilat/v10/booking/cancel"

PAYMENT_TYPE = 3
METHODS = {"INSTANT": "Instant", "SAME_DAY": "SameDay"}
"""Our service types in its words."""

HEAVIEST_KG = Decimal(20)
VEHICLE = "TWO_WHEEL"


class Total(Struct, frozen=True):
    total_price: Decimal


class Method(Struct, frozen=True):
    """One of its services in a price answer."""

    shipment_method: Word | None = None
    shipment_method_description: str | None = None
    serviceable: bool | None = True
    active: bool | None = True
    distance: Decimal | None = None
    price: Total | None = None


class NewOrder(Struct, frozen=True):
    """An accepted booking."""

    orderNo: Number  # noqa: N815 - its own spelling
    id: int | Word | None = None


class Status(Struct, frozen=True, rename="camel"):
    """The present state of a booking."""

    order_no: Number
    status: Word
    driver_name: str | None = None
    driver_phone: Word | None = None
    driver_photo: str | None = None
    vehicle_number: str | None = None
    receiver_name: str | None = None
    total_price: Decimal | None = None
    total_distance_in_kms: Decimal | None = None
    live_tracking_url: str | None = None
    cancel_description: str | None = None
    order_created_time: str | None = None
    order_dispatch_time: str | None = None
    order_arrival_time: str | None = None
    order_closed_time: str | None = None


class Callback(Struct, frozen=True):
    booking_id: Word
    status: Word
    event_id: Word | None = None
    event_date: int | None = None
    store_order_id: Word | None = None
    cancelled_by: str | None = None
    cancellation_reason: str | None = None
    driver_name: str | None = None
    driver_phone: str | None = None
    driver_photo_url: str | None = None
    receiver_name: str | None = None
    live_tracking_url: str | None = None
    liveTrackingUrl: str | None = None  # noqa: N815 - both spellings occur
    pop_url: str | None = None
    pod_url: str | None = None
