"""Volumetric and chargeable weight. Pure.

A light parcel is charged by its volume: length × width × height in cubic centimetres, divided by the courier's divisor.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache

DIVISOR = 6_000
"""Of most couriers, for kilograms."""
DIVISORS = {"jntcargo": 5_000, "jtcargo": 5_000, "sentral": 4_000, "sentralcargo": 4_000}
"""Couriers with another one."""
TOLERANCE = Decimal("0.3")
"""The part of a kilogram that is not charged."""
_GRAM = Decimal("0.001")


def build_volumetric_kg(
    length: Decimal | None, width: Decimal | None, height: Decimal | None, courier: str = ""
) -> Decimal | None:
    """To the gram, rounded up; None if a dimension is missing."""
    if length is None or width is None or height is None:
        return None
    kilograms = length * width * height / get_divisor(courier)
    return kilograms.quantize(_GRAM, rounding=ROUND_CEILING).normalize()


def build_chargeable_kg(weight: Decimal, volumetric: Decimal | None) -> Decimal:
    """The larger of both in whole kilograms, at least 1: a part of up to 0.3 kg is dropped."""
    larger = max(weight, volumetric or weight)
    whole = larger.to_integral_value(rounding=ROUND_FLOOR)
    return max(Decimal(1), whole + (1 if larger - whole > TOLERANCE else 0))


@lru_cache(maxsize=1_000)
def get_divisor(courier: str) -> int:
    return DIVISORS.get("".join(char for char in courier.lower() if char.isalnum()), DIVISOR)
