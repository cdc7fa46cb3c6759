"""The inbox as one screen in a real browser: nothing is loaded again, nothing is lost, nobody answers twice."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Browser, FilePayload, Page, expect

from sapa.console.routes import COOKIE
from sapa.db.pool import Database
from sapa.people import actions as people
from sapa.people.types import Role
from tests.browsers import new_context
from tests.conftest import Installation
from tests.console.people import PASSWORD, make_person
from tests.factories import Environments
from tests.messaging.files.corpus import make_image
from tests.support.ticket_steps import Desk

READ_BAR = """() => {
  const bar = document.querySelector(".busy"), button = bar.querySelector("button");
  return { isWhole: bar.scrollWidth <= bar.clientWidth, height: button.offsetHeight };
}"""
SENDERS = [f"+62812345670{number}" for number in range(5)]


@asynccontextmanager
async def open_seat(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str, name: str, **options: Any
) -> AsyncIterator[Page]:
    """An agent's tab at the test environment's inbox; browser errors fail the test."""
    secret = await people.sign_in(database, email, PASSWORD, people.Origin("127.0.0.1", "test"))
    async with database.connection() as db:
        session = await people.find_session(db, secret)
    assert session is not None
    if name not in [agent["name"] for agent in await desk.get("/agents")]:
        await desk.create_agent(name, userId=session.user_id)
    size = {"width": 1440, "height": 900}
    context = await new_context(
        browser, base_url=installation.address, reduced_motion="reduce", **{"viewport": size, **options}
    )
    await context.add_cookies([{"name": COOKIE, "value": secret, "url": f"{installation.address}/console"}])
    page = await context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    await page.goto("/console/test/inbox?view=all")
    await page.evaluate("window.neverLeft = true")
    yield page
    await context.close()
    assert complaints == []


@pytest.fixture
async def email(database: Database, company: Environments) -> str:
    return await make_person(database, company, Role.AGENT)


async def test_a_conversation_is_answered_with_the_keyboard_and_nothing_is_loaded_again(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str
) -> None:
    await desk.post("/saved-replies", 201, shortcut="halo", text="Halo, saya {agen}.")
    await desk.post("/macros", 201, name="Mendesak", actions={"priority": "urgent"})
    tickets = [await desk.receive(f"Pertanyaan {n}", sender) for n, sender in enumerate(SENDERS[:3])]
    async with open_seat(browser, installation, database, desk, email, "Sari Wulandari") as page:
        await expect(page).to_have_title("(3) Inbox – Sapa")
        await page.keyboard.press("j")
        await expect(page.locator("#conversation")).to_contain_text("Pertanyaan 0")
        await expect(page.locator(f"#{tickets[0]['id']} a")).to_have_attribute("aria-current", "true")
        await page.keyboard.press("1")
        await expect(page.locator("#ticket-head")).to_contain_text("Urgent")
        await page.keyboard.press("r")
        await page.keyboard.type("/ha")
        await expect(page.locator("#reply [role=option]:visible")).to_have_count(1)
        await page.keyboard.press("Enter")
        await expect(page.locator("#reply textarea")).to_have_value("Halo, saya Sari Wulandari.")
        await page.keyboard.press("Control+Enter")
        await expect(page.locator(".line.out:not(.sending)")).to_contain_text("Halo, saya Sari Wulandari.")
        await expect(page.locator("#reply textarea")).to_have_value("")
        await expect(page.locator("#reply textarea")).to_be_focused()
        await page.keyboard.type("Sampai jumpa")
        await page.keyboard.press("Control+Shift+Enter")
        await page.wait_for_url(f"**/{tickets[1]['id']}?view=all")
        await expect(page).to_have_title("(2) Sandbox customer – Sapa")
        assert (await desk.look(tickets[0]))["status"] == "resolved"
        await page.keyboard.press("Escape")
        await page.keyboard.press("n")
        await page.keyboard.type("Tolong @wul")
        await page.keyboard.press("Enter")
        await page.keyboard.press("Control+Enter")
        await expect(page.locator(".line.note mark")).to_have_text("@Sari Wulandari")
        await page.keyboard.press("Escape")
        await page.keyboard.press("e")
        await page.wait_for_url(f"**/{tickets[2]['id']}?view=all")
        await page.click(".toasts button:text-is('Undo')")
        await expect(page.locator("#conversation")).to_contain_text("Reopened")
        await page.go_back()
        await page.wait_for_url(f"**/{tickets[2]['id']}?view=all")
        await expect(page.locator("#conversation")).to_contain_text("Pertanyaan 2")
        await page.keyboard.press("?")
        await expect(page.locator("#keys")).to_be_visible()
        await page.keyboard.press("Escape")
        assert await page.evaluate("window.neverLeft"), "no page was loaded"


async def sign_in_again(page: Page, email: str) -> None:
    await page.wait_for_url("**/console/sign-in**")
    await page.fill("[name=email]", email)
    await page.fill("[name=password]", PASSWORD)
    await page.click("button.main")


@pytest.mark.long
async def test_what_was_typed_survives_other_messages_a_reload_another_device_and_an_expired_session(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str
) -> None:
    first, second = [await desk.receive(f"Pertanyaan {n}", sender) for n, sender in enumerate(SENDERS[:2])]
    async with open_seat(browser, installation, database, desk, email, "Sari") as page:
        await page.click(f"#{first['id']} a")
        await page.fill("#reply textarea", "Sebentar ya, saya cek")
        await desk.receive("Halo?", SENDERS[0])
        await expect(page.locator("#conversation")).to_contain_text("Halo?")
        assert await page.input_value("#reply textarea") == "Sebentar ya, saya cek"
        await page.click(f"#{second['id']} a")
        await expect(page.locator("#reply textarea")).to_have_value("")
        await page.click(f"#{first['id']} a")
        await expect(page.locator("#reply textarea")).to_have_value("Sebentar ya, saya cek")
        phone = {"width": 390, "height": 844}
        async with open_seat(browser, installation, database, desk, email, "Sari", viewport=phone) as other:
            await other.click(f"#{first['id']} a")
            await expect(other.locator("#reply textarea")).to_have_value("Sebentar ya, saya cek")
            await expect(other.locator(".queue")).to_be_hidden()
            await other.click(".talk [data-view-to=customer]")
            await expect(other.locator(".about")).to_be_visible()
            await other.click(".about .back")
            await expect(other.locator(".talk")).to_be_visible()
            await other.click(".talk [data-view-to=customer]")
            await other.go_back()
            await expect(other.locator(".talk")).to_be_visible()
            await expect(other.locator("#reply textarea")).to_have_value("Sebentar ya, saya cek")
            await other.click(".talk .back")
            await expect(other.locator(".queue")).to_be_visible()
            assert other.url.endswith("/inbox?view=all"), "the way back keeps the filters"
        await page.click("#reply label[for=kind-note]")
        await page.fill("#note textarea", "Stok sisa dua")
        await page.click("#note [data-send]")
        await expect(page.locator(".line.note:not(.sending)")).to_have_count(1)
        await page.context.clear_cookies(name=COOKIE)
        await page.fill("#reply textarea", "Sudah saya cek")
        await desk.receive("Jadi bagaimana?", SENDERS[0])
        await sign_in_again(page, email)
        await page.wait_for_url(f"**/{first['id']}?view=all")
        await expect(page.locator(".queue")).to_be_visible()
        assert await page.input_value("#reply textarea") == "Sudah saya cek"
        assert await page.input_value("#note textarea") == "", "what was sent does not come back"
        await page.context.clear_cookies(name=COOKIE)
        await page.click("#reply [data-send]")
        await sign_in_again(page, email)
        await page.wait_for_url(f"**/{first['id']}?view=all")
        assert await page.input_value("#reply textarea") == "Sudah saya cek"
        await page.click("#reply [data-send]")
        await expect(page.locator(".line.out:not(.sending)")).to_contain_text("Sudah saya cek")
        await expect(page.locator(".sending")).to_have_count(0)
        await page.context.clear_cookies(name=COOKIE)
        await page.reload()
        await sign_in_again(page, email)
        await page.wait_for_url(f"**/{first['id']}?view=all")
        assert await page.input_value("#reply textarea") == "", "it was sent"
        await page.click(".account summary")
        await page.click("button:text-is('Sign out')")
        await sign_in_again(page, email)
        await expect(page.locator(".account")).not_to_have_attribute("open", "")


async def test_two_agents_see_each_other_and_answer_once(
    browser: Browser, installation: Installation, database: Database, company: Environments, desk: Desk, email: str
) -> None:
    ticket = await desk.receive("Masih ada?", SENDERS[0])
    email_2 = await make_person(database, company, Role.AGENT)
    async with (
        open_seat(browser, installation, database, desk, email, "Sari") as sari,
        open_seat(browser, installation, database, desk, email_2, "Budi") as budi,
    ):
        for page in (sari, budi):
            await page.click(f"#{ticket['id']} a")
            await expect(page.locator("#conversation")).to_contain_text("Masih ada?")
        is_wide = await sari.evaluate("document.querySelector('#reply').offsetWidth > 300")
        assert is_wide, "the composer fills its pane"
        present = {one["agentId"] for one in await desk.get("/agents/presence") if one["status"] == "online"}
        assert present == {agent["id"] for agent in await desk.get("/agents")}, "who has the inbox open is online"
        await budi.locator("#reply textarea").press_sequentially("Masih, kak")
        await expect(sari.locator("#typing strong")).to_have_text("Budi is replying")
        await sari.set_viewport_size({"width": 390, "height": 844})
        bar = await sari.evaluate(READ_BAR)
        assert (bar["isWhole"], bar["height"] >= 44) == (True, True), bar
        await sari.set_viewport_size({"width": 1440, "height": 900})
        await sari.fill("#reply textarea", "Masih ada, kak")
        await expect(budi.locator("#typing strong")).to_have_text("Sari is replying")
        await budi.click("#reply [data-send]")
        await expect(budi.locator(".line.out:not(.sending)")).to_have_count(1)
        await expect(sari.locator(".line.out")).to_have_count(1)
        await sari.click("#reply [data-send]")
        await expect(sari.locator("#reply .asked")).to_contain_text("Budi replied while you were writing.")
        await expect(sari.locator("#reply textarea")).to_have_value("Masih ada, kak")
        sent = [one for one in (await desk.look(ticket))["messages"] if one["direction"] == "out"]
        assert [one["body"] for one in sent] == ["Masih, kak"]
        await sari.click("#reply .asked button")
        await expect(sari.locator(".line.out:not(.sending)")).to_have_count(2)

        other = await desk.receive("Bisa COD?", SENDERS[1])
        await desk.act(
            other, "notes", 201, agentId=(await desk.get("/agents", search="Budi"))[0]["id"], body="@Sari cek ya"
        )
        await expect(sari.locator("#queue-mentions")).to_contain_text("1 conversation mentions you")
        counts = "fetch(document.body.dataset.alerts).then((answer) => answer.json())"
        assert (await sari.evaluate(counts))["counts"]["mentioned"] == 1
        assert (await budi.evaluate(counts))["counts"]["mentioned"] == 0
        await sari.click("#queue-mentions a")
        await expect(sari.locator("#conversation mark")).to_have_text("@Sari")
        await expect(sari.locator("#queue-mentions")).to_be_hidden()
        assert (await sari.evaluate(counts))["counts"]["mentioned"] == 0


async def test_the_queue_searches_filters_and_changes_several(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str
) -> None:
    tickets = [await desk.receive(f"Pertanyaan {n}", sender) for n, sender in enumerate(SENDERS)]
    photo = FilePayload(name="kopi.png", mimeType="image/png", buffer=make_image("PNG", (640, 480)))
    async with open_seat(browser, installation, database, desk, email, "Sari") as page:
        await page.keyboard.press("/")
        await page.keyboard.type("tanyaan 3")
        await expect(page.locator("#rows .ticket")).to_have_count(1)
        await page.click("#rows .ticket")
        await page.wait_for_url(f"**/{tickets[3]['id']}?**search=**")
        await page.set_input_files("#reply [name=files]", [photo])
        await page.click("#reply [data-send]")
        await page.click(".photo")
        await page.click("dialog.lightbox img")
        await expect(page.locator("dialog.lightbox")).to_have_count(0)
        await page.press(".photo", "Enter")
        await expect(page.locator("dialog.lightbox img")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.locator("dialog.lightbox")).to_have_count(0)
        await expect(page.locator(".photo")).to_be_focused()
        await page.fill(".find [type=search]", "")
        await expect(page.locator("#rows .ticket")).to_have_count(5)
        for ticket in tickets[:2]:
            await page.locator(f"#{ticket['id']} .pick").check(force=True)
        await expect(page.locator("#bulk output")).to_have_text("2 chosen")
        await page.select_option("#bulk select", "priority:high")
        await page.click("#bulk button")
        await expect(page.locator(".toasts")).to_have_text("2 conversations changed")
        await expect(page.locator(".pick:checked")).to_have_count(0)
        for ticket in tickets[:2]:
            await page.locator(f"#{ticket['id']} .pick").check(force=True)
        await page.select_option("#bulk select", "resolve")
        await page.click("#bulk button")
        await expect(page.locator(".toasts")).to_contain_text("2 conversations changed")
        await expect(page.locator("#rows .ticket")).to_have_count(3)

        await desk.act(tickets[4], "assign", agentId=(await desk.get("/agents"))[0]["id"])
        await page.click("#queue-filters summary")
        await page.select_option("#filters [name=agentId]", label="Sari")
        await page.fill("#queue-filters [name=name]", "Sari saja")
        await page.click("#queue-filters button:text-is('Save view')")
        await page.wait_for_url("**/inbox?saved=*")
        await expect(page.locator("#queue-filters")).not_to_have_attribute("open", "")
        await expect(page.locator("#rows .ticket")).to_have_count(2)
        [view] = await desk.get("/views")
        assert view["filters"]["agentId"] == (await desk.get("/agents"))[0]["id"]
        await page.hover("#tickets")
        for ticket in tickets[3:]:
            await desk.act(ticket, "resolve")
        await expect(page.locator("#queue-empty")).to_be_visible()
        await expect(page.locator("[data-fresh]")).to_be_hidden()
        assert await page.evaluate("window.neverLeft")
