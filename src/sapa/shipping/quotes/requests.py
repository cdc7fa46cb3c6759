"""Validates a quote's body and builds the request for the carriers' adapters. Pure: no database."""

from decimal import Decimal
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from sapa.http.errors import Invalid
from sapa.shipping.carriers.interface import Coordinates, Parcel, ServiceRequest, ShipmentRequest, ShippingPoint
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.quotes.types import QuoteIn, QuoteOption, QuotePlaceIn
from sapa.shipping.shipments import validation
from sapa.shipping.types import PackageIn
from sapa.values.company import Company
from sapa.values.money import BadMoney, parse_amount, shorten

_DIMENSIONS = ("length", "width", "height")

_STORED_FIELDS = (*QuoteOption.__struct_fields__, "weights are stored")


def build_request(company: Company, body: QuoteIn) -> ShipmentRequest:
    """Raises Invalid for a missing or unusable field."""
    options = body.options
    validation.check_service_type("options.serviceType", body.provider, options.service_type)
    origin, destination = _build_place("origin", body.origin), _build_place("destination", body.destination)
    area_ids = {
        "origin.districtId": origin.kecamatan_id,
        "origin.subDistrictId": origin.kelurahan_id,
        "destination.districtId": destination.kecamatan_id,
        "destination.subDistrictId": destination.kelurahan_id,
    }
    validation.check_area_ids(body.provider, area_ids)
    points = {"origin.coordinates": origin.coordinates, "destination.coordinates": destination.coordinates}
    validation.check_coordinates(body.provider, points)
    parcel = _build_parcel(company, body.package)
    if options.insurance and parcel.item_value is None:
        raise Invalid.field("package.itemValue", "is required for insurance")
    cod_amount = _parse_cod_amount(company, body)
    service = ServiceRequest(
        service_type=options.service_type,
        vehicle_type=options.vehicle_type,
        pickup_city=_merge_pickup_city(options.pickup_city, body.pickup_city),
        insurance=options.insurance,
        cod_amount=cod_amount,
        currency=company.currency,
    )
    return ShipmentRequest(origin, destination, parcel, service)


def _parse_cod_amount(company: Company, body: QuoteIn) -> Decimal | None:
    field, amount = "options.codAmount", body.options.cod_amount
    if amount is None:
        return None
    try:
        amount = parse_amount(amount, company.currency)
    except BadMoney as error:
        raise Invalid.field(field, str(error)) from None
    validation.check_cod_amount(field, PROVIDERS[body.provider], amount, company.currency)
    return amount


def _build_place(field: str, place: QuotePlaceIn) -> ShippingPoint:
    sent = {name: value for name in place.__struct_fields__ if (value := _value(getattr(place, name))) is not None}
    fields = validation.merge_area_names(field, sent)
    if spot := fields.get("coordinates"):
        fields["coordinates"] = Coordinates(spot.lat, spot.lng)
    return ShippingPoint(**fields)


def _build_parcel(company: Company, package: PackageIn) -> Parcel:
    fields = {name: _value(getattr(package, name)) for name in Parcel.__struct_fields__}
    if fields["weight"] is None:
        raise Invalid.field("package.weight", "is required, in kilograms")
    validation.check_measure("package.weight", fields["weight"], validation.MAX_KG)
    for name in _DIMENSIONS:
        validation.check_measure(f"package.{name}", fields[name], validation.MAX_CM)
    for name in ("weight", *_DIMENSIONS):
        fields[name] = fields[name] and shorten(fields[name])
    if fields["item_value"] is not None:
        try:
            fields["item_value"] = parse_amount(fields["item_value"], company.currency)
        except BadMoney as error:
            raise Invalid.field("package.itemValue", str(error)) from None
    return Parcel(**fields)


def _merge_pickup_city(option: str | int | None, field: str | int | UnsetType | None) -> str | None:
    """Two names of the same field: either may be sent, and both if they agree."""
    cities = {str(city) for city in (option, _value(field)) if city is not None}
    if len(cities) > 1:
        raise Invalid.field("options.pickupCity", "contradicts pickupCity, which means the same; send one of them")
    return cities.pop() if cities else None


def _value(field: Any | UnsetType) -> Any:
    return None if field is UNSET else field


def build_key(adapter: str, connection_id: str, request: ShipmentRequest) -> bytes:
    """The cache key. Names and contacts do not matter, because they do not change the price. What a version with other
    fields has cached is not found."""
    ends = [_build_end(place) for place in (request.origin, request.destination)]
    parcel = msgspec.structs.replace(request.parcel, item_name=None, notes=None)
    return msgspec.json.encode([adapter, connection_id, *ends, parcel, request.service, _STORED_FIELDS])


def _build_end(place: ShippingPoint) -> list[Any]:
    spot = place.coordinates
    point = spot and [round(spot.lat, 4), round(spot.lng, 4)]
    return [place.kecamatan_id, place.kelurahan_id, place.zip, place.city, place.province, point, place.notes]
