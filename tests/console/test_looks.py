"""Settings and reports in a real browser: wide and narrow, light and dark, in both languages, and nothing serious."""

from typing import Literal

import httpx
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser, Page

from sapa.db.pool import Database
from sapa.people import actions as people
from tests.conftest import Installation, connect
from tests.console.people import PASSWORD, make_person
from tests.factories import Environments, make_key, make_order

PAGES = (
    "/reports",
    "/reports/agents",
    "/channels",
    "/channels/MSGAPP_CLOUD",
    "/carriers",
    "/carriers/aggregator_carrier",
    "/templates",
    "/templates/new",
    "/settings/company",
    "/settings/loyalty",
    "/settings/agents",
    "/settings/support",
)
VIEWS: tuple[tuple[int, Literal["light", "dark"], str], ...] = ((1440, "light", "en"), (360, "dark", "id"))
TEMPLATE = {
    "name": "order_update",
    "language": "id",
    "category": "UTILITY",
    "body": "Halo {{1}}!",
    "buttons": [{"type": "quick_reply", "text": "Ya"}],
}


async def fill(installation: Installation, database: Database, company_id: int) -> str:
    """Something to see on every page; the template's page."""
    key = await make_key(database, company_id)
    async with connect(installation, key.raw) as api:
        await make_order(api)
    async with httpx.AsyncClient(
        base_url=f"{installation.address}/messaging/v1", headers={"x-api-key": key.raw}, timeout=30
    ) as api:
        for kind in ("human", "ai"):
            assert (await api.post("/agents", json={"name": f"Sari {kind}", "type": kind})).status_code == 201
        made = await api.post("/templates", json=TEMPLATE)
    return f"/templates/{made.json()['data']['id']}?param=Ayu"


async def check(page: Page, path: str) -> None:
    answer = await page.goto(path)
    assert answer is not None
    assert answer.status == 200
    assert len(await answer.body()) < 200_000
    found = (await Axe().run(page)).response["violations"]
    assert [one["id"] for one in found if one["impact"] in {"serious", "critical"}] == [], path
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


async def test_settings_and_reports_can_be_read_by_everybody_everywhere(
    browser: Browser, installation: Installation, database: Database, company: Environments
) -> None:
    template = await fill(installation, database, company.test)
    email = await make_person(database, company)
    secret = await people.sign_in(database, email, PASSWORD, people.Origin("127.0.0.1", "test"))
    complaints: list[str] = []
    for width, scheme, language in VIEWS:
        async with database.transaction() as tx:
            session = await people.find_session(tx, secret)
            assert session is not None
            await people.set_language(tx, session.user_id, language)
        context = await browser.new_context(
            base_url=installation.address, viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        cookie = {"name": "sapa_session", "value": secret, "domain": "127.0.0.1", "path": "/console"}
        await context.add_cookies([cookie])  # type: ignore[list-item]
        page = await context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if "Content Security" in said.text else None)
        for path in (*PAGES, template):
            await check(page, f"/console/test{path}")
        await check(page, "/console/live/channels/MSGAPP_CLOUD")
        await check(page, "/console/live/carriers/aggregator_carrier")
        await context.close()
    assert complaints == []


async def test_an_owner_connects_the_web_chat_and_sees_the_snippet_once(
    browser: Browser, installation: Installation, database: Database, company: Environments
) -> None:
    email = await make_person(database, company)
    context = await browser.new_context(base_url=installation.address, locale="en-GB")
    page = await context.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    await page.goto("/console/live/channels")
    await page.fill("[name=email]", email)
    await page.fill("[name=password]", PASSWORD)
    await page.click("button.main")
    await page.click("tr:has-text('WIDGET') a.button")
    await page.fill("[name=title]", "Tanya kami")
    await page.click("button.main")
    await page.wait_for_selector("#snippet")
    snippet, secret = await page.inner_text("#snippet"), await page.inner_text("#made-secret")
    assert "<script" in snippet
    await page.click("a:text-is('Done')")
    await page.wait_for_selector("text=Change the account")
    assert secret not in await page.content()
    await page.go_back()
    assert secret not in await page.content()
    await page.goto("/console/live/channels/WIDGET")
    await page.click("button.danger")
    await page.wait_for_selector("text=Connect an account")
    await context.close()
