"""What agents write in the inbox, in a real browser: nothing of it is lost, and what was not sent is told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, FilePayload, Page, Route, expect

from sapa.db.pool import Database
from sapa.people.types import Role
from tests.conftest import Installation
from tests.console.people import make_person
from tests.console.test_inbox_screen import open_seat
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.send_steps import make_template
from tests.support.ticket_steps import Desk, Json

SENDERS = [f"+62812345680{number}" for number in range(3)]
REPLY, NOTE, SEND, FILES = "#reply textarea", "#note textarea", "#reply [data-send]", "#reply [data-chosen] li"
NOTA: FilePayload = {"name": "nota.txt", "mimeType": "text/plain", "buffer": b"nota"}
PROGRAM: FilePayload = {"name": "program.exe", "mimeType": "application/octet-stream", "buffer": b"MZ" + bytes(99)}
PUT_CARET = """(field) => { field.focus(); field.setSelectionRange(3, 3); }"""
INSERT = """() => {
  const button = make("button", { type: "button", "data-insert": "https://toko.example/lacak/7" });
  document.querySelector("#about").append(button);
  button.click();
}"""
READ_CARET = """() => [document.activeElement.name, document.activeElement.selectionStart]"""
# A phone's keyboard that covers the page without making it smaller.
COVER = """(height) => {
  Object.defineProperty(visualViewport, "height", { value: height, configurable: true });
  visualViewport.dispatchEvent(new Event("resize"));
}"""
READ_BOTTOM = """() => document.querySelector("#reply [data-send]").getBoundingClientRect().bottom"""


@pytest.fixture
async def email(database: Database, company: Environments) -> str:
    return await make_person(database, company, Role.AGENT)


@asynccontextmanager
async def held(page: Page, path: str, *, is_lost: bool = False) -> AsyncIterator[asyncio.Event]:
    """A form's request waits until the block ends or the event is set; then it goes on, or its connection is lost."""
    arrived, released = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        arrived.set()
        await released.wait()
        await (route.abort() if is_lost else route.continue_())

    await page.route(path, hold)
    try:
        yield arrived
    finally:
        released.set()
        await page.unroute_all(behavior="wait")


async def list_sent(desk: Desk, ticket: Json) -> list[str]:
    return [one["body"] for one in (await desk.look(ticket))["messages"] if one["direction"] == "out"]


async def wait_for_draft(database: Database, ticket: Json, text: str) -> None:
    async def is_kept() -> bool | None:
        async with database.connection() as db:
            bodies = await db.fetch("SELECT body FROM reply_drafts WHERE ticket_id = $1", ticket["id"])
        return [row["body"] for row in bodies] == [text] or None

    await eventually(is_kept)


async def open_ticket(page: Page, ticket: Json) -> None:
    await page.click(f"#{ticket['id']} a")
    await expect(page.locator(f"#{ticket['id']} a")).to_have_attribute("aria-current", "true")


async def test_replies_notes_and_files_survive_every_other_action(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str
) -> None:
    await desk.post("/macros", 201, name="Minta foto", actions={"priority": "urgent"}, reply="Boleh kirim fotonya?")
    first, second = [await desk.receive(f"Pertanyaan {n}", sender) for n, sender in enumerate(SENDERS[:2])]
    async with open_seat(browser, installation, database, desk, email, "Sari") as page:
        await open_ticket(page, first)
        await page.fill(REPLY, "Sebentar ya ")
        await page.set_input_files("#reply [name=files]", [NOTA])
        await page.click("#reply label[for=kind-note]")
        await page.fill(NOTE, "Cek stok ")
        async with held(page, "**/assign?*") as arrived:
            await page.evaluate("document.querySelector('#take').form.requestSubmit()")
            await arrived.wait()
            await page.fill(NOTE, "Cek stok dulu")
            await page.locator(NOTE).evaluate(PUT_CARET)
        await expect(page.locator(".toasts")).to_have_text("Assigned")
        assert await page.evaluate(READ_CARET) == ["note", 3]
        assert [await page.input_value(NOTE), await page.input_value(REPLY)] == ["Cek stok dulu", "Sebentar ya "]
        await expect(page.locator(FILES)).to_have_count(1)
        await expect(page.locator(NOTE)).to_be_visible()

        await open_ticket(page, second)
        await expect(page.locator(FILES)).to_have_count(0)
        assert [await page.input_value(NOTE), await page.input_value(REPLY)] == ["", ""]
        await open_ticket(page, first)
        await expect(page.locator(FILES)).to_have_count(1)
        assert [await page.input_value(NOTE), await page.input_value(REPLY)] == ["Cek stok dulu", "Sebentar ya "]
        await page.reload()
        assert [await page.input_value(NOTE), await page.input_value(REPLY)] == ["Cek stok dulu", "Sebentar ya "]

        async with held(page, "**/macro?*") as arrived:
            await page.click("#pop-macros summary")
            await page.click("#pop-macros button")
            await arrived.wait()
            await page.fill(REPLY, "Sebentar ya kak")
            await wait_for_draft(database, first, "Sebentar ya kak")
            await page.fill(REPLY, "Sebentar ya kak,")
        await expect(page.locator(REPLY)).to_have_value("Sebentar ya kak,\nBoleh kirim fotonya?")
        await page.click("#reply label[for=kind-note]")
        await page.press(NOTE, "Control+Enter")
        await expect(page.locator(".line.note:not(.sending)")).to_contain_text("Cek stok dulu")
        await expect(page.locator(REPLY)).to_be_focused()
        await page.reload()
        assert [await page.input_value(NOTE), await page.input_value(REPLY)] == [
            "", "Sebentar ya kak,\nBoleh kirim fotonya?"
        ]  # fmt: skip
        await page.click("#reply label[for=kind-note]")
        await page.evaluate(INSERT)
        await expect(page.locator(NOTE)).to_have_value("https://toko.example/lacak/7")


