"""Quotes over HTTP with a test key: the simulators' prices through the carriers' wire formats."""

from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.outbound.http_client import HttpClient
from sapa.sandbox import areas, prices
from sapa.settings import read_settings
from sapa.shipping.carriers.interface import (
    CarrierAccount,
    Parcel,
    Quote,
    ServiceRequest,
    ShipmentRequest,
    ShippingPoint,
)
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.quotes.actions import QuoteLookup, build_result
from sapa.values.company import Company
from tests.conftest import Installation, connect
from tests.factories import Environments, make_company, make_key
from tests.shipping.quotes.quote_steps import (
    DAGO,
    MENTENG,
    MONAS,
    SENAYAN,
    ask,
    field_of,
    list_options,
)

WITH_CARRIERS = ["aggregator_carrier", "instant_carrier", "ev_courier"]
FIELDS = {
    "serviceCode", "serviceName", "serviceType", "courier", "price", "currency", "estimate", "insuranceFee", "distance",
    "vehicleType", "packageHandover", "insuranceRequired", "cod", "codMinimum", "codMaximum", "codFee",
    "chargeableWeight",
}  # fmt: skip


@pytest.fixture(scope="module")
async def sandbox(installation: Installation, database: Database) -> AsyncIterator[httpx.AsyncClient]:
    key = await make_key(database, (await make_company(database)).test)
    async with connect(installation, key.raw) as client:
        yield client


@pytest.mark.parametrize("provider", WITH_CARRIERS)
async def test_every_provider_responds_in_the_same_shape(sandbox: httpx.AsyncClient, provider: str) -> None:
    response = await ask(sandbox, provider)
    assert response.status_code == 200, response.text
    body = response.json()
    assert set(body) == {"data", "options"}
    assert body["options"] == body["data"]["options"]
    assert set(body["data"]) == {"options", "messages", "volumetricWeight"}
    for option in body["options"]:
        assert set(option) == FIELDS
        assert option["currency"] == "IDR"
        assert option["price"] > 0
        assert option["serviceCode"]
        assert option["serviceName"]
    assert [option["price"] for option in body["options"]] == sorted(option["price"] for option in body["options"])


async def test_parcels_cost_what_distance_and_weight_make_them(sandbox: httpx.AsyncClient) -> None:
    options = await list_options(sandbox, package={"weight": 2.4, "length": 10, "width": 10, "height": 10})
    km = prices.build_area_distance(MENTENG["districtId"], DAGO["districtId"])
    expected = {float(express.price) for express in prices.list_express_prices(km, 3)}
    assert {option["price"] for option in options} == expected
    assert {option["serviceType"] for option in options} == {"EXPRESS"}
    heavier = await list_options(sandbox, package={"weight": 1, "length": 60, "width": 50, "height": 40})
    assert min(option["price"] for option in heavier) > min(option["price"] for option in options), "it is bulky"


async def test_a_cached_quote_is_the_same_as_the_first(sandbox: httpx.AsyncClient) -> None:
    """Also for another item: it has the same price, and its response is not cached."""
    package = {"weight": 1, "length": 61, "width": 50, "height": 40}
    first, second = [await ask(sandbox, package={**package, "itemName": name}) for name in ("Kopi Gayo", "Teh Solok")]
    assert first.json() == second.json()
    assert second.json()["data"]["volumetricWeight"] == 20.334
    assert {option["chargeableWeight"] for option in second.json()["options"]} == {21}


async def test_a_ride_costs_what_its_distance_makes_it(sandbox: httpx.AsyncClient) -> None:
    options = await list_options(sandbox, "instant_carrier", options={"serviceType": "INSTANT"})
    km = prices.build_distance(areas.SandboxPoint(-6.1754, 106.8272), areas.SandboxPoint(-6.2253, 106.8097))
    assert prices.find_instant_price("bike", km, Decimal(1)) in {Decimal(str(option["price"])) for option in options}
    assert {option["serviceType"] for option in options} == {"INSTANT"}


