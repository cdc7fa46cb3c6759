"""Choosing an area: one search over all levels, or lists from the province down to the sub-district if the installation
has no areas to search."""

import re
from collections.abc import Sequence
from typing import Any

from starlette.responses import JSONResponse, Response

from sapa.access import actions as access
from sapa.console.page_request import PageRequest
from sapa.console.rendering import HEADERS
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console
from sapa.http.errors import ApiError, Invalid
from sapa.shipping.areas import actions as areas

CHAIN = (
    ("provinces", "provinceId", ""),
    ("cities", "cityId", "provinceId"),
    ("districts", "kecamatanId", "cityId"),
    ("sub-districts", "kelurahanId", "districtId"),
)
"""Each level with its form field and the API's name for its parent."""
CHOSEN = tuple(field for _, field, _ in CHAIN)
SEARCH, LABEL, FOUND = "areaSearch", "areaLabel", "area"
"""Fields of the search: the words, the label of the chosen area, and the choice among the results."""
FIELDS = (*CHOSEN, SEARCH, LABEL)
MOST = 8
LONGEST_ID = 18
"""Digits; the API refuses larger numbers."""
_IDS = ("provinceId", "cityId", "districtId", "subDistrictId")


@console.get("/{environment}/areas", roles=EVERYBODY)
async def suggest_areas(page: PageRequest) -> Response:
    """For the script of the search field."""
    found = await _search(page, page.request.query_params.get("q", ""))
    return JSONResponse([{"value": build_value(area), "label": area["label"]} for area in found], headers=HEADERS)


async def list_choices(page: PageRequest, prefix: str, values: dict[str, str]) -> dict[str, Any]:
    """What the form offers. A result that was chosen becomes the values of the four levels."""
    take_found(page, prefix, values)
    district, sub_district = (values.get(prefix + field, "") for field in ("kecamatanId", "kelurahanId"))
    async with page.context.database.connection() as db:
        company = await access.get_company(db, page.company_id)
        is_searchable = await areas.is_searchable(db, company)
        stored: Sequence[str | None] = []
        if is_searchable and not values.get(prefix + LABEL) and _is_id(district):
            sub_district_id = int(sub_district) if _is_id(sub_district) else None
            stored = await areas.list_names(db, company, int(district), sub_district_id)
    lists = {level: [] for level, _, _ in CHAIN} if is_searchable else await _list_chain(page, prefix, values)
    words = values.get(prefix + SEARCH, "") if is_searchable and page.form_value("step") == "areas" else ""
    found = await _search(page, words) if words else []
    results = [{"value": build_value(area), "label": area["label"]} for area in found]
    names = {prefix + field: find_name(lists, level, values[prefix + field]) for level, field, _ in CHAIN}
    if parts := split_label(values.get(prefix + LABEL, "")):
        names |= {prefix + "kelurahanId": parts[0], prefix + "kecamatanId": parts[1]}
    elif stored:
        names |= {prefix + "kelurahanId": stored[0], prefix + "kecamatanId": stored[1]}
    return lists | {"names": names, "is_searchable": is_searchable, "results": results, "searched": words}


def check_choice(prefix: str, values: dict[str, str]) -> None:
    """An area that was begun is chosen down to its district, and lies in the city of the address."""
    began = any(values[prefix + name] for name in ("provinceId", "cityId")) or values.get(prefix + SEARCH)
    if began and not values[prefix + "kecamatanId"]:
        raise Invalid.field(prefix + "kecamatanId", "choose the district of this address")
    parts, city = split_label(values.get(prefix + LABEL, "")), values.get(prefix + "city", "")
    if parts and city and not _is_same_city(parts[2], city):
        raise Invalid.field(prefix + "city", "is not the city of the chosen district")


def _is_same_city(first: str, second: str) -> bool:
    """With or without the words for a city and a regency."""
    names = [re.sub(r"^(kota|kabupaten|kab\.?)\s+", "", name.strip().casefold()) for name in (first, second)]
    return names[0] == names[1]


def _is_id(value: str) -> bool:
    return value.isdecimal() and len(value) <= LONGEST_ID


def take_found(page: PageRequest, prefix: str, values: dict[str, str]) -> None:
    ids, _, label = page.form_value(prefix + FOUND).partition("|")
    chosen = ids.split("/")
    if len(chosen) != len(CHOSEN):
        return
    values |= {prefix + field: id for field, id in zip(CHOSEN, chosen, strict=True)}
    values[prefix + LABEL] = label
    for field, text in name_parts(label).items():
        values[prefix + field] = values.get(prefix + field) or text


def name_parts(label: str) -> dict[str, str]:
    """The address fields that an area's label fills."""
    parts = split_label(label)
    if not parts:
        return {}
    return {"city": parts[2], "province": parts[3], **({"zip": parts[4]} if len(parts) > 4 else {})}


def split_label(label: str) -> list[str]:
    """From the sub-district to the province, then the postal code; empty if it is not a label."""
    parts = label.split(", ")
    return parts if len(parts) >= len(CHOSEN) else []


def build_value(area: dict[str, Any]) -> str:
    return f"{'/'.join(str(area[name]) for name in _IDS)}|{area['label']}"


def find_name(lists: dict[str, Any], level: str, id: str) -> str | None:
    return next((str(area["name"]) for area in lists[level] if str(area["id"]) == id), None)


async def _search(page: PageRequest, words: str) -> list[dict[str, Any]]:
    """Empty if the carrier cannot be asked for its ids."""
    try:
        query = {"q": words, "limit": str(MOST)}
        found: list[dict[str, Any]] = (await page.call("GET", "/shipping/coverage/search", query))["data"]
    except ApiError:
        return []
    return found


async def _list_chain(page: PageRequest, prefix: str, values: dict[str, str]) -> dict[str, Any]:
    """The lists that the choices allow; a chosen id that is in none of them is removed from the values."""
    lists: dict[str, Any] = {level: [] for level, _, _ in CHAIN}
    above = ""
    for level, field, parent in CHAIN:
        if parent and not above:
            break
        lists[level] = await _list(page, level, {parent: above} if parent else {})
        if not lists[level]:
            break
        name = prefix + field
        if values[name] not in {str(area["id"]) for area in lists[level]}:
            values[name] = ""
        above = values[name]
    return lists


async def _list(page: PageRequest, level: str, query: dict[str, str]) -> list[dict[str, Any]]:
    """Empty if the carrier cannot be asked: the page says so and continues without."""
    try:
        found: list[dict[str, Any]] = (await page.call("GET", f"/shipping/coverage/{level}", query))["data"]
    except ApiError:
        return []
    return found
