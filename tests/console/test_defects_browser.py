"""Defects that people met at the console, each in a real browser: one company and one session for all of them."""

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx
import pytest
from msgspec import Struct
from playwright.async_api import Browser, Dialog, Page, Route, expect

from sapa.db.pool import Database
from tests.browsers import new_context
from tests.conftest import TLS, Installation, connect, wait_until_ready
from tests.console.people import PASSWORD, make_person
from tests.console.test_workplace_browser import open_seat
from tests.factories import Environments, make_company, make_customer, make_key, make_order
from tests.faults.traffic import api_processes
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.shop_site import Browser as Visitor
from tests.messaging.shop_site import build_chat
from tests.support.ticket_steps import Desk

NAMESAKES = 12
"""More than a list of suggestions shows."""
CONTACTS = {"PHOTO_SOCIAL": "17841400123", "SOCIAL_NETWORK": "24001987", "SHORT_VIDEO": "tt-77001"}
CLICK_AFTER_TYPING = """(id) => {
    const search = document.querySelector(".find [type=search]");
    search.value = "nobody wrote this";
    search.dispatchEvent(new Event("input", { bubbles: true }));
    document.querySelector(`#${id} a`).click();
}"""
AREA = "Sukabungah, Sukajadi, Kota Bandung, Jawa Barat, 40162"


class Shop(Struct, frozen=True):
    company: Environments
    live: httpx.AsyncClient
    sandbox: httpx.AsyncClient
    desk: Desk


@pytest.fixture(scope="module")
async def shop(installation: Installation, database: Database) -> AsyncIterator[Shop]:
    company = await make_company(database)
    live, test = [(await make_key(database, id)).raw for id in (company.live, company.test)]
    async with (
        connect(installation, live) as api,
        connect(installation, test) as sandbox,
        connect_messaging(installation, test) as messaging,
    ):
        yield Shop(company, api, sandbox, Desk(messaging))


@pytest.fixture(scope="module")
async def page(browser: Browser, installation: Installation, database: Database, shop: Shop) -> AsyncIterator[Page]:
    """The owner's tab, in English."""
    email = await make_person(database, shop.company)
    async with open_seat(browser, installation, database, email) as tab:
        yield tab


async def find(page: Page, words: str, id: str) -> str:
    """Searches the inbox, which must show this conversation alone; returns the name that its row has."""
    await page.fill(".find [type=search]", words)
    await expect(page.locator(f"#rows li:has(.ticket):not(#{id})")).to_have_count(0)
    await expect(page.locator(f"#{id}")).to_be_visible()
    return await page.inner_text(f"#{id} .name")


async def check_name(page: Page, id: str, name: str) -> None:
    """The conversation and its customer are called as the row is."""
    await page.click(f"#{id} a")
    await page.wait_for_url(f"**/{id}?**")
    await expect(page.locator(".talk-head h2")).to_have_text(name)
    await expect(page.locator(".about h2").first).to_have_text(name)


async def wait_for_ticket(desk: Desk, text: str) -> str:
    async def look() -> str | None:
        listed = await desk.get("/tickets", sort="lastMessageAt:desc")
        return next((ticket["id"] for ticket in listed if ticket["lastMessage"] == text), None)

    return await eventually(look)


@pytest.mark.long
async def test_a_first_name_that_many_have_and_contacts_of_every_channel_are_found_under_one_name(
    page: Page, shop: Shop
) -> None:
    for number in range(NAMESAKES):
        fields = {"lastName": f"Ke{number}", "phoneNumber": f"+62812000{number:04}"}
        await make_customer(shop.sandbox, firstName="Ayunda", **fields)
    ids = {"ayunda": (await shop.desk.receive("Halo kak", "+628120000000"))["id"]}
    for source, sender in CONTACTS.items():
        ids[sender] = (await shop.desk.receive("Masih buka?", sender, source))["id"]
    await page.goto("/console/test/inbox?view=all")
    for words, id in ids.items():
        await check_name(page, id, await find(page, words, id))
    await find(page, "Ayunda Ke0", ids["ayunda"])


async def test_a_visitor_of_the_web_chat_is_found_by_name_words_and_what_the_list_calls_them(
    page: Page, shop: Shop, installation: Installation, database: Database
) -> None:
    chat = build_chat(installation, database, shop.company.test)
    known = {"id": "user-7", "name": "Dewi Anggraini", "hash": chat.prove("user-7")}
    ids = []
    async with httpx.AsyncClient(base_url=installation.address, verify=TLS) as client:
        for visitor, text in ((known, "Ada ukuran XL?"), ({}, "Bisa bayar di tempat?")):
            site = Visitor(client, chat)
            await site.join(**visitor)
            assert (await site.send(text)).status_code == 200
            ids.append(await wait_for_ticket(shop.desk, text))
    await page.goto("/console/test/inbox?view=all")
    for words in ("anggraini", "ukuran xl"):
        assert await find(page, words, ids[0]) == "Dewi Anggraini"
    name = await find(page, "bayar di tempat", ids[1])
    assert name.startswith("Visitor ")
    assert await find(page, name, ids[1]) == name
    await check_name(page, ids[1], name)


