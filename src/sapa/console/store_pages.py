"""Store locations: where parcels are picked up."""

from typing import Any

from starlette.responses import Response

from sapa.console.areas import CHOSEN, list_choices
from sapa.console.fields import gather, spread
from sapa.console.routes import (
    DEVELOPERS,
    EVERYBODY,
    PageRequest,
    console,
    go_to,
)

TEXTS = ("name", "contactName", "phone", "email", "address", "notes", "city", "province", "zip")
NUMBERS = ("kecamatanId", "kelurahanId", "coordinates.lat", "coordinates.lng")
FIELDS = (*TEXTS, *CHOSEN, "coordinates.lat", "coordinates.lng", "isDefault")
KEPT = {"kecamatanId": "kecamatan", "kelurahanId": "kelurahan"}
"""Ids with the field that says the same in words."""


@console.get("/{environment}/stores", roles=EVERYBODY)
async def list_stores(visit: PageRequest) -> Response:
    page = visit.request.query_params.get("page", "")
    found = await visit.ask("GET", "/shipping/store-locations", {"page": page, "limit": "25"})
    return visit.show("stores.html", items=found["data"], meta=found["meta"], query={})


@console.get("/{environment}/stores/new", roles=DEVELOPERS)
async def show_new_store(visit: PageRequest) -> Response:
    values = {name: visit.given(name) for name in FIELDS}
    return await _show_form(visit, None, values)


@console.post("/{environment}/stores/new", roles=DEVELOPERS)
async def choose_area_of_new(visit: PageRequest) -> Response:
    """The form again, with the lists of what was chosen."""
    return await show_new_store(visit)


@console.post("/{environment}/stores", roles=DEVELOPERS, shown_by=show_new_store)
async def create_store(visit: PageRequest) -> Response:
    body = await _build_body(visit)
    if not body["isDefault"]:
        del body["isDefault"]  # the first one is the default by itself
    await visit.ask("POST", "/shipping/store-locations", body=body, noted=("store.created", visit.given("name")))
    return go_to(visit.path("/stores"))


@console.get("/{environment}/stores/{id}", roles=DEVELOPERS)
async def show_store(visit: PageRequest) -> Response:
    store = (await visit.ask("GET", f"/shipping/store-locations/{visit.request.path_params['id']}"))["data"]
    values = {name: visit.given(name) for name in FIELDS} if visit.form else spread(store, FIELDS)
    if not visit.form:
        values["isDefault"] = "1" if store["isDefault"] else ""
    return await _show_form(visit, store, values)


@console.post("/{environment}/stores/{id}/areas", roles=DEVELOPERS)
async def choose_area(visit: PageRequest) -> Response:
    """The form again, with the lists of what was chosen."""
    return await show_store(visit)


@console.post("/{environment}/stores/{id}", roles=DEVELOPERS, shown_by=show_store)
async def change_store(visit: PageRequest) -> Response:
    path = f"/shipping/store-locations/{visit.request.path_params['id']}"
    await visit.ask("PUT", path, body=await _build_body(visit), noted=("store.changed", visit.given("name")))
    return go_to(visit.path("/stores"))


@console.post("/{environment}/stores/{id}/delete", roles=DEVELOPERS)
async def delete_store(visit: PageRequest) -> Response:
    path = f"/shipping/store-locations/{visit.request.path_params['id']}"
    store = (await visit.ask("GET", path))["data"]
    await visit.ask("DELETE", path, noted=("store.deleted", store["name"]))
    return go_to(visit.path("/stores"))


async def _show_form(visit: PageRequest, store: dict[str, Any] | None, values: dict[str, str]) -> Response:
    lists = await list_choices(visit, "", values)
    for field, words in KEPT.items():
        if store is not None and values[field] == str(store[field]):
            lists["names"][field] = lists["names"][field] or store[words]
    return visit.show("store.html", store=store, values=values, lists=lists)


async def _build_body(visit: PageRequest) -> dict[str, Any]:
    """A place that was chosen is told by its name, too; one that stayed as it was keeps the name it has."""
    body = gather(visit, TEXTS, NUMBERS) | {"isDefault": bool(visit.given("isDefault"))}
    for required in ("name", "address"):
        body[required] = body[required] or ""
    lists = await list_choices(visit, "", {field: visit.given(field) for field in CHOSEN})
    chosen = {words: name for field, words in KEPT.items() if (name := lists["names"][field])}
    return body | chosen
