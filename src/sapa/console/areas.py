"""Choosing a place, from the province down to the sub-district: each list is of what was chosen above it."""

from typing import Any

from sapa.console.routes import PageRequest
from sapa.http.errors import ApiError

CHAIN = (
    ("provinces", "provinceId", ""),
    ("cities", "cityId", "provinceId"),
    ("districts", "kecamatanId", "cityId"),
    ("sub-districts", "kelurahanId", "districtId"),
)
"""The lists, the field that is chosen from each, and what the API calls the place that it lies in."""
CHOSEN = tuple(field for _, field, _ in CHAIN)


async def list_choices(page: PageRequest, prefix: str, values: dict[str, str]) -> dict[str, Any]:
    """The lists as far as they can be told; what was chosen and is in none of them is taken out of the values."""
    lists: dict[str, Any] = {level: [] for level, _, _ in CHAIN} | {"names": {}}
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
    lists["names"] = {prefix + field: find_name(lists, level, values[prefix + field]) for level, field, _ in CHAIN}
    return lists


def find_name(lists: dict[str, Any], level: str, id: str) -> str | None:
    return next((str(area["name"]) for area in lists[level] if str(area["id"]) == id), None)


async def _list(page: PageRequest, level: str, query: dict[str, str]) -> list[dict[str, Any]]:
    """Empty where nobody can tell: the page says so, and goes on without."""
    try:
        found: list[dict[str, Any]] = (await page.call("GET", f"/shipping/coverage/{level}", query))["data"]
    except ApiError:
        return []
    return found
