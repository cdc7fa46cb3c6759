"""The web chat in a real browser, on a page of another origin that permits only what the chat requires."""

import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import msgspec
import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from sapa.db.pool import Database
from sapa.support.business_hours.types import DAYS
from tests.browsers import new_context, new_page
from tests.cli.command import sapa
from tests.conftest import Installation
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.shop_site import Chat, build_chat, open_site

# Chromium's own messages about requests that are meant to fail.
EXPECTED = re.compile("Failed to load resource: .*(?:ERR_INTERNET_DISCONNECTED|status of 401).*").match

PICTURE = "https://images.example/kopi.png"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f6"
    "45400000000049454e44ae426082"
)

# For every text in the chat: the contrast ratio to its background, by WCAG 2.
POOR_CONTRASTS = """() => {
  const root = document.querySelector("[data-sapa-widget]").shadowRoot;
  const parse = (text) => (text.match(/[0-9.]+/g) || [0, 0, 0, 0]).map(Number);
  const linear = (v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => .2126 * linear(r / 255) + .7152 * linear(g / 255) + .0722 * linear(b / 255);
  const behind = (node) => {
    if (!node) return [255, 255, 255];
    const [r, g, b, a = 1] = parse(getComputedStyle(node).backgroundColor);
    const under = a < 1 ? behind(node.parentElement) : [0, 0, 0];
    return [r, g, b].map((v, i) => v * a + under[i] * (1 - a));
  };
  const holdsText = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  const texts = [...root.querySelectorAll("*")].filter((node) => node.checkVisibility() && holdsText(node));
  return texts.map((node) => {
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    return [(a + .05) / (b + .05), node.tagName, node.className, node.textContent.trim().slice(0, 40)];
  }).filter(([ratio]) => ratio < 4.5);
}"""


@pytest.fixture
def chat(installation: Installation, database: Database, company: Environments) -> Chat:
    return build_chat(installation, database, company.test)


@pytest.fixture
async def site(chat: Chat) -> AsyncIterator[str]:
    async with open_site(chat) as address:
        yield address


@pytest.fixture
async def page(browser: Browser, site: str) -> AsyncIterator[Page]:
    """The shop's page in Indonesian. Its console stays without errors."""
    context = await new_context(browser, viewport={"width": 1000, "height": 760}, reduced_motion="reduce")
    await context.route(PICTURE, lambda route: route.fulfill(body=PIXEL, content_type="image/png"))
    opened = await context.new_page()
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    await opened.goto(site)
    yield opened
    await context.close()
    assert [text for text in complaints if not EXPECTED(text)] == []


class Company:
    """The company's side."""

    def __init__(self, shop: httpx.AsyncClient, database: Database, company_id: int) -> None:
        self._shop = shop
        self._database = database
        self._company_id = company_id

    async def list_received(self) -> list[dict[str, Any]]:
        async with self._database.connection() as db:
            rows = await db.fetch(
                "SELECT body FROM events WHERE company_id = $1 AND kind = 'message.received' ORDER BY number",
                self._company_id,
            )
        return [msgspec.json.decode(row[0]) for row in rows]

    async def receive(self, many: int = 1) -> dict[str, Any]:
        """The newest message, once there are `many`."""

        async def look() -> list[dict[str, Any]] | None:
            received = await self.list_received()
            return received if len(received) >= many else None

        received = await eventually(look)
        assert len(received) == many
        return received[-1]

    async def send(self, to: str, kind: str = "send", **fields: Any) -> str:
        answer = await self._shop.post(f"/messages/{kind}", json={"to": to, "sources": "WIDGET", **fields})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["data"]["messageId2"])

    async def read(self, id: str) -> dict[str, Any]:
        message: dict[str, Any] = (await self._shop.get(f"/messages/{id}")).json()["data"]
        return message

    async def show_typing(self, id: str) -> None:
        assert (await self._shop.post(f"/messages/{id}/typing")).status_code == 204

    async def wait_for(self, id: str, status: str) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            message = await self.read(id)
            return message if message["status"] == status else None

        return await eventually(look)


