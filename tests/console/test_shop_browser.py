"""The shop, its settings and defects that were found by hand, in a real browser: one session for several of them."""

import re

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from sapa.console.import_pages import MAX_MAPPED
from sapa.db.pool import Database
from tests.conftest import Installation
from tests.console.people import make_person
from tests.console.test_workplace_browser import open_seat
from tests.factories import Environments, make_customer, make_import, make_key, make_order, make_product
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.shop_site import Chat, open_site
from tests.support.ticket_steps import Desk

WORD = "Kopinusantarasejahteraabadimakmursentosajayabersama"
LONG = {"title": "Kopi Arabika Gayo Wine Process Premium Reserve 1 kilogram", "price": 123_456_789, "quantity": 100}


@pytest.fixture
async def email(database: Database, company: Environments) -> str:
    return await make_person(database, company)


async def is_cut_off(page: Page, selector: str) -> bool:
    cut: bool = await page.locator(selector).first.evaluate("part => part.scrollWidth > part.clientWidth")
    return cut


async def test_an_order_is_made_with_the_keyboard_and_found_and_changed_in_its_list(
    browser: Browser, installation: Installation, database: Database, api: httpx.AsyncClient, email: str
) -> None:
    variant = {"title": "250 g", "price": 85_000, "sku": "TRJ-250", "inventoryQuantity": 7}
    await make_product(api, name="Kopi Toraja", variants=[variant])
    ayu = await make_customer(api, firstName="Ayunda")
    async with open_seat(browser, installation, database, email) as page:
        await page.goto(f"/console/live/customers/{ayu['id']}")
        await page.click("a:text-is('New order')")
        await expect(page.locator("[name=customer]")).to_have_value("Ayunda")
        article = page.locator("[name=title]").first
        await article.fill("toraja")
        option = page.locator(".options [role=option]").first
        await expect(option).to_contain_text("Rp 85,000 · 7 left")
        await article.press("Enter")
        await expect(article).to_have_value("Kopi Toraja · 250 g")
        await page.click("button.main:text-is('Create order')")
        await expect(page.locator(".toasts")).to_contain_text("created")
        order = (await api.get("/orders")).json()["data"][0]
        assert (order["customer"]["id"], order["total"]) == (ayu["id"], 85_000)
        await page.goto("/console/live/orders?status=active")
        await page.fill("form.search [type=search]", "nobody at all")
        await expect(page.locator("#list")).to_contain_text("No orders match")
        await page.fill("form.search [type=search]", order["orderNumber"])
        await expect(page.locator("#list tbody tr")).to_have_count(1)
        kept = f"search={order['orderNumber']}&status=active"
        await expect(page.locator("#saved [name=query]")).to_have_value(kept)
        await expect(page.locator("#export")).to_have_attribute("href", re.compile(f"search={order['orderNumber']}"))
        await expect(page.locator("[data-bulk-actions]")).to_be_hidden()
        await page.check("[data-all]")
        await page.click("button:text-is('Mark as paid')")
        await expect(page.locator("dialog h2")).to_have_text("Mark the chosen orders as paid?")
        assert (await api.get(f"/orders/{order['id']}")).json()["data"]["financialStatus"] == "pending"
        await page.click("dialog [data-yes]")
        await expect(page.locator(".toasts")).to_contain_text("1 order marked as paid")
        assert (await api.get(f"/orders/{order['id']}")).json()["data"]["financialStatus"] == "paid"
        await page.goto("/console/live/orders?status=active&search=ayunda")
        await page.click("#list tbody th a")
        await expect(page.locator(".crumbs a")).to_have_attribute(
            "href", "/console/live/orders?status=active&search=ayunda"
        )


async def test_the_lines_of_an_order_are_whole_beside_the_side_column(
    browser: Browser, installation: Installation, database: Database, api: httpx.AsyncClient, email: str
) -> None:
    line = LONG | {"discount": {"percentage": 5}}
    order = await make_order(api, lineItems=[line, LONG], discounts=[{"percentage": 10}])
    await api.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})
    refund = {"lineItems": [{"id": order["lineItems"][0]["id"], "quantity": 3}]}
    assert (await api.post(f"/orders/{order['id']}/refunds", json=refund)).status_code == 201
    async with open_seat(browser, installation, database, email) as page:
        for width in (1440, 1280, 1100, 390):
            await page.set_viewport_size({"width": width, "height": 900})
            await page.goto(f"/console/live/orders/{order['id']}")
            assert not await is_cut_off(page, ".scroll:has(.lines)"), width


