"""The sandbox's prices: stable, and never lower for more."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.sandbox import prices
from sapa.sandbox.areas import SandboxPoint

points = st.builds(SandboxPoint, st.floats(-11.5, 6.5), st.floats(94.5, 141.5))
kilometres = st.decimals(0, 2_000, places=1)
kilograms = st.decimals("0.001", 100, places=3)
centimetres = st.decimals(1, 300, places=1)
area_ids = st.integers(1, 9_999_999_999)


def test_a_real_route_has_a_realistic_distance() -> None:
    """Monas to Senayan: 5.9 km in a straight line."""
    assert prices.build_distance(SandboxPoint(-6.1754, 106.8272), SandboxPoint(-6.2253, 106.8097)) == Decimal("7.7")


@given(points, points)
def test_a_way_is_as_long_in_both_directions(one: SandboxPoint, other: SandboxPoint) -> None:
    there, back = prices.build_distance(one, other), prices.build_distance(other, one)
    assert abs(there - back) <= Decimal("0.1")
    assert there >= 0
    assert there == there.quantize(Decimal("0.1"))


@given(area_ids, area_ids)
def test_unknown_areas_have_a_fixed_distance(one: int, other: int) -> None:
    km = prices.build_area_distance(one, other)
    assert km == prices.build_area_distance(str(other), str(one))
    assert 0 <= km <= 5_000


@pytest.mark.parametrize(
    ("weight", "charged"), [("0.001", 1), ("1", 1), ("1.3", 1), ("1.301", 2), ("2.3", 2), ("2.31", 3), ("10", 10)]
)
def test_up_to_300_grams_above_a_kilogram_are_free(weight: str, charged: int) -> None:
    assert prices.build_chargeable_kg(Decimal(weight)) == charged


@given(kilograms, centimetres, centimetres, centimetres)
def test_the_larger_of_weight_and_volume_is_charged(w: Decimal, a: Decimal, b: Decimal, c: Decimal) -> None:
    charged = prices.build_chargeable_kg(w, a, b, c)
    assert charged == max(prices.build_chargeable_kg(w), prices.build_chargeable_kg(a * b * c / 6000))


@given(kilometres, kilometres, kilograms)
def test_a_longer_way_never_costs_less(one: Decimal, other: Decimal, kg: Decimal) -> None:
    near, far = sorted((one, other))
    for cheap, dear in (
        (prices.find_instant_price("bike", near, kg), prices.find_instant_price("bike", far, kg)),
        (prices.find_instant_price("car", near, kg), prices.find_instant_price("car", far, kg)),
        (prices.find_same_day_price(near, kg), prices.find_same_day_price(far, kg)),
        (prices.find_electric_price(near, kg), prices.find_electric_price(far, kg)),
    ):
        assert dear is None or (cheap is not None and cheap <= dear)
        assert dear is None or dear % 500 == 0


@given(kilometres, st.integers(1, 100))
def test_express_costs_by_zone_and_kilogram(km: Decimal, kg: int) -> None:
    eco, regular, next_day = prices.list_express_prices(km, kg)
    assert regular.price == (8_000 + 4_500 * prices.build_zone(km)) * kg
    assert eco.price < regular.price < next_day.price
    assert eco.max_days >= regular.max_days >= next_day.max_days
    assert all(service.min_days <= service.max_days for service in (eco, regular, next_day))


@pytest.mark.parametrize(
    ("km", "kg", "price"),
    [("0.5", "1", 12_000), ("9.8", "1", 33_500), ("40", "20", 109_000), ("40.1", "1", None), ("5", "20.1", None)],
)
def test_a_bike_goes_so_far_with_so_much(km: str, kg: str, price: int | None) -> None:
    assert prices.find_instant_price("bike", Decimal(km), Decimal(kg)) == price


def test_fees_have_a_least() -> None:
    assert prices.build_insurance_fee(Decimal(1_000)) == 500
    assert prices.build_insurance_fee(Decimal(2_000_000)) == 4_000
    assert prices.build_cash_on_delivery_fee(Decimal(10_000)) == 2_500
    assert prices.build_cash_on_delivery_fee(Decimal(1_000_000)) == 30_000