async def test_kecamatan_and_kelurahan_are_other_names_of_the_same(sandbox: httpx.AsyncClient) -> None:
    ours = await list_options(sandbox)
    theirs = await list_options(
        sandbox,
        origin={"kecamatanId": MENTENG["districtId"], "kelurahanId": MENTENG["subDistrictId"]},
        destination={"kecamatanId": DAGO["districtId"], "kelurahanId": DAGO["subDistrictId"], "districtId": 327302},
    )
    assert ours == theirs
    contradiction = await ask(sandbox, origin={**MENTENG, "kecamatanId": 317107})
    assert field_of(contradiction) == "origin.districtId"


async def test_a_shipments_own_parties_can_be_priced(sandbox: httpx.AsyncClient) -> None:
    party = {"name": "Ayu", "phone": "+6281234567890", "address": "Jl. Dago 1", "city": "Bandung", "zip": "40135"}
    assert await list_options(sandbox, destination={**party, "kecamatanId": 327302, "kelurahanId": 3273021001})


async def test_insurance_has_its_fee(sandbox: httpx.AsyncClient) -> None:
    package = {"weight": 1, "itemValue": 2_000_000}
    insured = await list_options(sandbox, package=package, options={"insurance": True})
    assert {option["insuranceFee"] for option in insured} == {float(prices.build_insurance_fee(Decimal(2_000_000)))}
    assert field_of(await ask(sandbox, options={"insurance": True})) == "package.itemValue"


@pytest.mark.parametrize(
    ("provider", "fields", "field"),
    [
        ("aggregator_carrier", {"origin": {}}, "origin.districtId"),
        ("aggregator_carrier", {"origin": {"city": "Jakarta"}}, "origin.districtId"),
        ("aggregator_carrier", {"destination": {"zip": "40135"}}, "destination.districtId"),
        ("aggregator_carrier", {"options": {"serviceType": "INSTANT"}}, "options.serviceType"),
        ("aggregator_carrier", {"origin": {"districtId": 317106}}, "origin.subDistrictId"),
        ("aggregator_carrier", {"origin": {"subDistrictId": 3171061001}}, "origin.districtId"),
        ("aggregator_carrier", {"destination": {"kecamatanId": 327302}}, "destination.subDistrictId"),
        (
            "aggregator_carrier",
            {"destination": {"districtId": 327302}, "options": {"serviceType": "EXPRESS"}},
            "destination.subDistrictId",
        ),
        ("aggregator_carrier", {"origin": {**MENTENG, "kelurahanId": 3171061002}}, "origin.subDistrictId"),
        ("aggregator_carrier", {"origin": {"districtId": 0}}, "origin.districtId"),
        ("aggregator_carrier", {"origin": {"districtId": "317106"}}, "origin.districtId"),
        ("instant_carrier", {"origin": MENTENG}, "origin.coordinates"),
        ("instant_carrier", {"destination": {}}, "destination.coordinates"),
        ("ev_courier", {"origin": {}}, "origin.coordinates"),
        ("ev_courier", {"options": {}}, "options.pickupCity"),
        ("ev_courier", {"options": {"pickupCity": "Kota Atlantis"}}, "options.pickupCity"),
        ("ev_courier", {"options": {"pickupCity": "Kota Medan"}}, "options.pickupCity"),
        ("ev_courier", {"options": {"pickupCity": 999999}}, "options.pickupCity"),
        ("ev_courier", {"options": {"pickupCity": 3171.5}}, "options.pickupCity"),
        ("ev_courier", {"options": {"pickupCity": 3171}, "pickupCity": "3172"}, "options.pickupCity"),
        ("pigeon", {}, "provider"),
        ("custom", {"package": {}}, "package.weight"),
        ("custom", {"package": {"weight": 0}}, "package.weight"),
        ("custom", {"package": {"weight": -1}}, "package.weight"),
        ("custom", {"package": {"weight": 1e300}}, "package.weight"),
        ("custom", {"package": {"weight": "1"}}, "package.weight"),
        ("custom", {"package": {"weight": 1.0001}}, "package.weight"),
        ("custom", {"package": {"weight": 1, "height": 0}}, "package.height"),
        ("custom", {"package": {"weight": 1, "itemValue": -5}}, "package.itemValue"),
        ("custom", {"options": {"serviceType": "TELEPORT"}}, "options.serviceType"),
        ("custom", {"options": {"serviceTipe": "EXPRESS"}}, "options.serviceTipe"),
        ("custom", {"origin": {"latitude": 1}}, "origin.latitude"),
    ],
)
async def test_what_is_missing_or_wrong_is_named(
    sandbox: httpx.AsyncClient, provider: str, fields: dict[str, Any], field: str
) -> None:
    assert field_of(await ask(sandbox, provider, **fields)) == field