MIDDLES = "(parts) => parts.map((part) => part.getBoundingClientRect()).map(({ top, height }) => top + height / 2)"


async def test_the_longest_words_and_amounts_fit_into_a_phone(
    browser: Browser,
    installation: Installation,
    database: Database,
    company: Environments,
    api: httpx.AsyncClient,
    email: str,
) -> None:
    lines = [{"title": WORD * 2, "price": 999_999_999, "quantity": 999}]
    more = {"discounts": [{"title": WORD, "percentage": 2.5}], "shippingLines": [{"title": WORD, "price": 18_000}]}
    order = await make_order(api, lineItems=lines, **more)
    async with connect_messaging(installation, (await make_key(database, company.live)).raw) as messaging:
        desk = Desk(messaging)
        await desk.create_agent(WORD)
        await desk.post("/labels", 201, name=WORD[:50])
        await desk.post("/saved-replies", 201, shortcut="kopi", text=WORD * 2)
    async with open_seat(browser, installation, database, email, viewport={"width": 320, "height": 640}) as page:
        for path in (f"orders/{order['id']}", "settings/labels", "settings/saved-replies", "settings/teams"):
            await page.goto(f"/console/live/{path}")
            assert await page.evaluate("document.documentElement.scrollWidth") == 320, path


async def test_what_is_printed_is_whole_and_dark_on_white(
    browser: Browser, installation: Installation, database: Database, api: httpx.AsyncClient, email: str
) -> None:
    await make_order(api)
    paper = {"width": 718, "height": 1000}
    async with open_seat(browser, installation, database, email, viewport=paper, color_scheme="dark") as page:
        url = f"{installation.address}/console"
        await page.context.add_cookies([{"name": "sapa_theme", "value": "dark", "url": url}])
        await page.goto("/console/live/reports")
        tables = page.locator(".scroll:has(.numbers)")
        assert await is_cut_off(page, ".scroll:has-text('Gross sales')")
        await page.emulate_media(media="print")
        for table in await tables.all():
            size = "part => [part.scrollWidth - part.clientWidth, part.scrollHeight - part.clientHeight]"
            assert await table.evaluate(size) == [0, 0]
        assert not await is_cut_off(page, ".kpis")
        assert await page.locator("h1").evaluate("part => getComputedStyle(part).color") == "rgb(18, 32, 29)"
        await expect(page.locator("button, .button, [download], .nav").locator("visible=true")).to_have_count(0)


async def test_the_controls_of_a_person_stand_in_one_line(
    browser: Browser, installation: Installation, database: Database, email: str
) -> None:
    async with open_seat(browser, installation, database, email) as page:
        await page.set_viewport_size({"width": 1440, "height": 900})
        await page.goto("/console/live/settings/team")
        row = "main tbody tr:first-child"
        middles = await page.eval_on_selector_all(f"{row} :is(button, select, input:not([type=hidden]))", MIDDLES)
        assert len(middles) == 7
        assert max(middles) - min(middles) <= 2


async def test_the_red_button_of_a_refund_names_the_amount(
    browser: Browser, installation: Installation, database: Database, api: httpx.AsyncClient, email: str
) -> None:
    order = await make_order(api, lineItems=[{"title": "Kopi Gayo", "price": 545_000, "quantity": 2}])
    await api.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})
    async with open_seat(browser, installation, database, email) as page:
        await page.goto(f"/console/live/orders/{order['id']}#refund")
        yes = page.locator("dialog [data-yes]")
        for typed, deed in (("", "Refund"), ("40k", "Refund Rp\u00a040,000"), ("lots", "Refund")):
            await page.fill("#refund [name=amount]", typed)
            await page.click("#refund button")
            assert await yes.inner_text() == deed
            await page.keyboard.press("Escape")
        await page.fill("#refund [name=amount]", "")
        await page.fill("#refund [name^='refund-']", "1")
        await page.click("#refund button")
        await expect(page.locator("dialog h2")).to_have_text("Record this refund?")
        assert await yes.inner_text() == "Refund Rp\u00a0545,000"
        await page.keyboard.press("Escape")
        await page.fill("#refund [name^='refund-']", "")
        await page.fill("#refund [name=amount]", "40.000")
        await page.click("#refund button")
        await page.click("dialog [data-yes]")
        await expect(page.locator("#refund [name=amount]")).to_have_value("")
        await page.click("button:text-is('Refund everything…')")
        assert await yes.inner_text() == "Refund Rp 1,050,000"