async def test_what_is_typed_while_sending_stays_and_what_was_not_sent_is_told_with_a_way_back(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str
) -> None:
    budi = await desk.create_agent("Budi")
    await make_template(desk.client)
    first, second = [await desk.receive(f"Pertanyaan {n}", sender) for n, sender in enumerate(SENDERS[:2])]
    async with open_seat(browser, installation, database, desk, email, "Sari") as page:
        await open_ticket(page, first)
        await page.fill(REPLY, "Masih ada")
        async with held(page, "**/replies?*") as arrived:
            await page.click(SEND)
            await arrived.wait()
            await expect(page.locator(REPLY)).to_have_value("")
            await page.fill(REPLY, "Warna apa")
        await expect(page.locator(".line.out:not(.sending)")).to_contain_text("Masih ada")
        await expect(page.locator(".sending")).to_have_count(0)  # the answer is shown
        await expect(page.locator(REPLY)).to_have_value("Warna apa")
        await expect(page.locator(REPLY)).to_be_focused()

        await page.set_input_files("#reply [name=files]", [NOTA])
        async with held(page, "**/replies?*") as arrived:
            await page.click(SEND)
            await arrived.wait()
            await desk.reply(first, budi, "Sudah saya jawab")
            await open_ticket(page, second)
            await page.fill(REPLY, "Untuk yang kedua")
        unsent = page.locator(".unsent")
        await expect(unsent).to_contain_text("Not sent to Sandbox customer.")
        assert await page.input_value(REPLY) == "Untuk yang kedua"
        await unsent.locator("a").click()
        await expect(page.locator(f"#{first['id']} a")).to_have_attribute("aria-current", "true")
        await expect(unsent).to_have_count(0)
        await expect(page.locator(REPLY)).to_have_value("Warna apa")
        await expect(page.locator(FILES)).to_have_count(1)
        assert await list_sent(desk, first) == ["Masih ada", "Sudah saya jawab"]

        await page.get_by_role("button", name="Remove nota.txt").click()
        async with held(page, "**/replies?*", is_lost=True) as arrived:
            await page.click(SEND)
            await arrived.wait()
            await open_ticket(page, second)
        await expect(unsent).to_contain_text("Not sent to Sandbox customer.")
        await expect(page.locator(REPLY)).to_have_value("Untuk yang kedua")
        await wait_for_draft(database, first, "Warna apa")
        await page.reload()
        await open_ticket(page, first)
        await expect(page.locator(REPLY)).to_have_value("Warna apa")

        await page.set_input_files("#reply [name=files]", [NOTA, PROGRAM, NOTA])
        await page.click(SEND)
        await expect(page.locator("#reply .problem")).to_contain_text("It accepts image up to 5 MB")
        await expect(page.locator(FILES)).to_have_text(["program.exe (1 KB)✕", "nota.txt (1 KB)✕"])
        await expect(page.locator(REPLY)).to_have_value("")
        assert await page.evaluate("sessionStorage.getItem(KEPT)") is None

        await page.click("#template summary")
        await page.click("#template form.inline button")
        for place, text in enumerate(("Ayu", "INV-1")):
            await page.fill(f"#template [name=param] >> nth={place}", text)
        async with held(page, "**/template?*", is_lost=True) as arrived:
            await page.click("#template button.main")
            await arrived.wait()
            await open_ticket(page, second)
        await expect(unsent).to_have_text("Not sent to Sandbox customer. Open")


