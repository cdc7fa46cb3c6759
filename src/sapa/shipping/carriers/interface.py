"""The interface of a carrier's adapter, and its types."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

from sapa.outbound.client import Client
from sapa.values.company import Company
from sapa.values.provider_accounts import AccountField
from sapa.values.web_addresses import is_web_address

Level = Literal["provinces", "cities", "districts", "sub-districts"]


class CarrierAccount(Struct, frozen=True):
    """A company's account with a carrier, decrypted for one call. Never logged, never in a response."""

    company: Company
    id: str
    adapter: str
    address: str
    """The base URL of the carrier's API."""
    credentials: Mapping[str, str]
    client: Client
    breaks_circuit: bool = True
    """Whether the carrier is not called for a while after it kept failing."""

    def __repr__(self) -> str:
        """Leaves the credentials out."""
        return f"CarrierAccount({self.adapter} {self.id} of company {self.company.id})"


class Coordinates(Struct, frozen=True):
    lat: float
    lng: float


class ShippingPoint(Struct, frozen=True):
    """The origin or the destination; each carrier needs other fields of it."""

    name: str | None = None
    phone: str | None = None
    email: str | None = None
    address: str | None = None
    notes: str | None = None
    city: str | None = None
    province: str | None = None
    country: str | None = None
    zip: str | None = None
    kecamatan: str | None = None
    kecamatan_id: int | None = None
    kelurahan: str | None = None
    kelurahan_id: int | None = None
    coordinates: Coordinates | None = None


class Parcel(Struct, frozen=True):
    """Weight in kilograms, sizes in centimetres, value in the shipment's currency."""

    weight: Decimal
    length: Decimal | None = None
    width: Decimal | None = None
    height: Decimal | None = None
    item_name: str | None = None
    item_type: str | None = None
    notes: str | None = None
    item_value: Decimal | None = None
    item_qty: int | None = None


class ServiceRequest(Struct, frozen=True):
    """The requested service."""

    service_type: str | None = None
    service_code: str | None = None
    """The code of an offer; empty if only its name is known."""
    service_name: str | None = None
    vehicle_type: str | None = None
    bike_fuel_type: str | None = None
    package_handover: str = "PICKUP"
    pickup_schedule: datetime | None = None
    pickup_city: str | None = None
    insurance: bool = False
    insurance_amount: Decimal | None = None
    """The insured value; the parcel's own value if it is not given."""
    cod_amount: Decimal | None = None
    """Cash on delivery: what the carrier collects."""
    fee: Decimal | None = None
    currency: str = "IDR"


class ShipmentRequest(Struct, frozen=True):
    """Everything that a quote or a booking needs."""

    origin: ShippingPoint
    destination: ShippingPoint
    parcel: Parcel
    service: ServiceRequest


class CashLimits(Struct, frozen=True):
    """What a courier collects on delivery: the least and the most, both included."""

    least: Decimal
    most: Decimal


class ServiceOffer(Struct, frozen=True, gc=False):
    """A service that a carrier offers for a shipment."""

    service_code: str
    service_name: str
    service_type: str
    price: Decimal
    currency: str
    estimate: str | None
    """The carrier's text, such as `2-3 days`."""
    courier: str
    insurance_fee: Decimal | None = None
    insurance_required: bool = False
    cod: bool = False
    """Whether the service collects cash on delivery."""
    cod_limits: CashLimits | None = None
    """None if they are not known."""
    cod_fee: Decimal | None = None
    """For the requested amount; None if none is requested."""
    distance: Decimal | None = None
    vehicle_type: str | None = None
    package_handover: Sequence[str] = ("PICKUP",)

    def collects(self, amount: Decimal) -> bool:
        """Whether the service collects this amount on delivery."""
        limits = self.cod_limits
        return self.cod and (limits is None or limits.least <= amount <= limits.most)


class QuoteNote(Struct, frozen=True):
    """Why a service is missing, and how to fix the request."""

    courier: str
    code: str
    text: str


class Quote(Struct, frozen=True):
    offers: Sequence[ServiceOffer]
    notes: Sequence[QuoteNote]


def _keep_web_addresses(result: Struct, *names: str) -> None:
    """A carrier's link that is not http or https is left out: people click it."""
    for name in names:
        link = getattr(result, name)
        if link is not None and not is_web_address(link):
            force_setattr(result, name, None)


class Driver(Struct, frozen=True):
    name: str | None = None
    phone: str | None = None
    photo: str | None = None
    license_plate: str | None = None

    def __post_init__(self) -> None:
        _keep_web_addresses(self, "photo")


class Booked(Struct, frozen=True):
    """The carrier accepted the booking. `status` is a shippingStatus of ours."""

    status: str
    order_no: str | None = None
    booking_id: str | None = None
    awb: str | None = None
    pickup_number: str | None = None
    payment_id: str | None = None
    payment_status: str | None = None
    """A paymentStatus of ours; None for an unknown word."""
    tracking_url: str | None = None
    status_code: int | None = None
    driver: Driver | None = None
    price: Decimal | None = None
    """Without insurance and the fee for cash on delivery."""
    insurance_fee: Decimal | None = None
    cod_fee: Decimal | None = None
    payment_qr: str | None = None
    """The content of the QRIS code that pays the booking."""
    service_code: str | None = None
    """Of the offer that was booked."""
    estimate: str | None = None
    distance: Decimal | None = None
    sorting_code: str | None = None

    def __post_init__(self) -> None:
        _keep_web_addresses(self, "tracking_url")


