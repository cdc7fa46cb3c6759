"""The inbox in a real browser, with a visitor of a shop's site on the other side."""

from collections.abc import AsyncIterator
from typing import Literal

import pytest
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser, FilePayload, Page, expect

from sapa.db.pool import Database
from sapa.people.types import Role
from tests.browsers import new_context
from tests.conftest import Installation
from tests.console.people import PASSWORD, make_person
from tests.console.test_browser import WIDTHS
from tests.factories import Environments
from tests.messaging.files.corpus import make_image
from tests.messaging.shop_site import build_chat, open_site

LOOKS: list[tuple[str, Literal["light", "dark"], str]] = [("desk", "light", "en"), ("phone", "dark", "id")]
IS_BELOW = """() => {
  const [queue, talk] = ["#tickets", "#talk"].map((part) => document.querySelector(part).getBoundingClientRect());
  return talk.height > 50 && queue.bottom <= talk.top;
}"""


@pytest.fixture
async def agent(
    browser: Browser, installation: Installation, database: Database, company: Environments
) -> AsyncIterator[Page]:
    """A person with the role agent at the test environment's inbox; browser errors fail the test."""
    email = await make_person(database, company, Role.AGENT)
    context = await new_context(
        browser, base_url=installation.address, viewport=WIDTHS["desk"], locale="en-GB", reduced_motion="reduce"
    )
    page = await context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if "Content Security" in message.text else None)
    await page.goto("/console/test/inbox")
    await page.fill("[name=email]", email)
    await page.fill("[name=password]", PASSWORD)
    await page.click("button.main")
    await page.wait_for_url("**/console/test/inbox")
    yield page
    assert complaints == []
    await context.close()


@pytest.fixture
async def visitor(
    browser: Browser, installation: Installation, database: Database, company: Environments
) -> AsyncIterator[Page]:
    """A visitor at the shop's page, in Indonesian, with the chat open."""
    async with open_site(build_chat(installation, database, company.test)) as address:
        context = await new_context(browser, viewport={"width": 1000, "height": 760}, reduced_motion="reduce")
        page = await context.new_page()
        await page.goto(address)
        await page.get_by_role("button", name="Buka obrolan").click()
        yield page
        await context.close()


async def write(visitor: Page, text: str) -> None:
    await visitor.get_by_role("textbox", name="Tulis pesan").fill(text)
    await visitor.get_by_role("button", name="Kirim", exact=True).click()


async def check(page: Page, width: str, scheme: Literal["light", "dark"]) -> None:
    """No serious axe finding, nothing cut off, not too large."""
    await page.set_viewport_size(WIDTHS[width])
    await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    found = (await Axe().run(page)).response["violations"]
    assert [one["id"] for one in found if one["impact"] in {"serious", "critical"}] == [], page.url
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url
    assert len((await page.content()).encode()) < 200_000


async def test_a_chat_is_answered_and_the_pages_update_themselves(agent: Page, visitor: Page) -> None:
    await agent.set_viewport_size({"width": 390, "height": 844})
    assert await agent.evaluate(IS_BELOW), "nothing covers the end of the queue"
    await agent.set_viewport_size(WIDTHS["desk"])
    await agent.fill("[name=name]", "Sari")
    await agent.click("button:has-text('Begin')")
    await expect(agent.locator("#tickets .empty")).to_be_visible()
    await expect(agent.locator("[data-lost]")).to_be_hidden()
    await agent.evaluate("window.neverLeft = true")

    await write(visitor, "Halo, kopi Gayo masih ada?")
    row = agent.locator("#rows li:has(.ticket)")
    await expect(row).to_contain_text("Halo, kopi Gayo masih ada?")
    assert await agent.evaluate("window.neverLeft")
    for width, scheme, _ in LOOKS:
        await check(agent, width, scheme)

    await row.locator("a").click()
    await agent.wait_for_url("**/inbox/tkt_*")
    await agent.fill("[name=body]", "Masih ada, kak.")
    await agent.click("#reply [data-send]")
    await expect(visitor.get_by_role("log").get_by_text("Masih ada, kak.")).to_be_visible()
    await expect(agent.locator(".tick.read")).to_have_count(1)
    await expect(agent.locator("#ticket-head")).to_contain_text("With you")

    await visitor.get_by_role("textbox", name="Tulis pesan").press_sequentially("Ki")
    await expect(agent.locator("#typing")).to_contain_text("The customer is typing")
    await expect(agent.locator("[data-lost]")).to_be_hidden()
    await agent.fill("[name=body]", "Sebentar")
    await write(visitor, "Kirim ke Bandung bisa?")
    await expect(agent.locator(".line.in")).to_have_count(2)
    await expect(agent.locator("#typing")).to_be_empty()
    assert await agent.input_value("[name=body]") == "Sebentar"

    await agent.click("#pop-later summary")
    await agent.click("#pop-later button >> nth=1")
    await expect(agent.locator("#scheduled")).to_contain_text("Sebentar")
    await expect(agent.locator("[name=body]")).to_have_value("")
    await expect(agent.locator(".line.out")).to_have_count(1)
    await agent.click("#scheduled button")
    await expect(agent.locator("[name=body]")).to_have_value("Sebentar")
    await expect(agent.locator("#scheduled")).to_be_empty()
    for width, scheme, language in LOOKS:
        await agent.set_viewport_size(WIDTHS["desk"])
        await agent.click(".account summary")
        await agent.click(f".menu button[value={language}]")
        await expect(agent.locator("html")).to_have_attribute("lang", language)
        await check(agent, width, scheme)


