"""The tracking page in a real browser, on a small phone."""

from typing import Literal

import httpx
import pytest
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser

from tests.browsers import new_context
from tests.conftest import Installation
from tests.shipping import parcels


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.long), "dark"])
async def test_everybody_can_read_a_page_on_a_small_phone_without_scripts(
    sandbox: httpx.AsyncClient, installation: Installation, browser: Browser, scheme: Literal["light", "dark"]
) -> None:
    await sandbox.put("/shipping/tracking-page", json={"color": "#ffcc00", "displayName": "Toko Kopi Nusantara"})
    shipment = await parcels.create(sandbox, "custom", autoBook=True)
    for status in ("picked_up", "in_transit", "out_for_delivery", "delivery_failed"):
        await parcels.change(sandbox, shipment["id"], shippingStatus=status)
    address = installation.address + shipment["trackingPage"]
    complaints: list[str] = []
    for has_scripts in (False, True):
        context = await new_context(
            browser,
            locale="id-ID",
            viewport={"width": 360, "height": 740},
            java_script_enabled=has_scripts,
            color_scheme=scheme,
        )
        page = await context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        await page.goto(address)
        assert await page.get_by_role("heading", level=1).inner_text() == "Paket belum berhasil diantar"
        assert await page.locator("[aria-current=step]").count() == 1
        if has_scripts:
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            found = (await Axe().run(page)).response["violations"]
            assert [fault["id"] for fault in found] == []
        await page.get_by_role("link", name="English").click()
        assert await page.get_by_role("heading", level=1).inner_text() == "The parcel could not be delivered yet"
        await context.close()
    assert complaints == []
