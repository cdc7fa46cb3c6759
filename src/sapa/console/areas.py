"""Choosing an area, from the province down to the sub-district: each list depends on the choice above it."""

from typing import Any

from sapa.console.routes import PageRequest
from sapa.http.errors import ApiError

CHAIN = (
    ("provinces", "provinceId", ""),
    ("cities", "cityId", "provinceId"),
    ("districts", "kecamatanId", "cityId"),
    ("sub-districts", "kelurahanId", "districtId"),
)
"""Each level with its form field and the API's name for its parent."""
CHOSEN = tuple(field for _, field, _ in CHAIN)


async def list_choices(page: PageRequest, prefix: str, values: dict[str, str]) -> dict[str, Any]:
    """The lists that the choices allow; a chosen id that is in none of them is removed from the values."""
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
    """Empty if the carrier cannot be asked: the page says so and continues without."""
    try:
        found: list[dict[str, Any]] = (await page.call("GET", f"/shipping/coverage/{level}", query))["data"]
    except ApiError:
        return []
    return found
