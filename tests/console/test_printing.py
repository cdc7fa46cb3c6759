"""Printing, the area field and the tracking page's settings at the console, without scripts and with them."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, expect

from sapa.console.routes import COOKIE
from sapa.db.pool import Database
from sapa.people import actions as people
from sapa.people.types import Role
from tests.browsers import new_context
from tests.conftest import Installation, connect
from tests.console.people import PASSWORD, make_person, open_browser, read_token
from tests.factories import Environments, make_company, make_key
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.send_steps import make_template
from tests.shipping import parcels
from tests.shipping.labels.reader import read_barcodes, read_texts

PIXEL = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\nIDATx\x9cc\x00\x01\x00\x00\x05\x00\x01\r\n-\xb4\x00\x00\x00\x00IEND\xaeB`\x82"
)


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


async def fetch_file(browser: httpx.AsyncClient, response: httpx.Response) -> bytes:
    """The PDF behind the page that a form led to."""
    assert response.status_code == 303, response.text
    address = response.headers["location"].removeprefix("/console")

    async def find_file() -> bytes | None:
        page = (await browser.get(address)).text
        return (await browser.get(f"{address}/file")).content if "Open the PDF" in page else None

    return await eventually(find_file)


async def test_ticked_shipments_are_printed_as_one_file(agent: httpx.AsyncClient, sandbox: httpx.AsyncClient) -> None:
    ids = [(await parcels.create(sandbox, "custom"))["id"] for _ in range(3)]
    listed = (await agent.get("/test/shipments")).text
    assert all(f'name="id" value="{id}"' in listed for id in ids)
    labels = await submit(agent, "/shipments/print", print="label-a6", id=ids[:2])
    assert read_barcodes(await fetch_file(agent, labels)) == ids[:2]
    manifest = await submit(agent, "/shipments/print", print="manifest-a6", id=ids)
    assert "3 paket" in read_texts(await fetch_file(agent, manifest))[0]
    nothing = await submit(agent, "/shipments/print", print="label-a6")
    assert nothing.status_code == 400
    assert "choose at least one shipment" in nothing.text


async def test_all_that_match_are_printed_except_what_is_not_booked(
    agent: httpx.AsyncClient, sandbox: httpx.AsyncClient
) -> None:
    await parcels.create(sandbox, "aggregator_carrier", delivery={**parcels.DELIVERY, "name": "Budi Printed"})
    await parcels.create(sandbox, "custom")
    wanted = [
        (await parcels.create(sandbox, "custom", delivery={"name": "Budi Printed", "address": "Jl. Satu"}))["id"]
        for _ in range(2)
    ]
    response = await submit(agent, "/shipments/print?search=Budi+Printed", print="label-roll80", all="1")
    assert sorted(read_barcodes(await fetch_file(agent, response))) == sorted(wanted)


async def test_a_shipments_page_prints_and_links_its_tracking_page(
    agent: httpx.AsyncClient, sandbox: httpx.AsyncClient
) -> None:
    shipment = await parcels.create(sandbox, "custom")
    page = (await agent.get(f"/test/shipments/{shipment['id']}")).text
    assert shipment["trackingPage"] in page
    assert "<dt>Volumetric weight</dt><dd>0.5 kg</dd>" in page
    for link in ("label", "label?format=roll80", "packing-slip"):
        assert f"/shipments/{shipment['id']}/print/{link}" in page
        printed = await agent.get(f"/test/shipments/{shipment['id']}/print/{link}")
        assert (printed.status_code, printed.headers["content-type"]) == (200, "application/pdf")
    draft = await parcels.create(sandbox, "aggregator_carrier")
    assert "/print/label" not in (await agent.get(f"/test/shipments/{draft['id']}")).text
    assert (await agent.get(f"/test/shipments/{draft['id']}/print/label")).status_code == 409


async def test_the_carriers_own_labels_are_printed(agent: httpx.AsyncClient, sandbox: httpx.AsyncClient) -> None:
    created = await parcels.create(sandbox, "aggregator_carrier", autoBook=True)
    shipment = await parcels.until_status(sandbox, created["id"], awb=...)
    page = (await agent.get(f"/test/shipments/{shipment['id']}")).text
    assert f"/shipments/{shipment['id']}/print/label?source=carrier" in page
    one = await agent.get(f"/test/shipments/{shipment['id']}/print/label?source=carrier")
    many = await fetch_file(agent, await submit(agent, "/shipments/print", print="label-carrier", id=[shipment["id"]]))
    for content in (one.content, many):
        assert "KiriminAja (sandbox)" in read_texts(content)[0]
        assert read_barcodes(content) == [shipment["awb"]]
    own = await parcels.create(sandbox, "custom")
    assert "source=carrier" not in (await agent.get(f"/test/shipments/{own['id']}")).text
    assert (await agent.get(f"/test/shipments/{own['id']}/print/label?source=nobody")).status_code == 404


async def test_files_of_another_company_are_not_found(
    installation: Installation, database: Database, agent: httpx.AsyncClient
) -> None:
    foreign = await make_company(database)
    async with connect(installation, (await make_key(database, foreign.test)).raw) as other:
        id = (await parcels.create(other, "custom"))["id"]
        file = (await other.post("/shipping/labels", json={"ids": [id]})).json()["data"]["id"]
    for path in (f"/labels/{file}", f"/labels/{file}/file", f"/shipments/{id}/print/label"):
        assert (await agent.get(f"/test{path}")).status_code == 404
    assert (await submit(agent, "/shipments/print", print="label-a6", id=[id])).status_code == 400


async def test_an_area_is_found_and_chosen_without_a_script(
    agent: httpx.AsyncClient, sandbox: httpx.AsyncClient
) -> None:
    fields = {"delivery.name": "Ayu", "delivery.address": "Jl. Sukajadi 1", "provider": "custom", "package.weight": "1"}
    found = await submit(
        agent, "/shipments/new", step="areas", **fields | {"delivery.areaSearch": "sukabungah bandumg"}
    )
    (value,) = re.findall(r'name="delivery.area" value="([^"]+)"', found.text)
    assert value == "32/3273/327307/3273071001|Sukabungah, Sukajadi, Kota Bandung, Jawa Barat, 40162"
    created = await submit(agent, "/shipments", serviceName="Own", fee="1", **fields | {"delivery.area": value})
    assert created.status_code == 303, created.text
    delivery = (await parcels.get(sandbox, created.headers["location"].rpartition("/")[2]))["delivery"]
    assert (delivery["kecamatanId"], delivery["kelurahanId"]) == (327307, 3273071001)
    assert (delivery["kecamatan"], delivery["kelurahan"]) == ("Sukajadi", "Sukabungah")
    assert (delivery["city"], delivery["province"], delivery["zip"]) == ("Kota Bandung", "Jawa Barat", "40162")


async def test_an_area_is_found_while_somebody_types(
    browser: Browser, installation: Installation, database: Database, company: Environments
) -> None:
    email = await make_person(database, company)
    secret = await people.sign_in(database, email, PASSWORD, people.Origin("127.0.0.1", "test"))
    context = await new_context(browser, base_url=installation.address, locale="en-GB")
    await context.add_cookies([{"name": COOKIE, "value": secret, "url": f"{installation.address}/console"}])
    page = await context.new_page()
    await page.goto("/console/test/shipments/new")
    field = page.get_by_role("combobox", name="Sub-district, district, city or postal code")
    await field.press_sequentially("pasteur band")
    await expect(page.get_by_role("option", name="Pasteur, Sukajadi, Kota Bandung, Jawa Barat, 40161")).to_be_visible()
    await field.press("Enter")
    await expect(page.locator(".area-chosen")).to_have_text("Pasteur, Sukajadi, Kota Bandung, Jawa Barat, 40161")
    await expect(page.locator('input[name="delivery.kelurahanId"]')).to_have_value("3273071002")
    await expect(page.locator('input[name="delivery.zip"]')).to_have_value("40161")
    await field.press_sequentially("zzzzzz")
    await expect(page.get_by_role("option", name="No area matches")).to_be_visible()
    await context.close()


async def test_the_tracking_page_and_its_messages_are_set_up(
    installation: Installation,
    database: Database,
    company: Environments,
    owner: httpx.AsyncClient,
    agent: httpx.AsyncClient,
    sandbox: httpx.AsyncClient,
) -> None:
    assert (await agent.get("/test/settings/tracking")).status_code == 403
    fields = {
        "token": await read_token(owner),
        "form": "page",
        "displayName": "Toko",
        "color": "#aa0000",
        "language": "en",
    }
    saved = await owner.post("/test/settings/tracking", data=fields, files={"logo": ("logo.png", PIXEL)})
    assert saved.status_code == 303, saved.text
    settings = (await sandbox.get("/shipping/tracking-page")).json()["data"]
    assert (settings["displayName"], settings["color"], settings["language"]) == ("Toko", "#aa0000", "en")
    again = await owner.post("/test/settings/tracking", data=fields)
    assert again.status_code == 303
    assert (await sandbox.get("/shipping/tracking-page")).json()["data"]["logo"] == settings["logo"]
    wrong = await owner.post("/test/settings/tracking", data=fields, files={"logo": ("logo.svg", b"<svg>")})
    assert (wrong.status_code, 'id="logo-problem"' in wrong.text) == (400, True)

    async with connect_messaging(installation, (await make_key(database, company.test)).raw) as messaging:
        await make_template(messaging, name="parcel_update", body="Paket {{1}} Anda sudah diterima.")
    stored = {"step": "delivered", "templateName": "parcel_update", "params": ["awb"], "language": "id"}
    assert (await sandbox.put("/shipping/notifications", json={"enabled": False, "rules": [stored]})).status_code == 200
    rule = {"delivered.template": "parcel_update", "delivered.params": "awb", "delivered.sources": "MSGAPP_CLOUD"}
    saved = await submit(owner, "/settings/notifications", form="messages", enabled="1", **rule)
    assert saved.status_code == 303, saved.text
    settings = (await sandbox.get("/shipping/notifications")).json()["data"]
    assert (settings["enabled"], [one["step"] for one in settings["rules"]]) == (True, ["delivered"])
    assert settings["rules"][0]["language"] == "id", "what the form does not show stays"
    wrong = await submit(owner, "/settings/notifications", form="messages", **rule | {"delivered.params": "colour"})
    assert (wrong.status_code, 'id="delivered.params-problem"' in wrong.text) == (400, True)
    assert 'value="colour"' in wrong.text