@pytest.fixture
def desk(sandbox: httpx.AsyncClient, database: Database, company: Environments) -> Company:
    return Company(sandbox, database, company.test)


def connect_chat(installation: Installation, company: Environments, *fields: str) -> Chat:
    """A live chat with a look of its own."""
    named = [part for field in fields for part in ("--set", field)]
    arguments = ["--company", str(company.live), "--source", "WIDGET", "--json", *named]
    created = sapa(installation.data, "channel", "connect", *arguments).json()
    key = created["snippet"].partition('data-key="')[2].partition('"')[0]
    return Chat(installation.address, key, created["generated"]["secret"])


def launcher(page: Page) -> Locator:
    return page.locator("button.launch")


def log(page: Page) -> Locator:
    return page.get_by_role("log")


async def write(page: Page, text: str) -> None:
    await page.get_by_role("textbox", name="Tulis pesan").fill(text)
    await page.get_by_role("button", name="Kirim", exact=True).click()


async def start(page: Page, desk: Company, text: str = "Halo, kopi Gayo masih ada?") -> str:
    """Opens the chat and writes; returns the visitor's id."""
    await page.get_by_role("button", name="Buka obrolan").click()
    await write(page, text)
    return str((await desk.receive())["clientNumber"])


async def test_a_visitor_writes_is_answered_and_reads(page: Page, desk: Company) -> None:
    visitor_id = await start(page, desk)
    assert (await desk.list_received())[0]["body"] == "Halo, kopi Gayo masih ada?"
    await expect(log(page).get_by_text("Halo, kopi Gayo masih ada?")).to_have_count(1)
    id = await desk.send(visitor_id, message="Masih ada, kak. https://shop.example/gayo.")
    await expect(log(page).get_by_text("Masih ada, kak.")).to_be_visible()
    link = log(page).get_by_role("link", name="https://shop.example/gayo")
    assert await link.get_attribute("href") == "https://shop.example/gayo"
    message = await desk.wait_for(id, "read")
    assert message["sentAt"] <= message["deliveredAt"] <= message["readAt"]
    await write(page, "Terima kasih")
    await desk.receive(2)
    assert (await desk.read(id))["repliedAt"] is not None


async def test_a_visitor_sees_that_a_reply_is_being_written(page: Page, desk: Company) -> None:
    visitor_id = await start(page, desk)
    await desk.send(visitor_id, message="Sebentar, kak.")
    await expect(log(page).get_by_text("Sebentar, kak.")).to_be_visible()
    writing = page.get_by_text("Sedang menulis balasan…")
    await expect(writing).to_be_hidden()
    await desk.show_typing((await desk.receive())["messageId2"])
    await expect(writing).to_be_visible()
    await desk.send(visitor_id, message="Masih ada.")
    await expect(log(page).get_by_text("Masih ada.")).to_be_visible()
    await expect(writing).to_be_hidden()


async def test_a_message_to_a_closed_chat_is_delivered_and_read_once_it_is_seen(page: Page, desk: Company) -> None:
    visitor_id = await start(page, desk)
    await page.get_by_role("button", name="Tutup obrolan").first.click()
    ids = [await desk.send(visitor_id, message=f"Kabar {number}") for number in (1, 2)]
    await expect(page.get_by_role("button", name="Buka obrolan, 2 pesan belum dibaca")).to_be_visible()
    for id in ids:
        await desk.wait_for(id, "delivered")
    await launcher(page).click()
    for id in ids:
        await desk.wait_for(id, "read")
    await launcher(page).click()
    await expect(page.get_by_role("button", name="Buka obrolan", exact=True)).to_be_visible()


async def test_a_message_outside_the_view_is_not_read_yet(page: Page, desk: Company) -> None:
    visitor_id = await start(page, desk)
    await desk.send(visitor_id, message="\n".join(f"Baris {number}" for number in range(80)))
    await expect(log(page).get_by_text("Baris 79")).to_be_attached()
    await log(page).evaluate("node => node.scrollTop = 0")
    id = await desk.send(visitor_id, message="Di bawah")
    await desk.wait_for(id, "delivered")
    await log(page).evaluate("node => node.scrollTop = node.scrollHeight")
    await desk.wait_for(id, "read")