async def test_instant_at_the_aggregator_points_to_the_instant_carrier(sandbox: httpx.AsyncClient) -> None:
    response = await ask(sandbox, options={"serviceType": "INSTANT"})
    assert response.status_code == 400
    assert "instant_carrier" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("spot", "says"),
    [
        ({"lat": 106.8272, "lng": -6.1754}, "lat -6.1754 and lng 106.827"),
        ({"lat": 0, "lng": 0}, "must be in Indonesia"),
        ({"lat": 52.52, "lng": 13.4}, "must be in Indonesia"),
    ],
)
async def test_coordinates_that_cannot_be_are_explained(
    sandbox: httpx.AsyncClient, spot: dict[str, float], says: str
) -> None:
    response = await ask(sandbox, "instant_carrier", origin={"coordinates": spot})
    assert field_of(response) == "origin.coordinates"
    assert says in response.json()["error"]["message"]


@pytest.mark.parametrize("city", ["Kota Jakarta Pusat", "jakarta pusat", "3171", 3171])
async def test_a_pickup_city_is_meant_by_its_id_or_name(sandbox: httpx.AsyncClient, city: str | int) -> None:
    assert await list_options(sandbox, "ev_courier", options={"pickupCity": city})
    assert await list_options(sandbox, "ev_courier", options={}, pickupCity=city)
    assert await list_options(sandbox, "ev_courier", options={"pickupCity": city}, pickupCity=str(city))


async def test_a_sub_district_of_another_district_is_refused(sandbox: httpx.AsyncClient) -> None:
    wrong = await ask(sandbox, origin={"districtId": 317106, "subDistrictId": 3273021001})
    assert field_of(wrong) == "origin.subDistrictId"
    assert await list_options(sandbox, origin=MENTENG)


@pytest.mark.parametrize(
    ("provider", "fields", "says"),
    [
        ("instant_carrier", {"destination": {"coordinates": {"lat": -7.2575, "lng": 112.7521}}}, ""),
        ("instant_carrier", {"options": {"serviceType": "EXPRESS"}}, "INSTANT or SAME_DAY"),
        ("aggregator_carrier", {"options": {"serviceType": "SAME_DAY"}}, "EXPRESS"),
        ("aggregator_carrier", {"destination": {"districtId": 999999, "subDistrictId": 1}}, ""),
        ("custom", {}, "Send your own fee"),
        ("parcel_carrier", {}, "Send your own fee"),
    ],
)
async def test_a_quote_without_offers_says_why(
    sandbox: httpx.AsyncClient, provider: str, fields: dict[str, Any], says: str
) -> None:
    response = await ask(sandbox, provider, **fields)
    assert response.status_code == 200, response.text
    assert response.json()["options"] == []
    messages = response.json()["data"]["messages"]
    assert messages
    assert all(message["code"] and message["text"] and message["courier"] for message in messages)
    assert says in messages[0]["text"]