# A file that is pasted or dropped, as a browser hands it over.
TRANSFER = """(node, [kind, name, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name, { type: "text/plain" }));
  const options = { bubbles: true, cancelable: true };
  node.dispatchEvent(kind === "paste" ? new ClipboardEvent("paste", { ...options, clipboardData: transfer })
    : new DragEvent("drop", { ...options, dataTransfer: transfer }));
}"""
# What is waited for is a function: a page's policy forbids to evaluate a text again later.
IS_LOADED = "(picture) => picture.complete && picture.naturalWidth > 0"


async def test_files_go_both_ways(agent: Page, visitor: Page) -> None:
    """Picked, pasted and dropped, on both sides."""
    photo: FilePayload = {"name": "kopi.png", "mimeType": "image/png", "buffer": make_image("PNG", (640, 480))}
    await agent.fill("[name=name]", "Sari")
    await agent.click("button:has-text('Begin')")
    box = visitor.get_by_role("textbox", name="Tulis pesan")
    await visitor.locator("[data-sapa-widget] input[type=file]").set_input_files([photo])
    await box.evaluate(TRANSFER, ["paste", "catatan.txt", "dari visitor"])
    await visitor.locator("[data-sapa-widget] .panel").evaluate(TRANSFER, ["drop", "salah.txt", "salah"])
    await visitor.get_by_role("button", name="Hapus salah.txt").click()
    await expect(visitor.locator(".chosen li")).to_have_text(["kopi.png✕", "catatan.txt✕"])
    await write(visitor, "Ini fotonya")
    await expect(visitor.locator(".one.mine[data-number] img.picture")).to_have_count(1)

    await agent.locator("#rows a.ticket").first.click()
    await agent.wait_for_url("**/inbox/tkt_*")
    picture = agent.locator(".line.in img.thumbnail")
    await expect(picture).to_have_attribute("alt", "kopi.png")
    await picture.scroll_into_view_if_needed()
    await agent.wait_for_function(f"() => ({IS_LOADED})(document.querySelector('.line.in img.thumbnail'))")
    await expect(agent.locator(".line.in")).to_contain_text("catatan.txt")
    await check(agent, "desk", "light")

    await agent.set_input_files("#reply [name=files]", [photo])
    await agent.locator("[name=body]").evaluate(TRANSFER, ["paste", "nota.txt", "nota"])
    await agent.locator("#reply").evaluate(TRANSFER, ["drop", "daftar.txt", "daftar"])
    await expect(agent.locator("#reply [data-chosen] li")).to_have_count(3)
    await agent.get_by_role("button", name="Remove nota.txt").click()
    await agent.fill("[name=body]", "Ini daftarnya")
    await agent.click("#reply [data-send]")
    answer = visitor.locator(".one:not(.mine)")
    await expect(answer).to_contain_text("Ini daftarnya")
    await expect(answer.get_by_role("link")).to_have_count(2)
    await expect(answer).to_contain_text("daftar.txt")
    await visitor.wait_for_function(
        f"""() => ({IS_LOADED})(
            document.querySelector('[data-sapa-widget]').shadowRoot.querySelector('.one:not(.mine) img'))"""
    )