async def test_buttons_and_lists_are_chosen_from(page: Page, desk: Company) -> None:
    visitor_id = await start(page, desk)
    buttons = [{"id": "yes", "title": "Ya, digiling"}, {"id": "no", "title": "Biji utuh"}]
    asked = {"type": "buttons", "body": "Mau digiling?", "footer": "Gratis", "buttons": buttons}
    id = await desk.send(visitor_id, "send-interactive", interactive=asked)
    await page.get_by_role("button", name="Ya, digiling").click()
    chosen = await desk.receive(2)
    assert chosen["interaction"] == {"kind": "button", "id": "yes", "title": "Ya, digiling"}
    assert (await desk.read(id))["repliedAt"] is not None
    await expect(page.get_by_role("button", name="Biji utuh")).to_be_disabled()
    rows = [{"id": "g", "title": "Gayo", "description": "250 g"}, {"id": "t", "title": "Toraja"}]
    listed = {
        "type": "list",
        "body": "Kopi apa?",
        "button": "Lihat pilihan",
        "sections": [{"title": "Biji", "rows": rows}],
    }
    await desk.send(visitor_id, "send-interactive", interactive=listed)
    await page.get_by_role("button", name="Lihat pilihan").click()
    await page.get_by_role("button", name="Toraja").click()
    assert (await desk.receive(3))["interaction"] == {"kind": "list", "id": "t", "title": "Toraja"}
    link = {"type": "cta_url", "body": "Lacak kiriman", "displayText": "Lacak", "url": "https://shop.example/track"}
    await desk.send(visitor_id, "send-interactive", interactive=link)
    tracked = log(page).get_by_role("link", name="Lacak")
    assert await tracked.get_attribute("href") == "https://shop.example/track"


async def test_pictures_are_shown_and_files_linked(page: Page, desk: Company) -> None:
    visitor_id = await start(page, desk)
    await desk.send(visitor_id, "send-media", mediaUrl=PICTURE, mediaType="image", caption="Kopi Gayo")
    picture = log(page).locator("img")
    await expect(picture).to_be_visible()
    await expect(log(page).get_by_role("listitem").last).to_contain_text("Kopi Gayo")
    document = {"mediaUrl": "https://files.example/a.pdf", "mediaType": "document", "filename": "Tagihan.pdf"}
    await desk.send(visitor_id, "send-media", **document)
    link = log(page).get_by_role("link", name="Tagihan.pdf")
    assert await link.get_attribute("href") == "https://files.example/a.pdf"


async def test_text_is_shown_as_text_and_never_run(page: Page, desk: Company) -> None:
    visitor_id = await start(page, desk, "<img src=x onerror=alert(1)>")
    await desk.send(visitor_id, message="<script>document.title = 'bad'</script> javascript:alert(1)")
    await expect(log(page).get_by_text("<script>document.title = 'bad'</script>")).to_be_visible()
    await expect(log(page).get_by_text("<img src=x onerror=alert(1)>")).to_be_visible()
    assert await log(page).locator("img, script, a").count() == 0
    assert await page.title() == "Toko Kopi"


async def test_the_conversation_is_there_again_after_the_page_was_left(page: Page, desk: Company, site: str) -> None:
    visitor_id = await start(page, desk)
    await page.goto("about:blank")
    await desk.send(visitor_id, message="Sampai nanti")
    await page.goto(site)
    await expect(page.get_by_role("button", name="Buka obrolan, 1 pesan belum dibaca")).to_be_visible()
    await launcher(page).click()
    await expect(log(page).get_by_text("Halo, kopi Gayo masih ada?")).to_have_count(1)
    await expect(log(page).get_by_text("Sampai nanti")).to_have_count(1)
    await write(page, "Saya kembali")
    assert (await desk.receive(2))["clientNumber"] == visitor_id


