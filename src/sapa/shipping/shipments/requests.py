"""Builds the adapters' requests from a stored shipment. Pure: no database."""

from decimal import Decimal

from msgspec import Raw

from sapa.shipping.carriers.interface import (
    BookedShipment,
    Coordinates,
    Parcel,
    ServiceRequest,
    ShipmentRequest,
    ShippingPoint,
)
from sapa.shipping.types import NO_PACKAGE, NO_PARTY, StoredShipment, read_package, read_party


def build_request(shipment: StoredShipment) -> ShipmentRequest:
    """The request to quote or book it."""
    package = NO_PACKAGE if shipment.package is None else read_package(shipment.package)
    parcel = {name: getattr(package, name) for name in Parcel.__struct_fields__}
    service = {name: getattr(shipment, name) for name in ServiceRequest.__struct_fields__}
    return ShipmentRequest(
        origin=_build_point(shipment.sender),
        destination=_build_point(shipment.delivery),
        parcel=Parcel(**{**parcel, "weight": package.weight or Decimal(1)}),
        service=ServiceRequest(**service),
    )


def _build_point(stored: Raw | None) -> ShippingPoint:
    party = NO_PARTY if stored is None else read_party(stored)
    fields = {name: getattr(party, name) for name in ShippingPoint.__struct_fields__}
    spot = party.coordinates
    fields["coordinates"] = spot and Coordinates(spot.lat, spot.lng)
    return ShippingPoint(**fields)


def build_booked(stored: StoredShipment) -> BookedShipment:
    """The identifiers by which its carrier knows it."""
    return BookedShipment(
        reference=stored.reference or stored.id,
        order_no=stored.order_no,
        awb=stored.awb,
        booking_id=stored.booking_id,
        service_type=stored.service_type,
        was_picked_up=stored.picked_up_at is not None,
    )