async def test_the_chat_is_dressed_previewed_and_its_snippet_stays_at_hand(
    browser: Browser, installation: Installation, database: Database, email: str
) -> None:
    async with open_seat(browser, installation, database, email) as page:
        await page.goto("/console/live/channels/WIDGET")
        await page.fill("[name=title]", "Tanya kami")
        await page.fill("[name=color]", "#b3261e")
        await page.fill("[name=greeting]", "Halo kak")
        preview = page.locator("[data-chat-preview]")
        await expect(preview.get_by_text("Your name")).to_be_hidden()
        await page.select_option("[name=form]", "name")
        await expect(preview.get_by_text("Your name")).to_be_visible()
        await expect(preview.get_by_text("Email or phone number")).to_be_hidden()
        await page.select_option("[name=form]", "contact")
        await expect(preview.get_by_text("Email or phone number")).to_be_visible()
        await page.fill("[type=color]", "#0b2e2a")
        await expect(page.locator("[name=color]")).to_have_value("#0b2e2a")
        await page.fill("[name=color]", "#b3261e")
        await expect(page.locator("[type=color]")).to_have_value("#b3261e")
        await expect(page.locator("[data-chat-preview] [data-text=title]")).to_have_text("Tanya kami")
        await expect(page.locator("[data-chat-preview] [data-fill]").first).to_have_attribute("fill", "#b3261e")
        await page.click("button.main")
        snippet = await page.inner_text("#snippet")
        await page.click("a:text-is('Done')")
        await expect(page.locator("#snippet")).to_have_text(snippet)
        await page.reload()
        await expect(page.locator("#snippet")).to_have_text(snippet)
        await expect(page.locator("main")).not_to_contain_text("WIDGET")
        key = snippet.partition('data-key="')[2].partition('"')[0]
        async with open_site(Chat(installation.address, key, "")) as site:
            await page.goto(site)
            launch = page.locator("button.launch")
            await expect(launch).to_have_css("background-color", "rgb(179, 38, 30)")
            await launch.click()
            await expect(page.get_by_role("dialog", name="Tanya kami")).to_contain_text("Halo kak")
            await page.get_by_label("Nama Anda").fill("Ayu")
            await page.get_by_label("Email atau nomor telepon").fill("0812345678")
            await page.get_by_role("button", name="Mulai mengobrol").click()
            await page.get_by_role("textbox", name="Tulis pesan").fill("Masih buka?")
            await page.get_by_role("button", name="Kirim", exact=True).click()
            await expect(page.get_by_role("log")).to_contain_text("Masih buka?")
        await page.goto("/console/live/inbox")
        await page.get_by_role("link", name="Masih buka?").click()
        await expect(page.locator(".stated")).to_contain_text("Ayu, +62 812-345-678")


# What a browser does for a page that nobody looks at: its notifications, tones and badge are written down.
WATCH = """
  window.announced = { notices: [], tones: 0, badge: null };
  Object.defineProperty(document, "hidden", { get: () => true });
  window.Notification = class extends EventTarget {
    static permission = "granted";
    static async requestPermission() {}
    constructor(title, options) {
      super();
      announced.notices.push({ title, notice: this, ...options });
    }
    close() {}
  };
  const started = OscillatorNode.prototype.start;
  OscillatorNode.prototype.start = function () { announced.tones += 1; started.call(this); };
  navigator.setAppBadge = async (count) => { announced.badge = count; };
"""
SAY = "() => ({ ...announced, notices: announced.notices.map((one) => one.body) })"


