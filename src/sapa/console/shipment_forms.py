"""New shipment: for an order, from a store, with a service chosen by price."""

from typing import Any

from starlette.responses import Response

from sapa.console.areas import FIELDS as AREA_FIELDS
from sapa.console.areas import check_choice, list_choices, take_found
from sapa.console.fields import gather, spread
from sapa.console.page_request import PageRequest
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console, go_to
from sapa.http.errors import ApiError, FieldError, Invalid, NotFound
from sapa.shipping.providers import PROVIDERS

PARTY = ("name", "phone", "email", "address", "city", "province", "zip", "notes")
RECEIVER = tuple(f"delivery.{name}" for name in PARTY)
MEASURES = tuple(f"package.{name}" for name in ("weight", "length", "width", "height"))
TEXTS = ("orderId", "provider", "storeLocationId", "pickupCity", "package.itemName", *RECEIVER)
NUMBERS = (
    "delivery.kecamatanId", "delivery.kelurahanId", "delivery.coordinates.lat", "delivery.coordinates.lng",
)  # fmt: skip
COUNTS = ("package.itemQty",)
AMOUNTS = ("codAmount", "package.itemValue")
AREA = tuple(f"delivery.{name}" for name in AREA_FIELDS)
FIELDS = (*TEXTS, *NUMBERS, *MEASURES, *COUNTS, *AMOUNTS, *AREA, "service", "serviceName", "fee", "insurance")
MAX_STORES = "100"
SERVICE = (
    "serviceCode", "serviceName", "serviceType", "insuranceFee", "codFee", "estimate", "distance", "vehicleType",
)  # fmt: skip
PLACE = ("city", "zip", "kecamatanId", "kelurahanId", "coordinates")
KNOWN_AS = {
    "destination.districtId": "delivery.kecamatanId",
    "destination.subDistrictId": "delivery.kelurahanId",
    "destination.coordinates": "delivery.coordinates.lat",
    "options.pickupCity": "pickupCity",
    "options.codAmount": "codAmount",
}
"""Fields of a quote, by their names in this form."""


@console.get("/{environment}/shipments/new", roles=EVERYBODY)
async def show_new_shipment(page: PageRequest) -> Response:
    values = {name: page.form_value(name) for name in FIELDS} if page.form else await _prefill(page)
    found = await page.call("GET", "/shipping/store-locations", {"limit": MAX_STORES})
    providers = (await page.call("GET", "/shipping/providers"))["data"]
    values["storeLocationId"] = values["storeLocationId"] or _choose_store(found["data"])
    values["provider"] = values["provider"] or _choose_provider(providers)
    lists = await list_choices(page, "delivery.", values)
    return page.show(
        "shipment_new.html",
        values=values,
        stores=found["data"],
        providers=providers,
        has_prices=_has_prices(providers, values["provider"]),
        lists=lists,
        has_pickup_cities=_has_pickup_cities(values["provider"]),
        cities=await _list_pickup_cities(page, values["provider"]),
        quote=await _find_quote(page),
    )


@console.post("/{environment}/shipments/new", roles=EVERYBODY)
async def go_on(page: PageRequest) -> Response:
    """Shows the form again, with the areas or the prices of the choices."""
    return await show_new_shipment(page)


@console.post("/{environment}/shipments", roles=EVERYBODY, shown_by=show_new_shipment, says="Shipment created")
async def create_shipment(page: PageRequest) -> Response:
    body = _gather_body(page)
    body |= {"insurance": bool(page.form_value("insurance"))} | await _choose_service(page)
    if body["delivery"] is not None:
        body["delivery"] |= await _name_area(page)
    if body["storeLocationId"] is None:
        del body["storeLocationId"]
    shipment = (await page.call("POST", "/shipping/shipments", body=body))["data"]
    return go_to(page.path(f"/shipments/{shipment['id']}"))


def _gather_body(page: PageRequest) -> dict[str, Any]:
    """A result of the area search that was chosen counts like the ids."""
    values = {name: page.form_value(name) for name in AREA} | {name: page.form_value(name) for name in RECEIVER}
    take_found(page, "delivery.", values)
    check_choice("delivery.", values)
    return gather(page, TEXTS, NUMBERS, values, AMOUNTS, MEASURES, COUNTS)


async def _prefill(page: PageRequest) -> dict[str, str]:
    """Prefills the receiver and the package from the order."""
    id = page.request.query_params.get("orderId", "")
    values = dict.fromkeys(FIELDS, "") | {"package.itemQty": "1"}
    if not id or "/" in id:
        return values
    order = (await page.call("GET", f"/orders/{id}"))["data"]
    values |= {"orderId": order["id"]} | spread({"delivery": _build_receiver(order)}, RECEIVER)
    lines = order["lineItems"]
    titles = ", ".join(line["title"] for line in lines)
    values |= {"package.itemName": titles[:200], "package.itemValue": page.formats.number(order["total"])}
    return values | {"package.itemQty": str(sum(line["quantity"] for line in lines))}


