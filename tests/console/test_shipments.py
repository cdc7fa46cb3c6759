"""Shipments at the console: from an order's price to its cancellation, and what stands in the way."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.people.types import Role
from tests.conftest import Installation, connect
from tests.console.people import make_person, open_browser, read_token
from tests.console.seats import read
from tests.factories import Environments, make_company, make_key, make_order
from tests.shipping import parcels

STORE = {
    "name": "Gudang Menteng", "contactName": "Budi", "phone": "081234567890", "address": "Jl. Menteng Raya No. 21",
    "city": "Jakarta Pusat", "zip": "10310", "kecamatanId": "317106", "kelurahanId": "3171061001",
    "coordinates.lat": "-6.1963", "coordinates.lng": "106.8346",
}  # fmt: skip
RECEIVER = {
    "delivery.name": "Ayu <Lestari>", "delivery.phone": "+6281298765432", "delivery.address": "Jl. Melawai Raya No. 8",
    "delivery.zip": "12160", "delivery.kecamatanId": "317407", "delivery.kelurahanId": "3174071002",
    "delivery.coordinates.lat": "-6.2431", "delivery.coordinates.lng": "106.7997", "package.weight": "1.5",
}  # fmt: skip
SHIPPING_ADDRESS = {
    "firstName": "Ayu", "lastName": "Lestari", "phone": "+6281298765432", "address1": "Jl. Melawai Raya No. 8",
    "city": "Jakarta Selatan", "zip": "12160",
}  # fmt: skip
_SERVICES = re.compile(r'name="service" value="([^"]+)"')


@pytest.fixture
async def sandbox(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with connect(installation, (await make_key(database, company.test)).raw) as client:
        yield client


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


@pytest.fixture
async def agent(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company, Role.AGENT)) as client:
        yield client


async def submit(browser: httpx.AsyncClient, path: str, **fields: Any) -> httpx.Response:
    return await browser.post(f"/test{path}", data={"token": await read_token(browser), **fields})


async def make_store(owner: httpx.AsyncClient, sandbox: httpx.AsyncClient, **fields: str) -> dict[str, Any]:
    """A store location made with the form; the newest one."""
    response = await submit(owner, "/stores", **STORE | fields)
    assert response.status_code == 303, response.text
    found: dict[str, Any] = (await sandbox.get("/shipping/store-locations")).json()["data"][0]
    return found


async def test_an_order_is_priced_shipped_booked_tracked_and_cancelled(
    owner: httpx.AsyncClient, agent: httpx.AsyncClient, sandbox: httpx.AsyncClient
) -> None:
    store = await make_store(owner, sandbox)
    order = await make_order(sandbox, shippingAddress=SHIPPING_ADDRESS)
    assert f"/shipments/new?orderId={order['id']}" in (await agent.get(f"/test/orders/{order['id']}")).text
    form = (await agent.get("/test/shipments/new", params={"orderId": order["id"]})).text
    assert 'value="Ayu Lestari"' in form
    assert 'value="Jl. Melawai Raya No. 8"' in form
    assert 'value="150,000"' in form
    fields = RECEIVER | {"orderId": order["id"], "provider": "aggregator_carrier", "storeLocationId": store["id"]}
    fields |= {"package.weight": "1.25", "package.length": "12.5", "package.itemQty": "1.000"}
    priced = await submit(agent, "/shipments/new", step="prices", **fields)
    services = _SERVICES.findall(priced.text)
    assert services
    assert 'value="Ayu &lt;Lestari&gt;"' in priced.text
    created = await submit(agent, "/shipments", service=services[0], once="5f1d", **fields)
    assert created.status_code == 303, created.text
    again = await submit(agent, "/shipments", service=services[0], once="5f1d", **fields)
    assert again.headers["location"] == created.headers["location"]
    id = created.headers["location"].rpartition("/")[2]
    draft = await parcels.get(sandbox, id)
    assert (draft["shippingStatus"], draft["orderId"], draft["serviceCode"]) == ("draft", order["id"], services[0])
    assert draft["fee"] is not None
    assert [draft["package"][name] for name in ("weight", "length", "itemQty")] == [1.25, 12.5, 1000]
    assert draft["sender"]["name"] == "Budi"
    assert (await submit(agent, f"/shipments/{id}/book")).status_code == 303
    await parcels.until_status(sandbox, id, awb=...)
    page = (await agent.get(f"/test/shipments/{id}?track=1")).text
    assert "Asked just now." in page
    assert (await parcels.get(sandbox, id))["awb"] in page
    assert "<dt>Payment</dt><dd>paid</dd>" in page
    assert f"/shipments/{id}" in (await agent.get(f"/test/orders/{order['id']}")).text
    cancelled = await submit(agent, f"/shipments/{id}/cancel", reason="The customer moved")
    assert cancelled.status_code == 303
    assert "The customer moved" in (await agent.get(f"/test/shipments/{id}")).text
    assert (await parcels.get(sandbox, id))["shippingStatus"] == "cancelled"


async def test_people_book_what_the_api_does_not(agent: httpx.AsyncClient, sandbox: httpx.AsyncClient) -> None:
    created = await parcels.create(sandbox, "instant_carrier", autoBook=True)
    assert created["shippingStatus"] == "awaiting"
    assert (await submit(agent, f"/shipments/{created['id']}/book")).status_code == 303
    booked = await parcels.until_status(sandbox, created["id"], orderNo=...)
    assert booked["shippingStatus"] not in {"awaiting", "booking"}
    again = await submit(agent, f"/shipments/{created['id']}/book")
    assert again.status_code == 303
    assert (await parcels.get(sandbox, created["id"]))["orderNo"] == booked["orderNo"]


async def test_a_refused_booking_is_shown_and_can_be_tried_again(
    agent: httpx.AsyncClient, sandbox: httpx.AsyncClient
) -> None:
    created = await parcels.create(sandbox, "aggregator_carrier", sim="booking_rejected")
    await submit(agent, f"/shipments/{created['id']}/book")
    page = (await agent.get(f"/test/shipments/{created['id']}")).text
    assert "This needs you." in page
    assert "Try booking again" in page
    waiting = {"status": "booking_failed", "needsAction": "true"}
    assert created["id"] in (await agent.get("/test/shipments", params=waiting)).text
    assert (await submit(agent, f"/shipments/{created['id']}/looked")).status_code == 303
    assert created["id"] not in (await agent.get("/test/shipments", params=waiting)).text


async def test_a_form_that_is_refused_keeps_what_was_typed_and_says_where(
    owner: httpx.AsyncClient, agent: httpx.AsyncClient, sandbox: httpx.AsyncClient
) -> None:
    store = await make_store(
        owner, sandbox, kecamatanId="", kelurahanId="", **{"coordinates.lat": "", "coordinates.lng": ""}
    )
    fields = RECEIVER | {"provider": "aggregator_carrier", "storeLocationId": store["id"]}
    unpriced = await submit(agent, "/shipments/new", step="prices", **fields)
    assert 'id="storeLocationId-problem"' in unpriced.text
    areas = {name: "" for name in fields if name.startswith("delivery.k") or name == "delivery.area"}
    half = await submit(agent, "/shipments/new", step="prices", **fields | areas | {"delivery.areaSearch": "sukajadi"})
    assert "choose the district of this address" in half.text, "nothing is quoted for a half-chosen area"
    assert 'value="sukajadi"' in half.text
    assert "districtId" not in read(half.text)
    nowhere = await submit(agent, "/shipments", **fields | {"storeLocationId": ""})
    assert nowhere.status_code == 400
    assert "choose the store that it is picked up from" in nowhere.text
    assert 'value="+6281298765432"' in nowhere.text
    by_hand = {"provider": "custom", "serviceName": "Own rider", "fee": "ten"}
    wrong = await submit(agent, "/shipments", **fields | by_hand)
    assert 'aria-describedby="fee-problem"' in wrong.text
    assert 'value="Own rider"' in wrong.text
    created = await submit(agent, "/shipments", **fields | by_hand | {"fee": "10000"})
    id = created.headers["location"].rpartition("/")[2]
    assert (await submit(agent, f"/shipments/{id}/discard")).status_code == 403
    long = await submit(agent, f"/shipments/{id}/cancel", reason="x" * 501)
    assert long.status_code == 400
    assert "x" * 501 in long.text
    await submit(agent, f"/shipments/{id}/book")
    assert (await submit(agent, f"/shipments/{id}/status", status="picked_up")).status_code == 303
    assert (await submit(agent, f"/shipments/{id}/status", status="draft")).status_code == 409
    assert (await parcels.get(sandbox, id))["shippingStatus"] == "picked_up"
    assert (await submit(owner, f"/shipments/{id}/discard")).status_code == 409


async def test_shipments_are_found_filtered_and_drafts_discarded(
    owner: httpx.AsyncClient, sandbox: httpx.AsyncClient
) -> None:
    ayu = await parcels.create(sandbox, "custom", delivery={"name": "Ayu", "address": "Jl. Satu"})
    budi = await parcels.create(sandbox, "custom", delivery={"name": "Budi", "address": "Jl. Dua"}, autoBook=True)
    listed = (await owner.get("/test/shipments", params={"search": "Ayu", "provider": "custom"})).text
    assert (ayu["id"] in listed, budi["id"] in listed) == (True, False)
    confirmed = (await owner.get("/test/shipments", params={"status": "confirmed"})).text
    assert (ayu["id"] in confirmed, budi["id"] in confirmed) == (False, True)
    assert "choose one" in (await owner.get("/test/shipments", params={"status": "nowhere"})).text
    assert "No shipments yet" in (await owner.get("/live/shipments")).text
    assert (await submit(owner, f"/shipments/{ayu['id']}/discard")).status_code == 303
    assert (await owner.get(f"/test/shipments/{ayu['id']}")).status_code == 404


async def test_store_locations_are_made_changed_and_removed_and_the_log_says_by_whom(
    owner: httpx.AsyncClient, agent: httpx.AsyncClient, sandbox: httpx.AsyncClient
) -> None:
    lists = await submit(owner, "/stores/new", step="areas", **STORE | {"provinceId": "31"})
    assert 'name="cityId"' in lists.text
    assert 'value="Gudang Menteng"' in lists.text
    store = await make_store(owner, sandbox)
    assert (store["isDefault"], store["kecamatanId"]) == (True, 317106)
    refused = await submit(owner, f"/stores/{store['id']}", **STORE | {"name": "Gudang", "phone": "12"})
    assert refused.status_code == 400
    assert 'aria-describedby="phone-problem"' in refused.text
    changed = await submit(owner, f"/stores/{store['id']}", **STORE | {"name": "Gudang Dua", "isDefault": "1"})
    assert changed.status_code == 303
    assert "Gudang Dua" in (await agent.get("/test/stores")).text
    assert (await submit(agent, "/stores", **STORE)).status_code == 403
    assert (await submit(owner, f"/stores/{store['id']}/delete")).status_code == 303
    log = (await owner.get("/test/audit")).text
    assert all(f"Store location {what}" in log for what in ("created", "changed", "deleted"))
    assert "Carriers pick up parcels at a store location" in (await owner.get("/test/stores")).text


async def test_a_store_that_has_only_the_ids_of_its_area_shows_names(
    owner: httpx.AsyncClient, sandbox: httpx.AsyncClient
) -> None:
    """A program need not give them."""
    body = {"name": "Toko Menteng", **{name: value for name, value in parcels.SENDER.items() if name != "name"}}
    store = (await sandbox.post("/shipping/store-locations", json=body)).json()["data"]
    page = (await owner.get(f"/test/stores/{store['id']}")).text
    chosen = re.search(r'class="area-chosen">([^<]+)<', page)
    assert chosen is not None
    assert chosen[1].endswith(", Menteng")


async def test_another_companys_shipments_and_stores_are_out_of_reach(
    installation: Installation, database: Database, owner: httpx.AsyncClient
) -> None:
    other = await make_company(database)
    async with connect(installation, (await make_key(database, other.test)).raw) as api:
        shipment = await parcels.create(api, "custom", delivery={"name": "Ayu", "address": "Jl. Satu"})
        store = (await api.post("/shipping/store-locations", json={"name": "Toko", "address": "Jl. Satu"})).json()
        order = await make_order(api)
        for what in ("book", "cancel", "discard", "status", "looked", "resolve", "advance"):
            form = {"status": "confirmed", "outcome": "booked"}
            assert (await submit(owner, f"/shipments/{shipment['id']}/{what}", **form)).status_code == 404
        id = store["data"]["id"]
        for path in (f"/stores/{id}", f"/stores/{id}/areas", f"/stores/{id}/delete"):
            assert (await submit(owner, path, **STORE)).status_code == 404
        for path in (f"/shipments/{shipment['id']}", f"/stores/{id}", f"/shipments/new?orderId={order['id']}"):
            assert (await owner.get(f"/test{path}")).status_code == 404
        fields = RECEIVER | {"provider": "custom", "storeLocationId": id, "orderId": order["id"]}
        assert (await submit(owner, "/shipments", **fields)).status_code == 400
        assert (await parcels.get(api, shipment["id"])) == shipment