async def test_what_is_new_is_announced_once_and_a_notification_opens_it(
    browser: Browser, installation: Installation, database: Database, company: Environments, email: str
) -> None:
    """In the title, on the badge, by a sound and on the desktop, as the profile says; here without a worker."""
    async with (
        open_seat(browser, installation, database, email, service_workers="block") as page,
        connect_messaging(installation, (await make_key(database, company.test)).raw) as messaging,
    ):
        desk = Desk(messaging)
        await page.add_init_script(WATCH)
        await page.goto("/console/profile")
        await page.check("[name=kind][value=order]")
        await page.uncheck("[name=mail]")
        for name in ("sound", "desktop"):
            await page.check(f"[name={name}]")
        await page.click("#alerts button.main")
        await expect(page.locator(".toasts")).to_be_visible()
        await expect(page.locator("[name=kind][value=order]")).to_be_checked()
        await expect(page.locator("[name=mail]")).not_to_be_checked()
        await expect(page.locator("main")).to_contain_text("this browser")
        await page.goto("/console/test/products")
        await page.evaluate("lookForAlerts()")
        first = await desk.receive("Halo kak", "+628123456790")
        await page.mouse.click(5, 5)  # a page plays nothing before it was touched
        await look_until(page, "(1) Products – Sapa")
        await expect(page.locator("body")).to_have_attribute("data-alerted", "unassigned")
        said = {"notices": ["A new conversation waits"], "tones": 1, "badge": 1}
        assert await page.evaluate(SAY) == said
        await page.evaluate("lookForAlerts()")
        assert await page.evaluate(SAY) == said, "once"

        await desk.act(first, "resolve")
        second = await desk.receive("Masih buka?", "+628123456791")
        await page.evaluate("lookForAlerts()")
        assert await page.evaluate(SAY) == {"notices": ["A new conversation waits"] * 2, "tones": 2, "badge": 1}, (
            "another one"
        )
        await page.evaluate("announced.notices[1].notice.dispatchEvent(new Event('click'))")
        await page.wait_for_url(f"**/inbox/{second['id']}")
        await page.add_init_script(
            "window.Notification = class { static permission = 'granted'; constructor() { throw TypeError(); } };"
        )
        await page.goto("/console/test/products")
        await desk.receive("Halo?", "+628123456792")
        await look_until(page, "(2) Products – Sapa")
        assert (await page.evaluate(SAY))["tones"] == 1, "a browser without such notifications"


async def look_until(page: Page, title: str) -> None:
    """The counts of the menu are cached for a moment."""

    async def look() -> bool | None:
        await page.evaluate("lookForAlerts()")
        return await page.title() == title or None

    await eventually(look)


@pytest.mark.long
async def test_a_table_with_more_columns_than_the_form_shows_is_uploaded_mapped_and_imported(
    browser: Browser, installation: Installation, database: Database, email: str
) -> None:
    columns = ["Pelanggan", "Nomor", *(f"Kolom {number}" for number in range(MAX_MAPPED))]
    values = ["Ayu Lestari", "0812345678", *["x"] * MAX_MAPPED]
    file = f"{','.join(columns)}\n{','.join(values)}\n".encode()
    async with open_seat(browser, installation, database, email) as page:
        await page.goto("/console/live/imports")
        await page.set_input_files("[name=file]", {"name": "pelanggan.csv", "mimeType": "text/csv", "buffer": file})
        await page.click("form[enctype] button")
        await page.wait_for_url("**/mapping")
        fields = page.locator("[name=field]")
        await expect(fields).to_have_count(MAX_MAPPED)
        await fields.nth(0).select_option("name")
        await fields.nth(1).select_option("phoneNumber")
        await page.click("button:text-is('Show the preview again')")
        await expect(page.locator("main")).to_contain_text("+62812345678")
        await page.click("button.main:text-is('Import')")
        await expect(page.locator("main")).to_contain_text("1 created", timeout=30_000)


@pytest.mark.long
async def test_progress_is_shown_again_after_the_browser_was_offline(
    browser: Browser, installation: Installation, database: Database, api: httpx.AsyncClient, email: str
) -> None:
    lines = [f"buyer-{number}@toko.example,Buyer" for number in range(8_000)]
    job = await make_import(api, "\n".join(["email,firstName", *lines]).encode())
    async with open_seat(browser, installation, database, email) as page:
        await page.goto(f"/console/live/imports/{job['id']}")
        async with page.expect_event("requestfailed"):
            await page.context.set_offline(True)
        await page.context.set_offline(False)
        await expect(page.locator(".head .state")).to_have_text("succeeded")