def test_no_offer_comes_without_a_message() -> None:
    """Even if an adapter returns no note."""
    company = Company(1, "live", "ID", "IDR")
    carrier, client = CARRIERS["gosend"], HttpClient(read_settings({}).webhooks)
    connection = CarrierAccount(company, "carr_1", carrier.name, carrier.address, {}, client)
    shipment = ShipmentRequest(ShippingPoint(), ShippingPoint(), Parcel(Decimal(1)), ServiceRequest())
    result = build_result(QuoteLookup(ConnectedCarrier(carrier, connection), shipment, b""), Quote((), ()))
    assert result.options == []
    assert [message.code for message in result.messages] == ["no_service"]


async def test_a_live_company_without_a_carrier_gets_an_error_that_says_how_to_connect_one(
    api: httpx.AsyncClient,
) -> None:
    for provider in WITH_CARRIERS:
        response = await ask(api, provider)
        assert (response.status_code, response.json()["error"]["code"]) == (409, "PROVIDER_NOT_CONNECTED")
    assert (await ask(api, "custom")).status_code == 200
    assert field_of(await ask(api, origin={})) == "origin.districtId", "what is wrong comes before what is missing"


@pytest.mark.parametrize(
    ("provider", "fields"),
    [
        ("aggregator_carrier", {"package": {"weight": 1, "itemValue": 503503}}),
        ("ev_courier", {"package": {"weight": 1, "itemValue": 503503}}),
        ("instant_carrier", {"destination": {"coordinates": {"lat": -6.2503503, "lng": 106.8097}}}),
    ],
)
async def test_a_carrier_that_is_down_differs_from_one_without_offers(
    sandbox: httpx.AsyncClient, provider: str, fields: dict[str, Any]
) -> None:
    response = await ask(sandbox, provider, **fields)
    assert (response.status_code, response.json()["error"]["code"]) == (502, "CARRIER_UNAVAILABLE")
    assert "503" in response.json()["error"]["message"]
    assert await list_options(sandbox, provider), "the next parcel finds it up"


async def test_a_quote_is_cached_for_some_minutes(
    installation: Installation, database: Database, company: Environments
) -> None:
    async def list_cached_minutes() -> list[int]:
        async with database.connection() as db:
            found = await db.fetch(
                "SELECT round(extract(epoch FROM expires_at - now()) / 60)::int FROM quote_cache WHERE company_id = $1 "
                "ORDER BY expires_at",
                company.test,
            )
        return [row[0] for row in found]

    sandbox = connect(installation, (await make_key(database, company.test)).raw)
    parcel = await list_options(sandbox)
    assert await list_cached_minutes() == [30]
    ride = await list_options(sandbox, "instant_carrier")
    assert await list_cached_minutes() == [5, 30]
    async with database.transaction() as tx:
        await tx.execute(
            'UPDATE quote_cache SET quote = replace(quote::text, \'"courier":"\', \'"courier":"kept \')::json '
            "WHERE company_id = $1",
            company.test,
        )
    named = {**MENTENG, "name": "Ayu"}  # another request with the same price: this one is not cached
    assert {option["courier"] for option in await list_options(sandbox, origin=named)} == {
        f"kept {option['courier']}" for option in parcel
    }
    nearby = {"coordinates": {"lat": -6.17541, "lng": 106.82722}}
    again = await list_options(sandbox, "instant_carrier", origin=nearby, destination=SENAYAN)
    assert {option["courier"] for option in again} == {f"kept {option['courier']}" for option in ride}
    heavier = await list_options(sandbox, package={"weight": 5})
    farther = await list_options(sandbox, "instant_carrier", origin={"coordinates": {"lat": -6.18, "lng": 106.82}})
    assert not any(option["courier"].startswith("kept") for option in [*heavier, *farther])
    await sandbox.aclose()


async def test_a_key_that_only_writes_may_not_ask(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.test, scopes=["orders:WRITE"])
    async with connect(installation, key.raw) as client:
        response = await ask(client, "instant_carrier", origin=MONAS)
    assert (response.status_code, response.json()["error"]["code"]) == (401, "UNAUTHORIZED")
