"""The areas that the sandbox's carriers serve: a few well-known ones, written by hand.

Ids look like the Indonesian ministry's codes without dots (2, 4, 6 and 10 digits, each starting with its parent's), but
are valid in the sandbox only. Every area has children down to the last level.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from msgspec import Struct

from sapa.sandbox.area_names import PLACES
from sapa.shipping.carriers.interface import AreaPath
from sapa.values.text_folding import fold

PROVINCES, CITIES, DISTRICTS, SUB_DISTRICTS = 1, 2, 3, 4
"""The levels, from the widest to the narrowest."""

_LEVELS = {2: PROVINCES, 4: CITIES, 6: DISTRICTS, 10: SUB_DISTRICTS}

PICKUP_CITIES = frozenset({3171, 3172, 3173, 3174, 3175, 3273, 3275, 3578, 3671, 3674, 5171})
"""The cities in which the sandbox's electric couriers pick up parcels."""


class SandboxPoint(NamedTuple):
    lat: float
    lng: float


class SandboxArea(Struct, frozen=True):
    id: int
    name: str
    level: int
    parent_id: int | None
    zip: str | None
    """Of sub-districts; a district has its first sub-district's."""
    centre: SandboxPoint | None
    """Of districts and sub-districts."""


def _read_areas() -> Iterator[SandboxArea]:
    for (province_id, province), cities in PLACES.items():
        yield SandboxArea(province_id, province, PROVINCES, None, None, None)
        for (city_id, city), districts in cities.items():
            yield SandboxArea(city_id, city, CITIES, province_id, None, None)
            for (district_id, district, lat, lng), villages in districts.items():
                centre = SandboxPoint(lat, lng)
                yield SandboxArea(district_id, district, DISTRICTS, city_id, villages[0][1], centre)
                for number, (village, zip) in enumerate(villages, 1):
                    village_id = district_id * 10_000 + 1_000 + number
                    yield SandboxArea(village_id, village, SUB_DISTRICTS, district_id, zip, centre)


_BY_ID = {area.id: area for area in _read_areas()}


def find_area(id: int | str | None) -> SandboxArea | None:
    """By id, as a number or text."""
    text = str(id)
    return _BY_ID.get(int(text)) if text.isascii() and text.isdigit() and len(text) in _LEVELS else None


def list_areas(level: int, parent_id: int | str | None = None, search: str | None = None) -> Sequence[SandboxArea]:
    """The areas of a level by name; of all parents without `parent_id`."""
    parent = find_area(parent_id) if parent_id is not None else None
    if parent_id is not None and parent is None:
        return []
    folded = fold(search or "")
    found = (
        area
        for area in _BY_ID.values()
        if area.level == level and (parent is None or area.parent_id == parent.id) and folded in fold(area.name)
    )
    return sorted(found, key=lambda area: (area.name, area.id))


@cache
def list_paths() -> Sequence[AreaPath]:
    """Every sub-district with the areas that it is in."""
    paths = []
    for area in list_areas(SUB_DISTRICTS):
        district = _BY_ID[area.parent_id or 0]
        city = _BY_ID[district.parent_id or 0]
        province = _BY_ID[city.parent_id or 0]
        names = (area.name, district.name, city.name, province.name)
        paths.append(AreaPath(province.id, city.id, district.id, area.id, names, area.zip))
    return paths


def list_pickup_cities(search: str | None = None) -> Sequence[SandboxArea]:
    return [area for area in list_areas(CITIES, None, search) if area.id in PICKUP_CITIES]


def find_city(name: str) -> SandboxArea | None:
    """By full name ignoring case; `Kota` and `Kabupaten` are optional."""
    wanted = _bare(name)
    return next((area for area in _BY_ID.values() if area.level == CITIES and _bare(area.name) == wanted), None)


def find_centre(id: int | str | None) -> SandboxPoint | None:
    """Of a district or sub-district; for a city or province, that of its first district."""
    area = find_area(id)
    if area is None or area.centre is not None:
        return area.centre if area else None
    return next(
        (child.centre for child in _BY_ID.values() if child.centre and str(child.id).startswith(str(area.id))), None
    )


def find_by_zip(zip: str) -> SandboxArea | None:
    """The first sub-district with this postal code."""
    return next((area for area in _BY_ID.values() if area.level == SUB_DISTRICTS and area.zip == zip), None)


def _bare(city: str) -> str:
    return fold(city).removeprefix("kota ").removeprefix("kabupaten ").strip()