async def test_a_conversation_that_is_clicked_before_the_search_has_begun_stays_open(page: Page, shop: Shop) -> None:
    ticket = await shop.desk.receive("Sudah dikirim?", "+628120007777")
    await page.goto("/console/test/inbox?view=all")
    await page.evaluate(CLICK_AFTER_TYPING, ticket["id"])
    await page.wait_for_url(f"**/{ticket['id']}?**")
    await page.evaluate("new Promise((passed) => setTimeout(passed, 400))")  # a search waits for less
    assert ticket["id"] in page.url


async def test_a_store_needs_a_whole_area_in_its_own_city(page: Page, shop: Shop) -> None:
    await page.goto("/console/test/stores/new")
    await page.fill("[name=name]", "Toko Sukajadi")
    await page.fill("[name=address]", "Jl. Sukajadi 1")
    area = page.get_by_role("combobox", name="Sub-district, district, city or postal code")
    await area.fill("sukabungah")
    await page.click("form.form button.main")
    await expect(page.locator("main")).to_contain_text("choose the district of this address")
    await expect(area).to_have_value("sukabungah")
    await expect(page.locator("main")).not_to_contain_text("No area matches")
    await area.fill("")
    await area.press_sequentially("sukabungah band")
    await expect(page.get_by_role("option", name=AREA)).to_be_visible()
    await area.press("Enter")
    await expect(page.locator(".area-chosen")).to_have_text(AREA)
    await page.fill("[name=city]", "Surabaya")
    await page.click("form.form button.main")
    await expect(page.locator("main")).to_contain_text("is not the city of the chosen district")
    await expect(page.locator("[name=city]")).to_be_focused()
    assert (await shop.sandbox.get("/shipping/store-locations")).json()["meta"]["total"] == 0
    await page.fill("[name=city]", "Bandung")
    await page.click("form.form button.main")
    await expect(page.locator(".toasts")).to_have_text("Store location added")
    (store,) = (await shop.sandbox.get("/shipping/store-locations")).json()["data"]
    assert (store["kecamatanId"], store["kelurahanId"], store["city"]) == (327307, 3273071001, "Bandung")
    back = await page.go_back()
    assert back is None or back.status == 200
    await expect(page.locator("form.form [name=address]")).to_be_visible()
    assert (await shop.sandbox.get("/shipping/store-locations")).json()["meta"]["total"] == 1


@pytest.mark.long
async def test_an_invited_agent_gets_a_conversation_at_once_and_joins_in_indonesian(
    page: Page, shop: Shop, browser: Browser, installation: Installation
) -> None:
    id = (await shop.desk.receive("Siapa yang bisa bantu?", "+628129000001"))["id"]
    await page.goto("/console/test/people")
    await page.fill("[action$='/people'] [name=name]", "Budi Santoso")
    await page.fill("[action$='/people'] [name=email]", f"budi-{shop.company.live}@toko.example")
    await page.select_option("[action$='/people'] [name=role]", "agent")
    await page.click("[action$='/people'] button.main")
    link = await page.inner_text("#secret")
    await page.goto(f"/console/test/inbox/{id}?view=all")
    await page.click("#pop-assign summary")
    await page.select_option("#pop-assign select[name=agentId]", label="Budi Santoso")
    await page.click("#pop-assign button:text-is('Assign')")
    await expect(page.locator("#pop-assign summary")).to_contain_text("With Budi Santoso")
    context = await new_context(browser, base_url=installation.address, locale="id-ID")
    tab = await context.new_page()
    await tab.goto(urlsplit(link).path)
    await expect(tab.locator("html")).to_have_attribute("lang", "id")
    await tab.fill("[name=password]", PASSWORD)
    await tab.fill("[name=again]", PASSWORD)
    await tab.click("button.main")
    await tab.wait_for_url("**/inbox**")
    for address in (tab.url, "/console/live/orders", f"/console/test/inbox/{id}"):
        await tab.goto(address)
        await expect(tab.locator("html")).to_have_attribute("lang", "id")
    await expect(tab.locator("#pop-assign summary")).to_contain_text("Anda")
    await context.close()


async def test_an_address_that_is_not_there_stays_in_its_environment(page: Page) -> None:
    for environment, label in (("test", "Test"), ("live", "Live")):
        answer = await page.goto(f"/console/{environment}/nowhere/at/all")
        assert answer is not None
        assert answer.status == 404
        await expect(page.locator(".switch [aria-current]")).to_have_text(label)
        await expect(page.locator(".nav .notice")).to_have_count(int(environment == "test"))