@pytest.mark.long
async def test_offline_and_on_a_phone(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str
) -> None:
    first, second = [await desk.receive(f"Pertanyaan {n}", sender) for n, sender in enumerate(SENDERS[:2])]
    async with open_seat(browser, installation, database, desk, email, "Sari", has_touch=True) as page:
        await open_ticket(page, first)
        await page.route("**/draft", lambda route: route.abort())
        await page.fill(REPLY, "Sebentar ya")
        await page.reload()
        await expect(page.locator(REPLY)).to_have_value("Sebentar ya")
        await page.unroute_all(behavior="wait")
        await page.evaluate("dispatchEvent(new Event('online'))")
        await wait_for_draft(database, first, "Sebentar ya")
        await page.context.set_offline(True)
        banner = page.locator("[data-offline]")
        await expect(banner).to_have_text("You're offline. What you type is kept.")
        await expect(page.locator(SEND)).to_be_in_viewport(ratio=1)
        await expect(page.locator(".queue .title")).to_be_in_viewport(ratio=1)
        await page.click(f"#{second['id']} a")
        await expect(page.locator(".toasts")).to_contain_text("Not loaded")
        await expect(page.locator(".ticket[aria-current]")).to_have_count(1)
        await expect(page.locator(f"#{first['id']} a")).to_have_attribute("aria-current", "true")
        await page.fill(REPLY, "Sekali saja")
        for _ in range(2):
            await page.press(REPLY, "Control+Enter")
        await expect(banner).to_have_text("You're offline. It is sent when you're online again.")
        await expect(page.locator(REPLY)).to_have_value("Sekali saja")
        await page.context.set_offline(False)
        await expect(page.locator(".line.out:not(.sending)")).to_have_count(1)
        await expect(page.locator(REPLY)).to_have_value("")
        await expect(banner).to_be_hidden()

        await page.set_viewport_size({"width": 390, "height": 844})
        await page.evaluate(COVER, 500)
        assert await page.evaluate(READ_BOTTOM) <= 500
        await page.evaluate(COVER, 844)
        await page.set_viewport_size({"width": 390, "height": 450})
        await expect(page.locator(SEND)).to_be_in_viewport(ratio=1)
        await page.set_viewport_size({"width": 390, "height": 844})
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.click(".talk-head .more")
        await page.click("#pop-snooze summary")
        await page.fill("#pop-snooze [name=until]", "2020-01-01T09:00")
        await page.click("#pop-snooze form:has([name=until]) button")
        await expect(page.locator("#until-problem")).to_be_visible()
        await expect(page.locator("#pop-snooze [name=until]")).to_be_focused()
        await expect(page.locator("#pop-snooze [name=until]")).to_have_value("2020-01-01T09:00")
        for _ in range(2):
            await page.keyboard.press("Escape")
        await page.fill(REPLY, "Terima kasih")
        await page.click("#reply [name=resolve]")
        await page.wait_for_url(f"**/{second['id']}?**")
        assert await list_sent(desk, first) == ["Sekali saja", "Terima kasih"]
        assert (await desk.look(first))["status"] == "resolved"


async def test_a_placeholder_that_nothing_filled_in_is_chosen_and_not_sent(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str
) -> None:
    await desk.post("/saved-replies", 201, shortcut="dikirim", text="Halo, pesanan {pesanan} dikirim: {resi}.")
    ticket = await desk.receive("Sudah dikirim?")
    async with open_seat(browser, installation, database, desk, email, "Sari") as page:
        await page.click(f"#{ticket['id']} a")
        await page.locator(REPLY).press_sequentially("Kak, /dikirim")
        await page.press(REPLY, "Enter")
        await expect(page.locator(REPLY)).to_have_value("Kak, Halo, pesanan {pesanan} dikirim: {resi}.")
        await page.keyboard.type("1042")
        await expect(page.locator(REPLY)).to_have_value("Kak, Halo, pesanan 1042 dikirim: {resi}.")
        await page.press(REPLY, "Control+Enter")
        await expect(page.locator("#body-problem")).to_have_text("Replace {resi} before you send, or take it out")
        await expect(page.locator(REPLY)).to_have_value("Kak, Halo, pesanan 1042 dikirim: {resi}.")
        assert (await desk.look(ticket))["messages"][-1]["body"] == "Sudah dikirim?"
        await page.click("#reply button:text-is('Send as it is')")
        await expect(page.locator(".line.out")).to_contain_text("Kak, Halo, pesanan 1042 dikirim: {resi}.")
        await expect(page.locator("#reply button:text-is('Send as it is')")).to_have_count(0)
        assert await page.evaluate("window.neverLeft")
        await page.fill(REPLY, "Pesanan 1042 dikirim: JNE7.")
        await page.press(REPLY, "Control+Enter")
        await expect(page.locator(".line.out").last).to_contain_text("dikirim: JNE7.")
