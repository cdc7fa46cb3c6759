"""KiriminAja's JSON, as far as it is read. Other fields are ignored."""

from decimal import Decimal

from msgspec import Raw, Struct

from sapa.shipping.carriers.reading import Code, Word

PRODUCTION = "https://client.kiriminaja.com"

PRICE = "/api/mitra/v6.1/shipping_price"
BOOK = "/api/mitra/v6.1/request_pickup"
TRACK = "/api/mitra/tracking"
CANCEL = "/api/mitra/v3/cancel_shipment"
PRINT = "/api/mitra/v6.1/awb/print"
COURIERS_PATH = "/api/mitra/couriers"
PAYMENT = "/api/mitra/v2/get_payment"

MIN_COD, MAX_COD = Decimal(10_000), Decimal(3_000_000)
"""What its couriers collect on delivery, by its own shop plugin."""
COD_TAX = Decimal("1.11")
"""The fee for cash on delivery includes 11 % tax; its rate does not."""

AREAS = {
    "provinces": ("/api/mitra/province", None),
    "cities": ("/api/mitra/city", "provinsi_id"),
    "districts": ("/api/mitra/kecamatan", "kabupaten_id"),
    "sub-districts": ("/api/mitra/kelurahan", "kecamatan_id"),
}
"""The path of each level, and the name of its parent field."""

COURIERS = ["jne", "jnt", "sicepat", "anteraja", "idx", "ninja", "lion", "posindonesia", "sap", "ncs", "tiki", "spx"]
"""The couriers to ask for prices; those that an account does not have are left out of the response."""

PACKAGE_TYPE = 7
MIN_VALUE = 1_000
LONGEST_NOTE = 50
LONGEST_NAME = 50
LONGEST_PHONE = 13
LONGEST_SENDER_ADDRESS = 200
LONGEST_RECEIVER_ADDRESS = 255
LONGEST_REASON = 200
SHORTEST_REASON = 5
LAST_PICKUP_HOUR = 16
NEXT_PICKUP_HOUR = 9

UNKNOWN_KEY_WORDS = ("unauthenticated", "unauthorized")
"""How it reports an unknown account."""

NOT_FOUND_CODE = 2
NOT_FOUND_WORDS = ("tidak ditemukan", "not found")
"""How it reports an unknown order."""


class Verdict(Struct, frozen=True):
    """Every response has these: an error is an HTTP 200 with a false status."""

    status: bool
    text: str | None = None
    code: int | str | None = None

    @property
    def reason(self) -> str:
        return self.text or "it gave no reason"

    @property
    def is_not_found(self) -> bool:
        return str(self.code) == str(NOT_FOUND_CODE) or any(word in self.reason.lower() for word in NOT_FOUND_WORDS)

    @property
    def is_key_unknown(self) -> bool:
        return any(word in self.reason.lower() for word in UNKNOWN_KEY_WORDS)


class Price(Struct, frozen=True, gc=False):
    service: Word
    service_type: Word | int
    cost: Decimal
    service_name: Word | None = None
    etd: Word | int | None = None
    drop: bool | None = None
    force_insurance: bool | None = None
    insurance: Decimal | None = None
    cod: bool | None = None
    setting: Raw = Raw(b"null")
    """A PriceSetting."""


class PriceSetting(Struct, frozen=True):
    """How the fee for cash on delivery is computed. The rate is a fraction: 0.03 is 3 %."""

    cod_fee: Decimal | None = None
    minimum_cod_fee: Decimal | None = None
    cod_fee_amount: Decimal | None = None
    """The fee for this parcel, with tax; 0 if it was not computed."""


class Prices(Verdict, frozen=True):
    results: list[Raw] | None = None
    """Each is a Price."""


class Detail(Struct, frozen=True):
    order_id: Word
    kj_order_id: Word | None = None
    awb: Word | None = None


class Pickup(Verdict, frozen=True):
    details: list[Detail] | None = None
    pickup_number: Word | None = None
    payment_status: Word | None = None
    qr_url: str | None = None
    """The content of the QRIS code, or the address of its picture."""


class Images(Struct, frozen=True):
    camera_img: str | None = None
    signature_img: str | None = None
    pop_img: str | None = None


class TrackDetails(Struct, frozen=True):
    order_id: Word | None = None
    awb: Word | None = None
    sorting_code: Word | None = None
    images: Images | None = None


class HistoryEntry(Struct, frozen=True):
    created_at: Word
    status: str
    status_code: Code | None = None
    driver: str | None = None
    receiver: str | None = None


class Tracking(Verdict, frozen=True):
    status_code: Code | None = None
    details: TrackDetails | None = None
    histories: list[Raw] | None = None
    """Each is a HistoryEntry."""


class LabelFile(Struct, frozen=True):
    url: str


class LabelFiles(Struct, frozen=True):
    data: LabelFile | None = None


class Labels(Verdict, frozen=True):
    data: LabelFiles | None = None
    """It nests the file's address twice."""


class Parcel(Struct, frozen=True):
    """A parcel of a callback."""

    order_id: Word | None = None
    awb: Word | None = None
    date: Word | None = None
    shipped_at: Word | None = None
    finished_at: Word | None = None
    returned_at: Word | None = None
    rejected_at: Word | None = None
    canceled_at: Word | None = None
    reason: str | None = None
    sorting_code: Word | None = None
    status: Code | None = None
    live_tracking_url: str | None = None


class Payment(Struct, frozen=True):
    status_code: Code | None = None


class PaymentDetails(Struct, frozen=True):
    status_code: Code | None = None
    qr_content: str | None = None
    amount: Decimal | None = None


class PaymentInquiry(Verdict, frozen=True):
    data: PaymentDetails | None = None


class Callback(Struct, frozen=True):
    method: Word
    data: list[Raw] | None = None
    packages: list[Raw] | None = None
    """Parcels; one of the two lists is empty."""
    payment: Raw = Raw(b"null")
    """A Payment, of all the parcels."""


class AreaRow(Struct, frozen=True):
    """An area of any level: the field names differ by level."""

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
    datas: list[AreaRow] | None = None
    results: list[AreaRow] | None = None
    """Sub-districts have another field name."""
