"""What a journey needs at each provider: asked alike when it is quoted and when it becomes a shipment. Pure.

Every check is told the field that the caller knows the value by, and raises `Invalid` with it.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Protocol

from sapa.http.errors import Invalid
from sapa.values.text_folding import fold

MOST_KG = Decimal(1_000)
MOST_CM = Decimal(1_000)
_DECIMAL_PLACES = 3

SOUTH, NORTH, WEST, EAST = -11.5, 6.5, 94.5, 141.5
"""The country that the carriers serve."""

GO_BY_AREA = frozenset({"aggregator_carrier"})
GO_BY_COORDINATES = frozenset({"instant_carrier", "ev_courier"})

AREA_ADVICE = "is required for express parcels; /shipping/coverage lists the ids, from provinces to sub-districts"
PICKUP_CITIES_ADVICE = "/shipping/coverage/cities?provider=ev_courier lists the cities"


class PointLike(Protocol):
    @property
    def lat(self) -> float: ...

    @property
    def lng(self) -> float: ...


class Listed(Protocol):
    @property
    def id(self) -> int | str: ...

    @property
    def name(self) -> str: ...


def check_service_type(field: str, provider: str, service_type: str | None) -> None:
    """The aggregator brings parcels, and nothing on demand."""
    if provider == "aggregator_carrier" and service_type == "INSTANT":
        raise Invalid.field(
            field, "INSTANT is not available at aggregator_carrier; use the provider instant_carrier for it"
        )


def check_area_ids(provider: str, ids: Mapping[str, int | None]) -> None:
    """That each of these fields has an id, where the provider goes by ids; `{"origin.districtId": 317106}`."""
    for field, id in ids.items():
        if provider in GO_BY_AREA and id is None:
            raise Invalid.field(field, AREA_ADVICE)


def check_coordinates(provider: str, ends: Mapping[str, PointLike | None]) -> None:
    """That each end has usable coordinates, where the provider goes by them; others' must be usable if given."""
    for field, point in ends.items():
        if point is None:
            if provider in GO_BY_COORDINATES:
                raise Invalid.field(field, f"is required: {provider} finds its way by coordinates")
        elif not _is_inside(point.lat, point.lng):
            raise Invalid.field(field, _explain_point(point))


def _is_inside(lat: float, lng: float) -> bool:
    return SOUTH <= lat <= NORTH and WEST <= lng <= EAST


def _explain_point(point: PointLike) -> str:
    if _is_inside(point.lng, point.lat):
        return f"seems to have lat and lng the wrong way round: send lat {point.lng:g} and lng {point.lat:g}"
    return f"must lie in Indonesia: lat from {SOUTH:g} to {NORTH:g}, lng from {WEST:g} to {EAST:g}"


def get_pickup_city(field: str, given: str | None, cities: Iterable[Listed]) -> Listed:
    """The city of ev_courier's list that is meant, by its id or its name in any case."""
    if given is None or not given.strip():
        raise Invalid.field(field, f"is required for ev_courier; {PICKUP_CITIES_ADVICE}")
    wanted = _bare(given)
    for city in cities:
        if str(city.id) == given.strip() or _bare(city.name) == wanted:
            return city
    raise Invalid.field(field, f"is not a city in which ev_courier fetches parcels; {PICKUP_CITIES_ADVICE}")


def _bare(city: str) -> str:
    return fold(city).removeprefix("kota ").removeprefix("kabupaten ")


def check_measure(field: str, value: Decimal | None, most: Decimal) -> None:
    """A weight or a length: more than nothing, at most so much, no finer than a gram or a hundredth of a millimetre."""
    if value is None:
        return
    # Looked at before anything is computed: 1e999999 is a short text and a very long number.
    if not value.is_finite() or value <= 0 or value.adjusted() > most.adjusted() or value > most:
        raise Invalid.field(field, f"must be more than 0 and at most {most:f}")
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and -exponent > _DECIMAL_PLACES:
        raise Invalid.field(field, f"must have at most {_DECIMAL_PLACES} decimal places")
