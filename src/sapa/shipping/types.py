"""Shipments: what they look like."""

from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from secrets import token_urlsafe
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.http.responses import StoredJson, Timestamp
from sapa.shipping.estimates import parse_days
from sapa.shipping.providers import LOCAL_PROVIDERS, Provider
from sapa.shipping.states import Status
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind
from sapa.values.instants import format_instant
from sapa.values.money import Amount, Currency
from sapa.values.text_folding import fold

SHIPMENT_ID = IdKind("shp_")
LOCATION_ID = IdKind("loc_")

ShipmentId = Annotated[str, SHIPMENT_ID]
LocationId = Annotated[str, LOCATION_ID]

ServiceType = Annotated[Literal["INSTANT", "SAME_DAY", "EXPRESS"], EnumName("ServiceType")]
VehicleType = Annotated[Literal["TWO_WHEEL", "FOUR_WHEEL", "VAN", "TRUCK"], EnumName("VehicleType")]
PackageHandover = Annotated[Literal["PICKUP", "DROP_OFF"], EnumName("PackageHandover")]
BikeFuelType = Annotated[Literal["gasoline", "electric"], EnumName("BikeFuelType")]
PaymentStatus = Annotated[Literal["pending", "paid", "refunded"], EnumName("PaymentStatus")]
CancellationSource = Annotated[
    Literal["api", "command", "carrier_webhook", "carrier_poll", "auto"], EnumName("CancellationSource")
]

Short = Annotated[str, Meta(min_length=1, max_length=200)]
Person = Annotated[str, Meta(min_length=1, max_length=100, examples=["Ayu Lestari"])]
PhoneText = Annotated[str, Meta(max_length=30, examples=["+6281234567890"])]
EmailText = Annotated[str, Meta(max_length=254)]
AddressText = Annotated[str, Meta(min_length=1, max_length=500, examples=["Jl. Jenderal Sudirman Kav. 52, Senayan"])]
PartyNotes = Annotated[str, Meta(max_length=500)]
AreaId = Annotated[int, Meta(ge=1, le=2**53 - 1)]
PickupCity = Annotated[
    Short | AreaId, Meta(description="For ev_courier: an id or a name of coverage/cities?provider=ev_courier.")
]
Zip = Annotated[str, Meta(max_length=10)]
Measure = Annotated[Decimal, Meta(description="More than 0, at most three decimal places.")]
Number = Annotated[Decimal, Meta(description="From 0.")]
CodAmount = Annotated[
    Decimal,
    Meta(
        examples=[None],
        description="Cash on delivery: what the carrier collects from the receiver. More than 0; whole rupiah if a"
        " carrier collects it.",
    ),
]
Reason = Annotated[str, Meta(max_length=500, examples=["The customer changed their mind."])]
Awb = Annotated[str, Meta(min_length=1, max_length=64)]
WebAddress = Annotated[str, Meta(max_length=1000, pattern="^https://")]


RECEIVER = {"name": "Ayu Lestari", "phone": "+6281234567890", "address": "Jl. Jenderal Sudirman Kav. 52, Senayan"}


class Spot(Struct, frozen=True):
    """A place on the map, in degrees."""

    lat: Annotated[float, Meta(examples=[-6.2253], extra_json_schema={"minimum": -90, "maximum": 90})]
    lng: Annotated[float, Meta(examples=[106.8097], extra_json_schema={"minimum": -180, "maximum": 180})]


class Party(Struct, frozen=True, rename="camel"):
    """Who sends or receives, and where."""

    name: Annotated[str | None, Meta(examples=["Ayu Lestari"])]
    phone: Annotated[str | None, Meta(examples=["+6281234567890"])]
    email: str | None
    address: Annotated[str | None, Meta(examples=["Jl. Jenderal Sudirman Kav. 52, Senayan"])]
    notes: str | None
    city: Annotated[str | None, Meta(examples=["Jakarta Selatan"])]
    province: str | None
    country: str | None
    zip: str | None
    kecamatan: str | None
    kelurahan: str | None
    kecamatan_id: int | None
    kelurahan_id: int | None
    coordinates: Spot | None


class PartyIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Who sends or receives. A field that you leave out keeps its value; null clears it."""

    name: Person | None | UnsetType = UNSET
    phone: PhoneText | None | UnsetType = UNSET
    email: EmailText | None | UnsetType = UNSET
    address: AddressText | None | UnsetType = UNSET
    notes: PartyNotes | None | UnsetType = UNSET
    city: Short | None | UnsetType = UNSET
    province: Short | None | UnsetType = UNSET
    country: Short | None | UnsetType = UNSET
    zip: Zip | None | UnsetType = UNSET
    kecamatan: Short | None | UnsetType = UNSET
    kelurahan: Short | None | UnsetType = UNSET
    kecamatan_id: AreaId | None | UnsetType = UNSET
    kelurahan_id: AreaId | None | UnsetType = UNSET
    district_id: Annotated[AreaId, Meta(description="The same as kecamatanId.")] | None | UnsetType = UNSET
    sub_district_id: Annotated[AreaId, Meta(description="The same as kelurahanId.")] | None | UnsetType = UNSET
    coordinates: Spot | None | UnsetType = UNSET


class Package(Struct, frozen=True, rename="camel"):
    """What is sent: kilograms, centimetres, and a value in the shipment's currency."""

    weight: Annotated[Decimal | None, Meta(examples=[1.5])]
    length: Decimal | None
    width: Decimal | None
    height: Decimal | None
    item_name: Annotated[str | None, Meta(examples=["Kopi Gayo"])]
    item_type: str | None
    notes: str | None
    item_value: Decimal | None
    item_qty: int | None


class PackageIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What is sent. A field that you leave out keeps its value; null clears it."""

    weight: Annotated[Measure, Meta(examples=[1.5])] | None | UnsetType = UNSET
    length: Measure | None | UnsetType = UNSET
    width: Measure | None | UnsetType = UNSET
    height: Measure | None | UnsetType = UNSET
    item_name: Annotated[Short, Meta(examples=["Kopi Gayo"])] | None | UnsetType = UNSET
    item_type: Short | None | UnsetType = UNSET
    notes: PartyNotes | None | UnsetType = UNSET
    item_value: Number | None | UnsetType = UNSET
    item_qty: Annotated[int, Meta(ge=1, le=1_000_000)] | None | UnsetType = UNSET


class ShownDriver(Struct, frozen=True, rename="camel"):
    """The driver of a shipment."""

    name: str | None
    phone: str | None
    photo: str | None
    license_plate: str | None


read_party = msgspec.json.Decoder(Party).decode
read_package = msgspec.json.Decoder(Package).decode
read_driver = msgspec.json.Decoder(ShownDriver).decode

TRACKING_PATH = "/t/"
"""Where the public tracking pages are."""

NO_PARTY = Party(**dict.fromkeys(Party.__struct_fields__))
NO_PACKAGE = Package(**dict.fromkeys(Package.__struct_fields__))


def build_area(receiver: Party) -> str | None:
    """The city, or the province if that is all that is known."""
    return (receiver.city or receiver.province or "").strip() or None


def new_tracking_page() -> str:
    """The path of a public tracking page: 128 random bits, so it cannot be guessed."""
    return TRACKING_PATH + token_urlsafe(16)


def choose_payment_status(stored: str | None, reported: str | None) -> str | None:
    """What a carrier reports, unless the payment was settled before."""
    return reported if reported is not None and stored in {None, "pending"} else stored


class Shipment(Struct, frozen=True, rename="camel"):
    """A shipment. Units are kilograms, centimetres and kilometres, and money in major units."""

    id: ShipmentId
    order_id: Annotated[str | None, Meta(examples=["order_01jc9y3q5me8w92v7x4t6r0n1k"])]
    provider: Provider
    provider_label: Annotated[str, Meta(examples=["Aggregator"])]
    name: Annotated[str | None, Meta(description="Your own name for it.")]
    fee: Annotated[Decimal | None, Meta(examples=[18000], description="As you sent it.")]
    currency: Annotated[str, Meta(examples=["IDR"])]
    shipping_status: Status
    service_type: ServiceType | None
    service_name: Annotated[str | None, Meta(examples=["JNE Reguler"])]
    service_code: Annotated[str | None, Meta(description="The service as calculate-fee names it.")]
    selected_expedition: str | None
    selected_delivery: str | None
    courier_group: str | None
    vehicle_type: VehicleType | None
    bike_fuel_type: BikeFuelType | None
    package_handover: PackageHandover
    pickup_schedule: Timestamp | None
    pickup_city: Annotated[str | None, Meta(description="Of ev_courier: from its list of cities.")]
    store_location_id: Annotated[str | None, Meta(examples=["loc_01jc9y3q5me8w92v7x4t6r0n1k"])]
    sender: Annotated[Raw | None, StoredJson(Party | None)]
    delivery: Annotated[Raw | None, StoredJson(Party | None)]
    package: Annotated[Raw | None, StoredJson(Package | None)]
    driver: Annotated[Raw | None, StoredJson(ShownDriver | None)]
    insurance: bool
    insurance_fee: Decimal | None
    insurance_amount: Decimal | None
    discount_amount: Decimal | None
    discount_percentage: Decimal | None
    cod_amount: Annotated[
        Decimal | None,
        Meta(examples=[153000], description="Cash on delivery: what the carrier collects from the receiver."),
    ]
    cod_fee: Annotated[Decimal | None, Meta(description="What the carrier charges for cash on delivery.")]
    cod_collected_at: Annotated[Timestamp | None, Meta(description="When the carrier collected the cash.")]
    cod_remitted_at: Annotated[Timestamp | None, Meta(description="When the carrier paid the cash out to you.")]
    cod_remitted_amount: Annotated[Decimal | None, Meta(description="What the carrier paid out, after its deductions.")]
    carrier_fee: Annotated[
        Decimal | None, Meta(description="The carrier's own price, without insurance and the fee for cash on delivery.")
    ]
    estimate: Annotated[
        str | None, Meta(examples=["2-3 days"], description="How long it takes, as the carrier quoted it.")
    ]
    distance: Decimal | None
    tracking_url: str | None
    awb: Annotated[str | None, Meta(description="The carrier's waybill number.")]
    order_no: Annotated[str | None, Meta(description="The carrier's order number.")]
    booking_id: Annotated[str | None, Meta(description="The carrier's id of the booking.")]
    pickup_number: str | None
    payment_id: str | None
    payment_status: PaymentStatus | None
    payment_qr: Annotated[
        str | None, Meta(description="The content of the QRIS code that pays the booking, while it is pending.")
    ]
    return_of: Annotated[str | None, Meta(description="Of a return: the shipment that it sends back.", examples=[None])]
    return_number: Annotated[
        str | None, Meta(description="Of a return: its number, for the customer.", examples=["R1001"])
    ]
    refund_id: Annotated[str | None, Meta(description="Of a return: the refund of the order.", examples=[None])]
    status_code: Annotated[int | None, Meta(description="The carrier's number, where it has numbers.")]
    cancellation_reason: str | None
    cancelled_by: Annotated[str | None, Meta(description="user, customer, driver, carrier or system.")]
    cancelled_source: CancellationSource | None
    event_timestamp: Annotated[Timestamp | None, Meta(description="When the carrier last reported a change.")]
    needs_action: Annotated[bool, Meta(description="Whether a person should check it.")]
    problem: Annotated[str | None, Meta(description="What went wrong, in words.")]
    sorting_code: Annotated[str | None, Meta(description="The carrier's code of the route, for the label.")]
    tracking_page: Annotated[
        str | None,
        Meta(
            examples=["/t/9sXk2vQm4TzRwY7LbN3cHd"],
            description="The path of its public tracking page on this server. Who has it needs no key.",
        ),
    ]
    created_at: Timestamp
    updated_at: Timestamp


class StoredShipment(Struct, frozen=True):
    """A row of shipments as the rules see it: instants that compare, and the fields that only the worker and the
    adapters use."""

    id: str
    order_id: str | None
    provider: Provider
    provider_label: str
    name: str | None
    fee: Decimal | None
    currency: str
    shipping_status: Status
    service_type: ServiceType | None
    service_name: str | None
    service_code: str | None
    selected_expedition: str | None
    selected_delivery: str | None
    courier_group: str | None
    vehicle_type: VehicleType | None
    bike_fuel_type: BikeFuelType | None
    package_handover: PackageHandover
    pickup_schedule: datetime | None
    pickup_city: str | None
    store_location_id: str | None
    sender: Raw | None
    delivery: Raw | None
    package: Raw | None
    driver: Raw | None
    insurance: bool
    insurance_fee: Decimal | None
    insurance_amount: Decimal | None
    discount_amount: Decimal | None
    discount_percentage: Decimal | None
    cod_amount: Decimal | None
    cod_fee: Decimal | None
    cod_collected_at: datetime | None
    cod_remitted_at: datetime | None
    cod_remitted_amount: Decimal | None
    carrier_fee: Decimal | None
    estimate: str | None
    distance: Decimal | None
    tracking_url: str | None
    awb: str | None
    order_no: str | None
    booking_id: str | None
    pickup_number: str | None
    payment_id: str | None
    payment_status: PaymentStatus | None
    payment_qr: str | None
    return_of: str | None
    return_number: str | None
    refund_id: str | None
    status_code: int | None
    cancellation_reason: str | None
    cancelled_by: str | None
    cancelled_source: str | None
    event_timestamp: datetime | None
    needs_action: bool
    problem: str | None
    sorting_code: str | None
    tracking_page: str | None
    created_at: datetime
    updated_at: datetime
    reference: str | None
    """Our reference of the current booking."""
    adapter: str | None
    picked_up_at: datetime | None
    delivered_at: datetime | None
    failed_attempts: int
    area: str | None
    """Of the receiver: the city, or the province if that is all that is known."""
    cancelling_from: str | None
    cancel_due_at: datetime | None
    cancel_tries: int
    poll_at: datetime | None
    cell: str
    """Of the counter: provider/status as stored."""

    @property
    def shipment(self) -> Shipment:
        """As the API returns it."""
        shown: list[Any] = list(_get_shown(self))
        for position in _SHOWN_INSTANTS:
            if isinstance(instant := shown[position], datetime):
                shown[position] = format_instant(instant)
        return Shipment(*shown)

    @property
    def search_text(self) -> str:
        parties = [read_party(party).name for party in (self.sender, self.delivery) if party is not None]
        names = [*parties, self.name, self.service_name, self.awb, self.order_no]
        return fold("\n".join(name for name in names if name))

    @property
    def quoted_days(self) -> Decimal | None:
        return None if self.estimate is None else parse_days(self.estimate)


_get_shown = attrgetter(*Shipment.__struct_fields__)
_SHOWN_INSTANTS = [
    position
    for position, name in enumerate(Shipment.__struct_fields__)
    if StoredShipment.__annotations__[name] in {datetime, datetime | None}
]
"""The fields that are instants when they are stored, and text in the API."""


class ReturnOrigin(Struct, frozen=True):
    """What a return shipment sends back, and its number."""

    shipment_id: str
    order_id: str | None
    number: str


class ShipmentOptions(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The same options that calculate-fee takes; fields of the shipment take precedence."""

    service_type: ServiceType | None = None
    pickup_city: PickupCity | None = None
    insurance: bool | None = None
    cod_amount: CodAmount | None = None
    vehicle_type: VehicleType | None = None


class ShipmentPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to a shipment: what is absent stays as it is, null clears."""

    order_id: Annotated[str, Meta(max_length=255, examples=[None], description="Of an order.")] | None | UnsetType = (
        UNSET
    )
    provider_label: Short | None | UnsetType = UNSET
    name: Annotated[Short, Meta(examples=["Kopi for Ayu"])] | None | UnsetType = UNSET
    fee: Amount | None | UnsetType = UNSET
    currency: Annotated[Currency, Meta(description="The company's own unless given.")] | None | UnsetType = UNSET
    service_type: ServiceType | None | UnsetType = UNSET
    service_name: Short | None | UnsetType = UNSET
    service_code: Short | None | UnsetType = UNSET
    selected_expedition: Short | None | UnsetType = UNSET
    selected_delivery: Short | None | UnsetType = UNSET
    courier_group: Short | None | UnsetType = UNSET
    vehicle_type: Annotated[VehicleType, Meta(examples=["TWO_WHEEL"])] | None | UnsetType = UNSET
    bike_fuel_type: BikeFuelType | None | UnsetType = UNSET
    package_handover: Annotated[PackageHandover, Meta(examples=["PICKUP"])] | None | UnsetType = UNSET
    pickup_schedule: Annotated[datetime, Meta(examples=[None])] | None | UnsetType = UNSET
    pickup_city: PickupCity | None | UnsetType = UNSET
    store_location_id: (
        Annotated[str, Meta(max_length=100, examples=[None], description="Fills sender.")] | None | UnsetType
    ) = UNSET
    sender: PartyIn | None | UnsetType = UNSET
    delivery: Annotated[PartyIn, Meta(examples=[RECEIVER])] | None | UnsetType = UNSET
    package: PackageIn | None | UnsetType = UNSET
    insurance: bool | None | UnsetType = UNSET
    insurance_fee: Number | None | UnsetType = UNSET
    insurance_amount: Number | None | UnsetType = UNSET
    discount_amount: Number | None | UnsetType = UNSET
    discount_percentage: Number | None | UnsetType = UNSET
    cod_amount: CodAmount | None | UnsetType = UNSET
    cod_fee: Annotated[Number, Meta(description="Replaced by the carrier's once it is booked.")] | None | UnsetType = (
        UNSET
    )
    estimate: (
        Annotated[str, Meta(max_length=100, examples=["2-3 days"], description="As calculate-fee returns it.")]
        | None
        | UnsetType
    ) = UNSET
    distance: Number | None | UnsetType = UNSET
    payment_id: Short | None | UnsetType = UNSET
    payment_status: PaymentStatus | None | UnsetType = UNSET
    awb: Annotated[Awb, Meta(description=f"Of {LOCAL_PROVIDERS} only.")] | None | UnsetType = UNSET
    tracking_url: Annotated[WebAddress, Meta(description=f"Of {LOCAL_PROVIDERS} only.")] | None | UnsetType = UNSET
    refund_id: (
        Annotated[str, Meta(max_length=100, examples=[None], description="Of a return only: a refund of its order.")]
        | None
        | UnsetType
    ) = UNSET


class ShipmentIn(ShipmentPatch, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new shipment."""

    provider: Annotated[Provider, Meta(examples=["custom"])]
    options: ShipmentOptions | None = None
    auto_book: Annotated[bool, Meta(description="Whether to request the pickup at once.")] = False


class BookingResolution(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a person learned from the carrier about a booking with an unknown outcome."""

    outcome: Annotated[Literal["booked", "not_booked"], EnumName("BookingOutcome")]
    order_no: (
        Annotated[
            str,
            Meta(
                max_length=100,
                pattern="^[A-Za-z0-9][A-Za-z0-9._:-]*$",
                examples=["GK-11-170563"],
                description="The carrier's order number: letters, digits, and . _ : - between them.",
            ),
        ]
        | None
    ) = None


class ShipmentChange(ShipmentPatch, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to a shipment, and what to do with it afterwards."""

    shipping_status: (
        Annotated[
            Status,
            Meta(
                examples=["confirmed"],
                description=f"Set by hand: for {LOCAL_PROVIDERS}, and `returned` for a shipment that is returning.",
            ),
        ]
        | UnsetType
    ) = UNSET
    trigger_booking: Annotated[bool, Meta(description="Whether to request the pickup now.")] = False
    resolve_booking: Annotated[BookingResolution | None, Meta(examples=[None])] = None
    needs_action: (
        Annotated[bool, Meta(examples=[False], description="Only false: a person has checked it.")] | UnsetType
    ) = UNSET


class CancelIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Why it is cancelled."""

    reason: Reason | None = None