async def test_after_a_reconnect_nothing_is_missing_or_duplicated(page: Page, desk: Company) -> None:
    visitor_id = await start(page, desk)
    await page.context.set_offline(True)
    for number in range(3):
        await desk.send(visitor_id, message=f"Saat putus {number}")
    await page.get_by_role("textbox").fill("Saya juga menulis")
    await page.keyboard.press("Enter")
    await page.context.set_offline(False)
    for number in range(3):
        await expect(log(page).get_by_text(f"Saat putus {number}")).to_have_count(1)
    assert (await desk.receive(2))["body"] == "Saya juga menulis"
    await expect(log(page).get_by_text("Saya juga menulis")).to_have_count(1)


async def test_the_chat_works_with_the_keyboard(page: Page, desk: Company) -> None:
    for _ in range(2):
        await page.keyboard.press("Tab")
    await expect(launcher(page)).to_be_focused()
    await page.keyboard.press("Enter")
    box = page.get_by_role("textbox", name="Tulis pesan")
    await expect(box).to_be_focused()
    await page.keyboard.type("Baris satu")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("Baris dua")
    await page.keyboard.press("Enter")
    assert (await desk.receive())["body"] == "Baris satu\nBaris dua"
    await page.keyboard.press("Escape")
    await expect(launcher(page)).to_be_focused()
    await expect(page.get_by_role("dialog")).to_be_hidden()
    assert await launcher(page).get_attribute("aria-expanded") == "false"


async def test_a_verified_visitor_is_recognised_and_a_forged_hash_is_refused(
    page: Page, desk: Company, chat: Chat
) -> None:
    who = {"id": "user-7", "name": "Ayu", "hash": chat.prove("user-7")}
    forged = {"id": "user-8", "name": "Ayu", "hash": chat.prove("user-7")}
    await page.wait_for_function("() => !!window.sapa?.identify")
    await page.evaluate("who => window.sapa.identify(who)", who)
    visitor_id = await start(page, desk)
    refusal = await page.evaluate(
        "who => window.sapa.identify(who).then(() => 'believed', (error) => error.code)", forged
    )
    assert refusal == "INVALID_HASH"
    await page.evaluate("() => window.sapa.reset()")
    await expect(log(page).get_by_text("Halo, kopi Gayo masih ada?")).to_have_count(0)
    await write(page, "Siapa saya?")
    assert (await desk.receive(2))["clientNumber"] != visitor_id
    await page.evaluate("who => window.sapa.identify(who)", who)
    await expect(log(page).get_by_text("Halo, kopi Gayo masih ada?")).to_have_count(1)
    await expect(log(page).get_by_text("Siapa saya?")).to_have_count(0)


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_it_can_be_read_by_day_and_night(page: Page, desk: Company, colours: Any) -> None:
    await page.emulate_media(color_scheme=colours)
    visitor_id = await start(page, desk)
    buttons = [{"id": "yes", "title": "Ya"}, {"id": "no", "title": "Tidak"}]
    asked = {"type": "buttons", "body": "Mau digiling?", "footer": "Gratis", "buttons": buttons}
    await desk.send(visitor_id, "send-interactive", interactive=asked)
    await expect(page.get_by_role("button", name="Ya")).to_be_visible()
    assert await page.evaluate(POOR_CONTRASTS) == []


async def offer_choices(desk: Company, visitor_id: str) -> None:
    rows = [{"id": "250", "title": "250 g"}]
    asked = {"type": "list", "body": "Berapa?", "button": "Pilih", "sections": [{"title": "Berat", "rows": rows}]}
    await desk.send(visitor_id, "send-interactive", interactive=asked)


@pytest.mark.parametrize("color", ["#ffd34d", "#0b2e2a", "#777777"])
async def test_a_companys_colour_can_be_read_by_day_and_night(
    browser: Browser, installation: Installation, database: Database, company: Environments, live: httpx.AsyncClient,
    color: str,
) -> None:  # fmt: skip
    desk = Company(live, database, company.live)
    async with open_site(connect_chat(installation, company, f"color={color}")) as site:
        page = await new_page(browser)
        await page.goto(site)
        visitor_id = await start(page, desk)
        await offer_choices(desk, visitor_id)
        await page.get_by_role("button", name="Pilih").click()
        await expect(page.get_by_role("button", name="250 g")).to_be_visible()
        for colours in ("light", "dark"):
            await page.emulate_media(color_scheme=colours)
            assert await page.evaluate(POOR_CONTRASTS) == [], colours
        await page.close()


