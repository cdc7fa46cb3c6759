"""The console as a place to work in, in a real browser: its dialogs, its search, and what people type."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from sapa.console.formats import Formats
from sapa.console.routes import COOKIE
from sapa.db.pool import Database
from sapa.people import actions as people
from tests.browsers import new_context
from tests.conftest import Installation
from tests.console.people import PASSWORD, make_person
from tests.factories import Environments, make_customer, make_order

TYPED = {
    "id": [
        ("10.000", 10_000), ("10,000", 10_000), ("Rp 10.000", 10_000), ("10000", 10_000), ("10.000,00", 10_000),
        ("1.250.000", 1_250_000), ("10.000,50", 10_000.5), ("25rb", 25_000), ("1,5 jt", 1_500_000), ("7.500,-", 7_500),
    ],
    "en": [
        ("10,000", 10_000), ("10.000", 10_000), ("Rp 10,000", 10_000), ("10000", 10_000), ("10,000.00", 10_000),
        ("1,250,000", 1_250_000), ("10,000.50", 10_000.5), ("25k", 25_000), ("7,500", 7_500),
    ],
}  # fmt: skip


@asynccontextmanager
async def open_seat(
    browser: Browser, installation: Installation, database: Database, email: str, language: str = "en", **options: Any
) -> AsyncIterator[Page]:
    """A signed-in person's tab; browser errors fail the test."""
    secret = await people.sign_in(database, email, PASSWORD, people.Origin("127.0.0.1", "test"))
    async with database.transaction() as tx:
        session = await people.find_session(tx, secret)
        assert session is not None
        await people.set_language(tx, session.user_id, language)
    context = await new_context(browser, base_url=installation.address, **options)
    await context.add_cookies([{"name": COOKIE, "value": secret, "url": f"{installation.address}/console"}])
    page = await context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    await context.close()
    assert complaints == []


@pytest.fixture
async def email(database: Database, company: Environments) -> str:
    return await make_person(database, company)


@pytest.mark.parametrize("language", ["id", pytest.param("en", marks=pytest.mark.long)])
async def test_an_amount_is_stored_as_meant_and_echoed_before(
    browser: Browser,
    installation: Installation,
    database: Database,
    api: httpx.AsyncClient,
    email: str,
    language: str,
) -> None:
    lines = [{"title": "Kopi", "price": 100_000_000, "quantity": 1}]
    id = (await make_order(api, lineItems=lines))["id"]
    async with open_seat(browser, installation, database, email, language) as page:
        for text, meant in TYPED[language]:
            await page.goto(f"/console/live/orders/{id}")
            await page.click("details:has([action$='/payments']) summary")
            await page.fill("[action$='/payments'] [name=amount]", text)
            echo = page.locator("[action$='/payments'] .echo")
            await expect(echo).to_have_text(re.compile(rf"^= Rp\s{Formats(language).number(meant)}$"))
            await page.click("[action$='/payments'] button.main")
            await expect(page.locator(".toasts")).to_be_visible()
            paid = [one["amount"] for one in (await api.get(f"/orders/{id}")).json()["data"]["payments"]]
            assert paid[-1] == meant, text


async def test_what_cannot_be_undone_asks_and_the_search_finds_with_the_keyboard(
    browser: Browser, installation: Installation, database: Database, api: httpx.AsyncClient, email: str
) -> None:
    id = (await make_order(api))["id"]
    ayu = await make_customer(api, firstName="Ayunda")
    async with open_seat(browser, installation, database, email) as page:
        await page.goto(f"/console/live/orders/{id}")
        await page.click("button:text-is('Cancel order…')")
        await expect(page.locator("dialog h2")).to_have_text("Cancel this order?")
        await expect(page.locator("dialog button:text-is('Back')")).to_be_focused()
        await page.keyboard.press("Escape")
        assert (await api.get(f"/orders/{id}")).json()["data"]["status"] == "active"
        await page.click("button:text-is('Cancel order…')")
        await page.click("dialog [data-yes]")
        await expect(page.locator(".toasts")).to_contain_text("cancelled")
        assert (await api.get(f"/orders/{id}")).json()["data"]["status"] == "cancelled"
        await page.keyboard.press("Control+k")
        await page.keyboard.type("ayunda")
        await expect(page.locator(f"dialog a[href$='{ayu['id']}']")).to_be_visible()
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"**/customers/{ayu['id']}")
        await page.keyboard.press("g")
        await page.keyboard.press("o")
        await page.wait_for_url("**/console/live/orders")