async def test_points_by_hand_have_a_reason_an_author_and_an_entry_in_the_audit_log(page: Page, shop: Shop) -> None:
    id = (await make_customer(shop.live, firstName="Citra"))["id"]
    await page.goto(f"/console/live/loyalty/{id}")
    me = await page.inner_text(".account summary > span:last-child")
    name = me.split("\n")[0]
    await page.fill("[action$='/points'] [name=points]", "25")
    await page.click("[action$='/points'] button")
    reason = page.locator("[action$='/points'] [name=reason]")
    await expect(reason).to_be_focused()
    assert await reason.evaluate("field => field.validity.valueMissing")
    await reason.fill("Paket terlambat")
    await page.click("[action$='/points'] button")
    await expect(page.locator(".toasts")).to_have_text("Points changed")
    entry = page.locator("[aria-label=Ledger] tbody tr")
    await expect(entry).to_have_count(1)
    await expect(entry).to_contain_text("Paket terlambat")
    await expect(entry).to_contain_text(name)
    await page.goto("/console/live/audit")
    logged = page.locator("tbody tr").first
    await expect(logged).to_contain_text("Customer: +25, Paket terlambat")
    await expect(logged).to_contain_text(name)


async def test_a_cancelled_order_is_no_revenue(page: Page, shop: Shop) -> None:
    sales = page.locator(".kpi:has-text('Net sales today') strong")
    ids = [(await make_order(shop.live))["id"] for _ in range(2)]
    await page.goto("/console/live")
    await expect(sales).to_have_text("Rp\u00a0300,000")
    await page.goto(f"/console/live/orders/{ids[0]}")
    await page.click("button:text-is('Cancel order…')")
    await page.click("dialog [data-yes]")
    await expect(page.locator(".toasts")).to_contain_text("cancelled")
    await page.goto("/console/live")
    await expect(sales).to_have_text("Rp\u00a0150,000")
    await page.goto("/console/live/reports?days=7")
    await expect(page.locator("main")).to_contain_text("Rp\u00a0150,000")


async def test_the_way_back_from_an_order_keeps_the_lists_filters(page: Page, shop: Shop) -> None:
    order = await make_order(shop.live)
    filtered = "/console/live/orders?status=active&financialStatus=pending"
    await page.goto(filtered)
    await page.click(f"#list a[href$='{order['id']}']")
    await page.wait_for_url(f"**/orders/{order['id']}")
    await page.click(".crumbs a")
    await page.wait_for_url(f"**{filtered}")


async def test_a_form_whose_answer_was_lost_and_that_is_sent_again_after_a_restart_changes_once(
    page: Page, shop: Shop, installation: Installation
) -> None:
    async def lose_answer(route: Route) -> None:
        await route.fetch(max_redirects=0)
        await route.abort()

    await page.goto("/console/live/draft-orders/new")
    await page.fill("[name=title] >> nth=0", "Kopi")
    await page.fill("[name=price] >> nth=0", "10.000")
    await page.route("**/draft-orders/new", lose_answer)
    await page.click("button.main")
    await page.wait_for_url("chrome-error://**")
    await page.unroute("**/draft-orders/new")
    for process in api_processes(installation):
        process.kill()
    await asyncio.to_thread(wait_until_ready, installation)
    sent = await page.reload()
    assert sent is not None
    assert sent.request.redirected_from is not None
    assert sent.request.redirected_from.method == "POST"
    (draft,) = (await shop.live.get("/draft-orders")).json()["data"]
    assert page.url.endswith(f"/draft-orders/{draft['id']}")


async def test_a_form_waits_while_the_browser_is_offline_and_keeps_what_was_typed(page: Page, shop: Shop) -> None:
    id = (await make_customer(shop.live))["id"]
    await page.goto(f"/console/live/customers/{id}")
    await page.context.set_offline(True)
    await expect(page.locator("[data-offline]")).to_be_visible()
    await page.fill("[action$='/notes'] [name=notes]", "Suka kopi gelap")
    await page.click("[action$='/notes'] button")
    await expect(page.locator("[action$='/notes'] [name=notes]")).to_have_value("Suka kopi gelap")
    await page.context.set_offline(False)
    await expect(page.locator(".toasts")).to_have_text("Note added")
    await expect(page.locator("main")).to_contain_text("Suka kopi gelap")


async def test_leaving_a_form_that_waits_for_the_connection_asks_first(page: Page) -> None:
    asked: list[str] = []

    async def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        await dialog.dismiss()

    page.on("dialog", stay)
    await page.goto("/console/live/customers/new")
    await page.fill("[name=email]", "waits@example.com")
    await page.context.set_offline(True)
    await page.click("button.main")
    await page.evaluate("location.assign('/console/live/customers')")
    assert asked == ["beforeunload"]
    await page.context.set_offline(False)
    await expect(page.locator(".toasts")).to_have_text("Customer added")


async def test_the_address_itself_leads_to_the_console(page: Page) -> None:
    answer = await page.goto("/")
    assert answer is not None
    assert answer.status == 200
    await page.click("a:text-is('Console')")
    await expect(page.locator(".nav")).to_be_visible()