async def test_the_agents_name_and_the_form_are_there_when_the_looks_arrive_late(
    browser: Browser, installation: Installation, database: Database, company: Environments, live: httpx.AsyncClient
) -> None:
    desk = Company(live, database, company.live)
    async with open_site(connect_chat(installation, company, "agent=Tim Kopi", "form=name")) as site:
        page = await new_page(browser)

        async def delay(route: Route) -> None:
            await page.wait_for_timeout(1000)
            await route.continue_()

        await page.route("**/look", delay)
        await page.goto(site)
        await launcher(page).click()
        await page.get_by_label("Nama Anda").fill("Ayu")
        await page.get_by_role("button", name="Mulai mengobrol").click()
        await write(page, "Halo")
        visitor_id = str((await desk.receive())["clientNumber"])
        await desk.send(visitor_id, message="Halo, kak")
        await expect(log(page).get_by_text("Tim Kopi")).to_be_visible()
        await page.reload()
        await launcher(page).click()
        await expect(log(page).get_by_text("Tim Kopi")).to_be_visible()
        await page.close()


async def test_it_uses_the_pages_language(browser: Browser, site: str) -> None:
    opened = await new_page(browser)
    await opened.goto(f"{site}?lang=en-GB")
    await opened.get_by_role("button", name="Open chat").click()
    await expect(opened.get_by_role("textbox", name="Write a message")).to_be_visible()
    await expect(opened.get_by_role("dialog", name=re.compile("Sandbox|Chat"))).to_be_visible()
    await opened.close()


async def test_on_a_phone_it_fills_the_screen(browser: Browser, site: str) -> None:
    opened = await new_page(browser, viewport={"width": 360, "height": 640})
    await opened.goto(site)
    await opened.get_by_role("button", name="Buka obrolan").click()
    dialog = opened.get_by_role("dialog")
    await dialog.evaluate("shown => Promise.all(shown.getAnimations().map((one) => one.finished))")
    box = await dialog.bounding_box()
    assert box == {"x": 0, "y": 0, "width": 360, "height": 640}
    assert await opened.evaluate("document.documentElement.scrollWidth") <= 360
    await opened.close()


@pytest.mark.parametrize(
    ("lang", "opens"),
    [("id", r"Sedang tutup\. Buka lagi \w{{3}}, {day} \w{{3}}, 11\.00\."),
     ("en", r"Closed now\. Open again \w{{3}},? {day} \w{{3}},? 11:00\.")],
)  # fmt: skip
async def test_a_closed_company_says_when_it_opens_by_the_visitors_clock(
    browser: Browser, site: str, sandbox: httpx.AsyncClient, lang: str, opens: str
) -> None:
    """Open every day at nine in Jakarta, which is eleven in Tokyo, but not on these holidays."""
    today = datetime.now(ZoneInfo("Asia/Jakarta")).date()
    hours = {
        "timeZone": "Asia/Jakarta",
        "weekly": [{"day": day, "opens": "09:00", "closes": "17:00"} for day in DAYS],
        "holidays": [{"date": str(today + timedelta(days=days))} for days in (-1, 0, 1)],
    }
    assert (await sandbox.put("/business-hours", json=hours)).status_code == 200
    opened = await new_page(browser, timezone_id="Asia/Tokyo")
    await opened.goto(f"{site}?lang={lang}")
    await launcher(opened).click()
    shown = re.compile(opens.format(day=(today + timedelta(days=2)).day))
    await expect(opened.get_by_role("dialog").get_by_text(shown)).to_be_visible()
    always = {"timeZone": "Asia/Jakarta", "weekly": [], "holidays": []}
    assert (await sandbox.put("/business-hours", json=always)).status_code == 200
    await opened.goto(f"{site}?lang={lang}")
    await launcher(opened).click()
    await expect(opened.get_by_role("dialog").get_by_role("textbox")).to_be_visible()
    await expect(opened.locator(".hours")).to_be_hidden()
    await opened.close()