async def test_a_refused_form_can_be_reloaded_and_gone_back_to(
    browser: Browser, installation: Installation, database: Database, api: httpx.AsyncClient, email: str
) -> None:
    id = (await make_order(api))["id"]
    async with open_seat(browser, installation, database, email) as page:
        await page.goto(f"/console/live/orders/{id}")
        await page.click("details:has([action$='/payments']) summary")
        await page.fill("[action$='/payments'] [name=amount]", "banyak")
        await page.click("[action$='/payments'] button.main")
        await expect(page.locator("#amount-problem").first).to_have_text("enter an amount, like 10,000")
        await expect(page.locator("[action$='/payments'] [name=amount]")).to_be_focused()
        assert await page.input_value("[action$='/payments'] [name=amount]") == "banyak"
        assert page.url.endswith(f"/console/live/orders/{id}")
        await page.goto("/console/live/products")
        await page.go_back()
        assert f"#{(await api.get(f'/orders/{id}')).json()['data']['orderNumber']}" in await page.inner_text("h1")
        response = await page.reload()
        assert response is not None
        assert (response.status, response.request.method) == (200, "GET")


async def test_an_expired_session_keeps_what_was_typed(
    browser: Browser, installation: Installation, database: Database, api: httpx.AsyncClient, email: str
) -> None:
    id = (await make_customer(api))["id"]
    async with open_seat(browser, installation, database, email) as page:
        await page.goto(f"/console/live/customers/{id}")
        await page.fill("[action$='/points'] [name=points]", "25")
        await page.fill("[action$='/points'] [name=reason]", "Paket terlambat")
        await page.context.clear_cookies(name=COOKIE)
        await page.click("[action$='/points'] button")
        await page.wait_for_url("**/console/sign-in**")
        await page.fill("[name=email]", email)
        await page.fill("[name=password]", PASSWORD)
        await page.click("button.main")
        await page.wait_for_url(f"**/customers/{id}")
        assert await page.input_value("[action$='/points'] [name=reason]") == "Paket terlambat"
        await page.click("[action$='/points'] button")
        await expect(page.locator(".toasts")).to_have_text("Points changed")
        await page.reload()
        assert await page.input_value("[action$='/points'] [name=reason]") == ""


async def test_a_phone_has_a_bottom_bar_cards_and_an_installable_console(
    browser: Browser, installation: Installation, database: Database, api: httpx.AsyncClient, email: str
) -> None:
    await make_order(api)
    phone = {"width": 390, "height": 844}
    async with open_seat(browser, installation, database, email, viewport=phone, has_touch=True) as page:
        await page.goto("/console/live/orders")
        await expect(page.locator(".nav")).to_be_hidden()
        await expect(page.locator("tbody .amount").first).to_be_in_viewport()
        await page.click(".tabbar a:has-text('More')")
        await page.click(".nav a:has-text('Products')")
        await page.wait_for_url("**/console/live/products")
        manifest = await page.evaluate("fetch(document.querySelector('link[rel=manifest]').href).then((r) => r.json())")
        for icon in manifest["icons"]:
            answer = await page.request.get(icon["src"])
            assert (answer.status, answer.headers["content-type"]) == (200, "image/png")
        await page.context.set_offline(True)
        await expect(page.locator("[data-offline]")).to_be_visible()
        await page.context.set_offline(False)
        await expect(page.locator("[data-offline]")).to_be_hidden()
