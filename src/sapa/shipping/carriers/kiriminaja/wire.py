"""KiriminAja's shapes, as far as they are read. Whatever it adds is left aside."""

from decimal import Decimal

from msgspec import Struct

PRODUCTION = "https://client.kiriminaja.com"

PRICE = "/api/mitra/v6.1/shipping_price"
BOOK = "/api/mitra/v6.1/request_pickup"
TRACK = "/api/mitra/tracking"
CANCEL = "/api/mitra/v3/cancel_shipment"
COURIERS_PATH = "/api/mitra/couriers"

AREAS = {
    "provinces": ("/api/mitra/province", None),
    "cities": ("/api/mitra/city", "provinsi_id"),
    "districts": ("/api/mitra/kecamatan", "kabupaten_id"),
    "sub-districts": ("/api/mitra/kelurahan", "kecamatan_id"),
}
"""Where each level is asked for, and how its parent is called there."""

COURIERS = ["jne", "jnt", "sicepat", "anteraja", "idx", "ninja", "lion", "posindonesia", "sap", "ncs", "tiki", "spx"]
"""Whom to ask for prices; one that an account does not have is left out of the answer."""

PACKAGE_TYPE = 7
LEAST_VALUE = 1_000
LONGEST_NOTE = 50
LONGEST_NAME = 50
LONGEST_SENDER_ADDRESS = 200
LONGEST_RECEIVER_ADDRESS = 255
LONGEST_REASON = 200
SHORTEST_REASON = 5
LAST_PICKUP_HOUR = 16
NEXT_PICKUP_HOUR = 9

NOT_FOUND_CODE = 2
NOT_FOUND_WORDS = ("tidak ditemukan", "not found")
"""How it says that it does not know an order."""


class Verdict(Struct, frozen=True):
    """What every answer has: an error is an HTTP 200 that says so here."""

    status: bool
    text: str | None = None
    code: int | str | None = None

    @property
    def reason(self) -> str:
        return self.text or "it gave no reason"

    @property
    def is_not_found(self) -> bool:
        return str(self.code) == str(NOT_FOUND_CODE) or any(word in self.reason.lower() for word in NOT_FOUND_WORDS)


class Price(Struct, frozen=True):
    service: str
    service_type: str
    cost: Decimal
    service_name: str | None = None
    etd: str | None = None
    drop: bool = False
    force_insurance: bool = False
    insurance: Decimal | None = None


class Prices(Verdict, frozen=True):
    results: list[Price] = []


class Detail(Struct, frozen=True):
    order_id: str
    kj_order_id: str | None = None
    awb: str | None = None


class Pickup(Verdict, frozen=True):
    details: list[Detail] = []
    pickup_number: str | None = None
    payment_status: str | None = None


class Images(Struct, frozen=True):
    camera_img: str | None = None
    signature_img: str | None = None
    pop_img: str | None = None


class TrackDetails(Struct, frozen=True):
    order_id: str | None = None
    awb: str | None = None
    images: Images | None = None


class Happening(Struct, frozen=True):
    created_at: str
    status: str
    status_code: int | None = None
    driver: str | None = None
    receiver: str | None = None


class Tracking(Verdict, frozen=True):
    status_code: int | None = None
    details: TrackDetails | None = None
    histories: list[Happening] = []


class Parcel(Struct, frozen=True):
    """One of a callback's parcels."""

    order_id: str | None = None
    awb: str | None = None
    date: str | None = None
    shipped_at: str | None = None
    finished_at: str | None = None
    returned_at: str | None = None
    rejected_at: str | None = None
    reason: str | None = None
    status: int | None = None
    live_tracking_url: str | None = None


class Callback(Struct, frozen=True):
    method: str
    data: list[Parcel] = []
    packages: list[Parcel] = []


class AreaRow(Struct, frozen=True):
    """A place of any level: the names of its parts differ, their meaning does not."""

    id: int
    provinsi_name: str | None = None
    kabupaten_name: str | None = None
    kecamatan_name: str | None = None
    kelurahan_name: str | None = None
    type: str | None = None
    provinsi_id: int | None = None
    kabupaten_id: int | None = None
    kecamatan_id: int | None = None
    postal_code: str | None = None


class AreaRows(Verdict, frozen=True):
    datas: list[AreaRow] = []
    results: list[AreaRow] = []
    """Sub-districts come under another name than all the rest."""