class Rejected(Struct, frozen=True):
    """The carrier definitely refused: nothing was booked."""

    code: str
    reason: str


class BookingNotFound(Struct, frozen=True):
    """The carrier has no booking with our reference, and its lookup is reliable."""


class CannotTell(Struct, frozen=True):
    """The lookup has no clear result."""

    reason: str


class Cancelled(Struct, frozen=True):
    """Cancelled now or before."""


class CancelPending(Struct, frozen=True):
    """The carrier accepted the request and decides later."""


class CancelRefused(Struct, frozen=True):
    reason: str
    is_sure: bool = True
    """False if the refusal may mean that it was cancelled before."""


class CarrierEvent(Struct, frozen=True):
    """An event reported by a carrier. It names our reference, the carrier's order number or the awb."""

    dedupe_key: str
    occurred_at: datetime
    status: str | None
    """A shippingStatus of ours; None for an unknown word, which is recorded without effect."""
    text: str
    """The carrier's own words."""
    reference: str | None = None
    order_no: str | None = None
    awb: str | None = None
    status_code: int | None = None
    tracking_url: str | None = None
    driver: Driver | None = None
    is_reassignment: bool = False
    """Another driver takes over: the status may go back."""
    receiver: str | None = None
    proof: Sequence[str] = ()
    reason: str | None = None
    cancelled_by: str | None = None
    payment_status: str | None = None
    sorting_code: str | None = None
    is_present: bool = False
    """The present status, without a reliable time: `occurred_at` may be too early."""

    def __post_init__(self) -> None:
        _keep_web_addresses(self, "tracking_url")
        force_setattr(self, "proof", [link for link in self.proof if is_web_address(link)])


class TrackingResult(Struct, frozen=True):
    """The carrier's present answer, oldest event first."""

    events: Sequence[CarrierEvent]
    was_asked: bool = True
    """False if there is no number yet to ask by."""


class CarrierArea(Struct, frozen=True):
    """An area of a carrier's dictionary."""

    id: int | str
    name: str
    parent_id: int | str | None
    zip: str | None = None


class AreaPath(Struct, frozen=True):
    """A sub-district and the areas that it is in."""

    province_id: int | str
    city_id: int | str
    district_id: int | str
    sub_district_id: int | str
    names: Sequence[str]
    """From the sub-district to the province."""
    zip: str | None

    @property
    def label(self) -> str:
        return ", ".join([*self.names, *([self.zip] if self.zip else [])])


class BookedShipment(Struct, frozen=True):
    """A shipment by the identifiers that its carrier knows."""

    reference: str
    order_no: str | None
    awb: str | None
    booking_id: str | None
    service_type: str | None
    was_picked_up: bool


class BookingPayment(Struct, frozen=True):
    """The payment that a booking waits for, as the carrier reports it."""

    status: str | None
    """A paymentStatus of ours; None for an unknown word."""
    qr: str | None = None
    """The content of the QRIS code."""
    amount: Decimal | None = None


Deduction = Literal["cod_fee", "carrier_fee", "insurance_fee"]
"""A field of the shipment that a carrier keeps from the cash that it collected."""


class CarrierAway(Exception):
    """There was no usable response: the same call may be made again.

    Only raised by calls that are safe to repeat: quote, find, cancel, track, list_areas, verify.
    """


class BadCredentials(Exception):
    """The carrier refuses the account's credentials."""


class Carrier(Protocol):
    """An adapter. It has no state: everything comes with the connection.

    `book` sends one request. It returns the carrier's certain outcome, raises `sapa.outbound.client.NotSent` if the
    request certainly never left, and `sapa.outbound.client.Unclear` if the outcome is unknown (no response, a 5xx, an
    unreadable response). It never retries.
    """

    name: str
    provider: str
    label: str
    address: str
    """The production address; SAPA_UPSTREAM_<NAME> overrides it."""
    fields: Sequence[AccountField]
    levels: Sequence[Level]
    service_types: Sequence[str]
    calls_back: bool
    finds_by_reference: bool
    cod_deductions: Sequence[Deduction]
    """What it keeps when it remits cash on delivery; empty if it does not collect any."""

    async def verify(self, connection: CarrierAccount) -> None: ...

    async def list_areas(
        self, connection: CarrierAccount, level: Level, parent: str | None, search: str | None
    ) -> Sequence[CarrierArea]: ...

    async def quote(self, connection: CarrierAccount, shipment: ShipmentRequest) -> Quote: ...

    async def book(
        self, connection: CarrierAccount, shipment: ShipmentRequest, reference: str
    ) -> Booked | Rejected: ...

    async def find(
        self, connection: CarrierAccount, reference: str, service_type: str | None
    ) -> Booked | BookingNotFound | CannotTell: ...

    async def cancel(
        self, connection: CarrierAccount, shipment: BookedShipment, reason: str
    ) -> Cancelled | CancelPending | CancelRefused: ...

    async def track(self, connection: CarrierAccount, shipment: BookedShipment) -> TrackingResult: ...

    def read_callback(
        self, credentials: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Sequence[CarrierEvent]: ...
