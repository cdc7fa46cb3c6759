"""Store locations: where parcels are picked up."""

from typing import Any

from starlette.responses import Response

from sapa.console.areas import FIELDS as AREA_FIELDS
from sapa.console.areas import check_choice, list_choices
from sapa.console.fields import gather, spread
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS, EVERYBODY
from sapa.console.routes import console, go_to

TEXTS = ("name", "contactName", "phone", "email", "address", "notes", "city", "province", "zip")
NUMBERS = ("kecamatanId", "kelurahanId", "coordinates.lat", "coordinates.lng")
FIELDS = (*TEXTS, *AREA_FIELDS, "coordinates.lat", "coordinates.lng", "isDefault")
KEPT = {"kecamatanId": "kecamatan", "kelurahanId": "kelurahan"}
"""Area ids, each with the field of its name."""


@console.get("/{environment}/stores", roles=EVERYBODY)
async def list_stores(page: PageRequest) -> Response:
    listed = page.request.query_params.get("page", "")
    found = await page.call("GET", "/shipping/store-locations", {"page": listed, "limit": "25"})
    return page.show("stores.html", items=found["data"], meta=found["meta"], query={})


@console.get("/{environment}/stores/new", roles=DEVELOPERS)
async def show_new_store(page: PageRequest) -> Response:
    values = {name: page.form_value(name) for name in FIELDS}
    return await _show_form(page, None, values)


@console.post("/{environment}/stores/new", roles=DEVELOPERS)
async def choose_area_of_new(page: PageRequest) -> Response:
    """Shows the form again, with the lists of the choices."""
    return await show_new_store(page)


@console.post("/{environment}/stores", roles=DEVELOPERS, shown_by=show_new_store, says="Store location added")
async def create_store(page: PageRequest) -> Response:
    body = await _gather_body(page)
    if not body["isDefault"]:
        del body["isDefault"]  # the first one becomes the default automatically
    await page.call("POST", "/shipping/store-locations", body=body, noted=("store.created", page.form_value("name")))
    return go_to(page.path("/stores"))


@console.get("/{environment}/stores/{id}", roles=DEVELOPERS)
async def show_store(page: PageRequest) -> Response:
    store = (await page.call("GET", f"/shipping/store-locations/{page.request.path_params['id']}"))["data"]
    values = {name: page.form_value(name) for name in FIELDS} if page.form else spread(store, FIELDS)
    if not page.form:
        values["isDefault"] = "1" if store["isDefault"] else ""
    return await _show_form(page, store, values)


@console.post("/{environment}/stores/{id}/areas", roles=DEVELOPERS)
async def choose_area(page: PageRequest) -> Response:
    """Shows the form again, with the lists of the choices."""
    return await show_store(page)


@console.post("/{environment}/stores/{id}", roles=DEVELOPERS, shown_by=show_store, says="Saved")
async def change_store(page: PageRequest) -> Response:
    path = f"/shipping/store-locations/{page.request.path_params['id']}"
    await page.call("PUT", path, body=await _gather_body(page), noted=("store.changed", page.form_value("name")))
    return go_to(page.path("/stores"))


@console.post("/{environment}/stores/{id}/delete", roles=DEVELOPERS, says="Store location deleted")
async def delete_store(page: PageRequest) -> Response:
    path = f"/shipping/store-locations/{page.request.path_params['id']}"
    store = (await page.call("GET", path))["data"]
    await page.call("DELETE", path, noted=("store.deleted", store["name"]))
    return go_to(page.path("/stores"))


async def _show_form(page: PageRequest, store: dict[str, Any] | None, values: dict[str, str]) -> Response:
    lists = await list_choices(page, "", values)
    for field, words in KEPT.items():
        if store is not None and values[field] == str(store[field]):
            lists["names"][field] = lists["names"][field] or store[words]
    return page.show("store.html", store=store, values=values, lists=lists)


async def _gather_body(page: PageRequest) -> dict[str, Any]:
    """Adds the names of chosen areas; unchanged ones keep theirs."""
    values = {name: page.form_value(name) for name in (*AREA_FIELDS, "city", "province", "zip")}
    lists = await list_choices(page, "", values)
    check_choice("", values)
    body = gather(page, TEXTS, NUMBERS, values) | {"isDefault": bool(page.form_value("isDefault"))}
    for required in ("name", "address"):
        body[required] = body[required] or ""
    chosen = {words: name for field, words in KEPT.items() if (name := lists["names"][field])}
    return body | chosen
