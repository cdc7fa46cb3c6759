"""The public tracking page: what it shows, in which language, and what it keeps to itself."""

import re
from base64 import b64encode
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import msgspec
import pytest

from sapa.db.pool import Database
from sapa.shipping.states import STATUSES
from sapa.shipping.tracking_page.view import build_steps, choose_ink
from sapa.shipping.tracking_page.words import TEXTS, find_detail, get_headline
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_customer, make_order
from tests.shipping import parcels

LARGEST = 50_000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20_400)
LOGO = f"data:image/png;base64,{b64encode(PNG).decode()}"
SECRETS = {
    "name": "Zulaikha Qistina Wiryawan", "phone": "+6281298765431", "email": "zulaikha@rahasia.example",
    "address": "Jl. Rahasia Sekali No. 99", "notes": "pagar hijau rahasia", "kelurahan": "Kelurahanrahasia",
    "kecamatan": "Kecamatanrahasia", "zip": "12169",
}  # fmt: skip


@pytest.fixture
async def reader(installation: Installation) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without a key."""
    async with httpx.AsyncClient(base_url=installation.address, verify=TLS, timeout=120) as client:
        yield client


async def ship(sandbox: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    created = await parcels.create(sandbox, "aggregator_carrier", autoBook=True, **fields)
    return await parcels.until_status(sandbox, created["id"], awb=...)


@pytest.mark.smoke
async def test_a_page_shows_the_steps_in_both_languages(sandbox: httpx.AsyncClient, reader: httpx.AsyncClient) -> None:
    shipment = await ship(sandbox)
    await parcels.advance(sandbox, shipment["id"], "picked_up")
    await parcels.until_status(sandbox, shipment["id"], "picked_up", "in_transit")
    page = (await reader.get(shipment["trackingPage"])).text
    assert '<html lang="id">' in page
    assert "Paket sudah dijemput kurir" in page
    assert all(words in page for words in (shipment["awb"], "JNE", "Jakarta Selatan", "WIB"))
    english = (await reader.get(shipment["trackingPage"], headers={"accept-language": "en-GB,en;q=0.9"})).text
    assert "The courier has the parcel" in english
    chosen = (await reader.get(f"{shipment['trackingPage']}?lang=en", headers={"accept-language": "id"})).text
    assert '<html lang="en">' in chosen


async def test_a_page_names_the_city_of_an_area(sandbox: httpx.AsyncClient, reader: httpx.AsyncClient) -> None:
    delivery = {**parcels.DELIVERY, "city": None}
    tested = await parcels.create(sandbox, "custom", delivery=delivery)
    assert "Kota Jakarta Selatan" in (await reader.get(tested["trackingPage"])).text


async def test_a_page_names_the_city_of_a_live_carriers_area(
    api: httpx.AsyncClient, reader: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """As far as the lists were fetched."""
    shipment = await parcels.create(api, "aggregator_carrier", delivery={**parcels.DELIVERY, "city": None})
    lists = {"districts": [{"id": 317407, "name": "Kebayoran Baru", "parent_id": 5}],
             "cities": [{"id": 5, "name": "Jaksel Raya", "parent_id": 6}]}  # fmt: skip
    async with database.connection() as db:
        await db.execute("UPDATE shipments SET adapter = 'kiriminaja' WHERE company_id = $1", company.live)
        assert "Jaksel Raya" not in (await reader.get(shipment["trackingPage"])).text
        for level, areas in lists.items():
            await db.execute(
                """INSERT INTO coverage_cache (company_id, adapter, level, parent, areas)
                   VALUES ($1, 'kiriminaja', $2, '', $3)""",
                company.live, level, msgspec.json.encode(areas),
            )  # fmt: skip
    assert "Jaksel Raya" in (await reader.get(shipment["trackingPage"])).text


async def test_a_page_is_small_and_needs_no_script(sandbox: httpx.AsyncClient, reader: httpx.AsyncClient) -> None:
    settings = {"displayName": "Toko <Kopi>", "color": "#FFCC00", "logo": LOGO, "language": "en"}
    saved = await sandbox.put("/shipping/tracking-page", json=settings)
    assert saved.status_code == 200, saved.text
    assert saved.json()["data"]["color"] == "#ffcc00"
    assert (await sandbox.get("/shipping/tracking-page")).json() == saved.json()
    response = await reader.get((await ship(sandbox))["trackingPage"])
    assert len(response.content) <= LARGEST
    assert LOGO in response.text
    assert "Toko &lt;Kopi&gt;" in response.text
    assert "--band: #ffcc00; --band-ink: #000000" in response.text
    assert '<html lang="en">' in response.text
    assert "<script" not in response.text
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert "unsafe" not in policy
    assert "noindex" in response.headers["x-robots-tag"]


async def test_a_page_shows_no_id_no_phone_number_and_no_name(
    sandbox: httpx.AsyncClient, reader: httpx.AsyncClient
) -> None:
    customer = await make_customer(sandbox, firstName="Pelangganrahasia", phoneNumber="+6281298765430")
    order = await make_order(sandbox, customerId=customer["id"], orderId="rahasia-77")
    shipment = await ship(sandbox, orderId=order["id"], delivery={**parcels.DELIVERY, **SECRETS})
    await parcels.advance(sandbox, shipment["id"], "delivered")
    shipment = await parcels.until_status(sandbox, shipment["id"], "delivered")
    page = (await reader.get(shipment["trackingPage"])).text
    assert "Paket sudah diterima" in page
    planted = [
        *SECRETS.values(), *SECRETS["name"].split(), parcels.SENDER["address"], parcels.SENDER["phone"],
        parcels.SENDER["name"], customer["id"], "Pelangganrahasia", "81298765430", order["id"], "rahasia-77",
        shipment["id"], shipment["orderNo"], shipment["bookingId"], "rahasia", "106.7997", "-6.2431",
    ]  # fmt: skip
    shown = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    assert [words for words in planted if str(words).lower() in shown.lower()] == []
    assert re.findall(r"\b(?:shp|order|cust|loc)_[0-9a-z]+", shown) == []


async def test_a_page_says_when_a_parcel_is_expected_and_what_it_costs(
    sandbox: httpx.AsyncClient, reader: httpx.AsyncClient
) -> None:
    shipment = await parcels.create(sandbox, "custom", autoBook=True, estimate="2-3 days", codAmount=153_000)
    page = (await reader.get(shipment["trackingPage"])).text
    assert "Perkiraan tiba" not in page, "nobody knows before the pickup"
    assert "Rp 153.000" in page
    earliest = datetime.now(ZoneInfo("Asia/Jakarta")) + timedelta(days=3)
    await parcels.change(sandbox, shipment["id"], shippingStatus="picked_up")
    latest = datetime.now(ZoneInfo("Asia/Jakarta")) + timedelta(days=3)
    page = (await reader.get(shipment["trackingPage"], headers={"accept-language": "en"})).text
    days = [f"<dt>Expected by</dt><dd>{day.day} {day:%b} {day.year}</dd>" for day in (earliest, latest)]
    assert any(day in page for day in days)
    assert "Rp 153,000" in page
    await parcels.change(sandbox, shipment["id"], shippingStatus="delivered")
    page = (await reader.get(shipment["trackingPage"])).text
    assert "Perkiraan tiba" not in page
    assert "153" not in page


async def test_an_address_that_nobody_was_given_leads_nowhere(
    sandbox: httpx.AsyncClient, reader: httpx.AsyncClient
) -> None:
    shipment = await parcels.create(sandbox, "custom")
    assert re.fullmatch(r"/t/[A-Za-z0-9_-]{22}", shipment["trackingPage"])
    for path in (shipment["trackingPage"][:-1], f"/t/{shipment['id']}", "/t/x", "/t/%00", "/t/%FF"):
        missing = await reader.get(path)
        assert missing.status_code == 404
        assert "Halaman ini tidak ditemukan" in missing.text
    pages = {(await parcels.create(sandbox, "custom"))["trackingPage"] for _ in range(5)}
    assert len(pages) == 5


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("color", "red"),
        ("color", "#12345"),
        ("logo", "https://shop.example/logo.png"),
        ("logo", "data:image/svg+xml;base64,PHN2Zz4="),
        ("logo", "data:image/png;base64,PHN2Zz4="),
        ("logo", f"data:image/png;base64,{b64encode(PNG + bytes(200)).decode()}"),
        ("logo", "data:image/png;base64,%%%"),
        ("language", "fr"),
        ("displayName", " "),
    ],
)
async def test_settings_that_a_page_cannot_show_are_refused(sandbox: httpx.AsyncClient, field: str, value: str) -> None:
    assert parcels.field_of(await sandbox.put("/shipping/tracking-page", json={field: value})) == field


def test_every_status_has_words_and_steps_in_both_languages() -> None:
    assert TEXTS["id"].keys() == TEXTS["en"].keys()
    for status in STATUSES:
        for language in ("id", "en"):
            assert get_headline(language, status)
            steps = build_steps(status, language)
            assert not steps or sum(step.is_present for step in steps) == 1
        assert bool(find_detail("id", status)) == bool(find_detail("en", status))


@pytest.mark.parametrize(("color", "ink"), [("#000000", "#ffffff"), ("#ffffff", "#000000"), ("#ffcc00", "#000000")])
def test_the_text_on_the_band_can_be_read(color: str, ink: str) -> None:
    assert choose_ink(color) == ink
