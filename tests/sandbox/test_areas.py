"""The sandbox's areas: complete, and numbered like the country's own."""

import pytest

from sapa.sandbox import areas
from sapa.sandbox.areas import (
    CITIES,
    DISTRICTS,
    PICKUP_CITIES,
    PROVINCES,
    SUB_DISTRICTS,
)

ALL = [place for level in (PROVINCES, CITIES, DISTRICTS, SUB_DISTRICTS) for place in areas.list_areas(level)]


def test_there_are_enough_of_each() -> None:
    counts = [len(areas.list_areas(level)) for level in (PROVINCES, CITIES, DISTRICTS, SUB_DISTRICTS)]
    assert all(found >= wanted for found, wanted in zip(counts, (5, 12, 30, 60), strict=True))
    assert len({place.id for place in ALL}) == len(ALL)


@pytest.mark.parametrize("place", ALL, ids=lambda place: place.name)
def test_every_place_lies_in_its_parent_and_has_places_down_to_the_last_level(place: areas.SandboxArea) -> None:
    digits = {PROVINCES: 2, CITIES: 4, DISTRICTS: 6, SUB_DISTRICTS: 10}
    assert len(str(place.id)) == digits[place.level]
    assert place.parent_id is None or str(place.id).startswith(str(place.parent_id))
    assert (place.parent_id is None) == (place.level == PROVINCES)
    if place.level < SUB_DISTRICTS:
        assert areas.list_areas(place.level + 1, place.id)
    else:
        assert place.zip
        assert len(place.zip) == 5
    centre = areas.find_centre(place.id)
    assert centre
    assert -11.5 <= centre.lat <= 6.5
    assert 94.5 <= centre.lng <= 141.5


def test_what_is_no_place_is_not_found() -> None:
    for id in (None, 0, 99, 999999, "x", "٣١", "", "31.71", -31):
        assert areas.find_area(id) is None
        assert areas.find_centre(id) is None
    assert areas.list_areas(CITIES, "nowhere") == []


def test_cities_are_found_by_name_and_parcels_fetched_in_some() -> None:
    assert {place.id for place in areas.list_pickup_cities()} == PICKUP_CITIES
    assert areas.find_city("JAKARTA  selatan") == areas.find_city("Kota Jakarta Selatan") == areas.find_area(3174)
    assert areas.find_city("Atlantis") is None
