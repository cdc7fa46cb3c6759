"""The sandbox carriers' prices in rupiah: computed from distance and weight alone, so they never vary."""

from decimal import ROUND_CEILING, Decimal
from hashlib import sha256
from math import asin, cos, radians, sin, sqrt
from typing import Literal

from msgspec import Struct

from sapa.sandbox.areas import SandboxPoint, find_centre

Vehicle = Literal["bike", "car"]

_EARTH_KM = 6371.0
_ROAD_FACTOR = Decimal("1.3")
_SHORTEST_KM, _LONGEST_KM = 3, 900
_VOLUME_PER_KG = 6000
_TOLERANCE_KG = Decimal("0.3")

BIKE_KM, BIKE_KG = Decimal(40), Decimal(20)
CAR_KM, CAR_KG = Decimal(100), Decimal(100)
SAME_DAY_KM, SAME_DAY_KG = Decimal(60), Decimal(20)
"""The range and the capacity of the local services."""
MAX_INSURED = Decimal(20_000_000)


class Express(Struct, frozen=True):
    """A service of an express courier."""

    service: str
    price: Decimal
    min_days: int
    max_days: int


def build_distance(origin: SandboxPoint, destination: SandboxPoint) -> Decimal:
    """Kilometres by road: 1.3 times the straight line, rounded up to 0.1."""
    straight = Decimal(_build_straight(origin, destination))
    return (straight * _ROAD_FACTOR).quantize(Decimal("0.1"), rounding=ROUND_CEILING)


def build_area_distance(origin_id: int | str, destination_id: int | str) -> Decimal:
    """Between the centres of two areas; for unknown areas a fixed pseudo-random distance."""
    origin, destination = find_centre(origin_id), find_centre(destination_id)
    if origin and destination:
        return build_distance(origin, destination)
    if str(origin_id) == str(destination_id):
        return Decimal(_SHORTEST_KM)
    ends = "/".join(sorted((str(origin_id), str(destination_id))))
    number = int.from_bytes(sha256(ends.encode()).digest()[:8])
    return Decimal(_SHORTEST_KM + number % (_LONGEST_KM - _SHORTEST_KM + 1))


def build_chargeable_kg(
    weight: Decimal, length: Decimal | None = None, width: Decimal | None = None, height: Decimal | None = None
) -> int:
    """Whole kilograms of weight or volume, whichever is more; up to 0.3 kg above a whole one is free."""
    volume = (length or 0) * (width or 0) * (height or 0) / Decimal(_VOLUME_PER_KG)
    return max(1, int((max(weight, volume) - _TOLERANCE_KG).to_integral_value(rounding=ROUND_CEILING)))


def build_zone(km: Decimal) -> int:
    """0 (within a city) to 4 (across the sea)."""
    return sum(km > limit for limit in (40, 200, 600, 1200))


def find_instant_price(vehicle: Vehicle, km: Decimal, kg: Decimal) -> Decimal | None:
    """None if the distance or the weight is too much for the vehicle."""
    if vehicle == "bike":
        return max(Decimal(12_000), _ceil(9_000 + 2_500 * km)) if km <= BIKE_KM and kg <= BIKE_KG else None
    return _ceil(28_000 + 4_200 * km) if km <= CAR_KM and kg <= CAR_KG else None


def find_same_day_price(km: Decimal, kg: Decimal) -> Decimal | None:
    is_carried = km <= SAME_DAY_KM and kg <= SAME_DAY_KG
    return max(Decimal(18_000), _ceil(14_000 + 800 * km)) if is_carried else None


def find_electric_price(km: Decimal, kg: Decimal) -> Decimal | None:
    """Of the electric couriers; `areas.PICKUP_CITIES` lists where they pick up."""
    return _ceil(8_000 + 1_900 * km) if km <= SAME_DAY_KM and kg <= SAME_DAY_KG else None


def list_express_prices(km: Decimal, chargeable_kg: int) -> list[Express]:
    """Cheapest first."""
    zone = build_zone(km)
    regular = Decimal((8_000 + 4_500 * zone) * chargeable_kg)
    return [
        Express("ECO", _ceil(regular * Decimal("0.75")), zone + 2, zone + 4),
        Express("REG", _ceil(regular), zone + 1, zone + 2),
        Express("ONS", _ceil(regular * Decimal("1.6")), 1, 1 if zone < 3 else 2),
    ]


def build_insurance_fee(value: Decimal) -> Decimal:
    return max(Decimal(500), _ceil_to(value * Decimal("0.002"), 1))


def build_cash_on_delivery_fee(amount: Decimal) -> Decimal:
    return max(Decimal(2_500), _ceil_to(amount * Decimal("0.03"), 1))


def collects_cash(service: str) -> bool:
    """The fastest express service collects nothing on delivery."""
    return service != "ONS"


def _build_straight(origin: SandboxPoint, destination: SandboxPoint) -> float:
    lat1, lng1, lat2, lng2 = map(radians, (*origin, *destination))
    half = sin((lat2 - lat1) / 2) ** 2 + cos(lat1) * cos(lat2) * sin((lng2 - lng1) / 2) ** 2
    return 2 * _EARTH_KM * asin(sqrt(min(1.0, half)))


def _ceil(price: Decimal) -> Decimal:
    return _ceil_to(price, 500)


def _ceil_to(price: Decimal, step: int) -> Decimal:
    return (price / step).to_integral_value(rounding=ROUND_CEILING) * step
