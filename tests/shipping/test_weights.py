"""Volumetric and chargeable weight."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.shipping.weights import build_chargeable_kg, build_volumetric_kg


@pytest.mark.parametrize(
    ("sides", "courier", "kilograms"),
    [
        ((40, 30, 20), "jne", "4"),
        ((40, 30, 20), "", "4"),
        ((40, 30, 20), "J&T Cargo", "4.8"),
        ((40, 30, 20), "Sentral Cargo", "6"),
        ((10, 10, 10), "sicepat", "0.167"),
    ],
)
def test_a_volume_is_divided_by_the_couriers_divisor(sides: tuple[int, int, int], courier: str, kilograms: str) -> None:
    length, width, height = map(Decimal, sides)
    assert build_volumetric_kg(length, width, height, courier) == Decimal(kilograms)


def test_a_missing_dimension_gives_no_volumetric_weight() -> None:
    assert build_volumetric_kg(Decimal(10), None, Decimal(10)) is None


@pytest.mark.parametrize(
    ("weight", "volumetric", "charged"),
    [
        ("0.2", None, 1),
        ("1.30", None, 1),
        ("1.31", None, 2),
        ("1.5", "3.2", 3),
        ("1.5", "3.4", 4),
        ("5", "3.2", 5),
    ],
)
def test_the_larger_weight_is_charged_in_whole_kilograms(weight: str, volumetric: str | None, charged: int) -> None:
    assert build_chargeable_kg(Decimal(weight), Decimal(volumetric) if volumetric else None) == charged


@given(st.decimals("0.001", "1000", places=3), st.none() | st.decimals("0.001", "1000", places=3))
def test_nobody_pays_for_more_than_seven_tenths_too_much(weight: Decimal, volumetric: Decimal | None) -> None:
    charged = build_chargeable_kg(weight, volumetric)
    larger = max(weight, volumetric or weight)
    assert charged == 1 or -Decimal("0.3") <= charged - larger < Decimal("0.7")
    assert charged >= 1
