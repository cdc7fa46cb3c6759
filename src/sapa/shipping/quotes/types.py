"""Quotes: requests and responses."""

from decimal import Decimal
from typing import Annotated, Any

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.http.responses import Envelope
from sapa.shipping.providers import Provider
from sapa.shipping.types import AreaId, CodAmount, PackageIn, PartyIn, PickupCity, ServiceType, VehicleType
from sapa.values.json import encode


class QuotePlaceIn(PartyIn, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The origin or destination: parcels need the district and sub-district, instant deliveries the coordinates."""

    district_id: (
        Annotated[AreaId, Meta(description="The same as kecamatanId.", examples=[317106])] | None | UnsetType
    ) = UNSET
    sub_district_id: (
        Annotated[AreaId, Meta(description="The same as kelurahanId.", examples=[3171061001])] | None | UnsetType
    ) = UNSET


class QuoteOptionsIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How it should go."""

    service_type: Annotated[ServiceType, Meta(description="All that the provider has, if none is given.")] | None = None
    pickup_city: PickupCity | None = None
    insurance: bool = False
    cod_amount: CodAmount | None = None
    vehicle_type: VehicleType | None = None


class QuoteIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A shipment to be priced."""

    provider: Annotated[Provider, Meta(examples=["aggregator_carrier"])]
    origin: QuotePlaceIn
    destination: QuotePlaceIn
    package: PackageIn
    options: QuoteOptionsIn = QuoteOptionsIn()
    pickup_city: Annotated[PickupCity, Meta(description="The same as options.pickupCity.")] | None | UnsetType = UNSET


class QuoteOption(Struct, frozen=True, rename="camel", gc=False):
    """A service that can be booked for the shipment."""

    service_code: Annotated[str, Meta(examples=["jne:REG"])]
    service_name: Annotated[str, Meta(examples=["JNE Reguler"])]
    service_type: Annotated[str, Meta(examples=["EXPRESS"])]
    courier: Annotated[str, Meta(examples=["jne"])]
    price: Annotated[Decimal, Meta(examples=[18000])]
    currency: Annotated[str, Meta(examples=["IDR"])]
    estimate: Annotated[
        str | None, Meta(description="How long it takes, in the carrier's words.", examples=["2-3 days"])
    ]
    insurance_fee: Annotated[Decimal | None, Meta(description="In addition to the price.")]
    insurance_required: Annotated[bool, Meta(description="Whether the service always insures such a parcel.")]
    cod: Annotated[bool, Meta(description="Whether the service collects cash on delivery.", examples=[True])]
    cod_minimum: Annotated[
        Decimal | None, Meta(description="The least that it collects; null if it is not known.", examples=[10000])
    ]
    cod_maximum: Annotated[
        Decimal | None, Meta(description="The most that it collects; null if it is not known.", examples=[3000000])
    ]
    cod_fee: Annotated[
        Decimal | None, Meta(description="In addition to the price, for the requested `codAmount`.", examples=[None])
    ]
    distance: Annotated[Decimal | None, Meta(description="In kilometres.")]
    vehicle_type: str | None
    package_handover: Annotated[list[str], Meta(examples=[["PICKUP"]])]
    chargeable_weight: Annotated[
        Decimal | None,
        Meta(
            examples=[2],
            description="The kilograms that the courier charges: the larger of weight and volumetric weight. Null for "
            "services that charge by distance.",
        ),
    ] = None


class QuoteMessage(Struct, frozen=True, rename="camel"):
    """Why a service is missing, and how to fix it."""

    courier: Annotated[str, Meta(description="The courier or the provider.", examples=["kiriminaja"])]
    code: Annotated[str, Meta(examples=["no_service"])]
    text: Annotated[str, Meta(examples=["No courier serves this route and parcel."])]


class QuoteResult(Struct, frozen=True, rename="camel"):
    """The offers, cheapest first, and messages about them."""

    options: list[QuoteOption]
    messages: list[QuoteMessage]
    volumetric_weight: Annotated[
        Decimal | None,
        Meta(
            examples=[1.334],
            description="Length × width × height ÷ 6000, in kilograms. Null if a dimension is missing.",
        ),
    ] = None


class QuoteAnswer(Envelope, frozen=True, rename="camel"):
    """The same options twice: within the data, and beside it."""

    data: QuoteResult
    options: list[QuoteOption]


class EncodedQuote(Struct, frozen=True, rename="camel"):
    """A QuoteResult whose options are encoded already, because a response has them twice."""

    options: Raw
    messages: list[QuoteMessage]
    volumetric_weight: Decimal | None = None


def encode_options(result: QuoteResult) -> EncodedQuote:
    return EncodedQuote(Raw(encode(result.options)), result.messages, result.volumetric_weight)


def build_answer(quote: QuoteResult | EncodedQuote) -> QuoteAnswer:
    encoded: Any = encode_options(quote) if isinstance(quote, QuoteResult) else quote
    return QuoteAnswer(encoded, encoded.options)