def _build_receiver(order: dict[str, Any]) -> dict[str, Any]:
    customer, to = order["customer"] or {}, order["shippingAddress"] or {}
    named = to if to.get("firstName") or to.get("lastName") else customer
    lines = [line for line in (to.get("address1"), to.get("address2")) if line]
    return {
        "name": " ".join(name for name in (named.get("firstName"), named.get("lastName")) if name),
        "phone": to.get("phone") or customer.get("phoneNumber"),
        "email": customer.get("email"),
        "address": ", ".join(lines),
        "city": to.get("city"),
        "province": to.get("province"),
        "zip": to.get("zip"),
    }


def _choose_store(stores: list[dict[str, Any]]) -> str:
    return next((str(store["id"]) for store in stores if store["isDefault"]), "")


def _choose_provider(providers: list[dict[str, Any]]) -> str:
    """The first usable one, preferring those with prices."""
    usable = [entry for entry in providers if entry["connected"]]
    return str(max(usable, key=lambda entry: bool(entry["capabilities"]["quote"]))["provider"])


def _has_prices(providers: list[dict[str, Any]], chosen: str) -> bool:
    return any(entry["provider"] == chosen and entry["capabilities"]["quote"] for entry in providers)


def _has_pickup_cities(provider: str) -> bool:
    return provider in PROVIDERS and PROVIDERS[provider].has_pickup_cities


async def _list_pickup_cities(page: PageRequest, provider: str) -> list[dict[str, Any]]:
    if not _has_pickup_cities(provider):
        return []
    try:
        found: list[dict[str, Any]] = (await page.call("GET", "/shipping/coverage/cities", {"provider": provider}))[
            "data"
        ]
    except ApiError:
        return []
    return found


async def _find_quote(page: PageRequest) -> dict[str, Any] | None:
    """The prices, if they were requested; errors are shown at their fields."""
    if page.form_value("step") != "prices" and not page.form_value("service"):
        return None
    try:
        return await _ask_prices(page)
    except ApiError as error:
        page.error = page.error or error
        return None


async def _ask_prices(page: PageRequest) -> dict[str, Any]:
    form = _gather_body(page)
    body = {
        "provider": form["provider"],
        "origin": await _read_origin(page),
        "destination": {name: form["delivery"].get(name) for name in PLACE} if form["delivery"] else {},
        "package": form["package"] or {},
        "options": {
            "pickupCity": form["pickupCity"],
            "insurance": bool(page.form_value("insurance")),
            "codAmount": form["codAmount"],
        },
    }
    try:
        quote: dict[str, Any] = (await page.call("POST", "/shipping/calculate-fee", body=body))["data"]
    except Invalid as error:
        raise _rename(error) from None
    return quote


async def _read_origin(page: PageRequest) -> dict[str, Any]:
    id = page.form_value("storeLocationId")
    try:
        store = (await page.call("GET", f"/shipping/store-locations/{id}"))["data"] if id and "/" not in id else None
    except NotFound:
        store = None
    if store is None:
        raise Invalid.field("storeLocationId", "choose the store that it is picked up from")
    return {name: store[name] for name in PLACE}


def _rename(error: Invalid) -> Invalid:
    details = [
        FieldError(
            "storeLocationId" if one.field.startswith("origin") else KNOWN_AS.get(one.field, one.field), one.message
        )
        for one in error.details or []
    ]
    return Invalid(error.message, details=details)


async def _choose_service(page: PageRequest) -> dict[str, Any]:
    """The service at its present price; typed by hand if the provider has no prices."""
    providers = (await page.call("GET", "/shipping/providers"))["data"]
    if not _has_prices(providers, page.form_value("provider")):
        return gather(page, ["serviceName"], amounts=["fee"])
    options = (await _ask_prices(page))["options"]
    chosen = next((option for option in options if option["serviceCode"] == page.form_value("service")), None)
    if chosen is None:
        raise Invalid.field("service", "choose a service: show the prices first")
    return {name: chosen[name] for name in SERVICE} | {"fee": chosen["price"], "currency": chosen["currency"]}


async def _name_area(page: PageRequest) -> dict[str, str]:
    chosen = {name: page.form_value(name) for name in (*AREA, *RECEIVER)}
    names = (await list_choices(page, "delivery.", chosen))["names"]
    area_names = {"kecamatan": names["delivery.kecamatanId"], "kelurahan": names["delivery.kelurahanId"]}
    return {field: name for field, name in area_names.items() if name}
