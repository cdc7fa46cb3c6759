"""A conversation in a real browser: its days, films and failures, and the contact who becomes a customer."""

import re

import httpx
import pytest
from playwright.async_api import Browser, FilePayload, expect

from sapa.db.pool import Database
from sapa.people import actions as people
from sapa.people.types import Role
from tests.conftest import TLS, Installation, connect
from tests.console.people import make_person
from tests.console.test_inbox_screen import open_seat
from tests.factories import Environments, make_customer, make_key, make_order
from tests.http.wire import eventually
from tests.messaging.shop_site import Browser as Visitor
from tests.messaging.shop_site import build_chat
from tests.shipping import parcels
from tests.support.ticket_steps import Desk

DAY = 86_400
FAILING = "+12015550111"
FILM: FilePayload = {"name": "film.mp4", "mimeType": "video/mp4", "buffer": b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom"}


@pytest.fixture
async def email(database: Database, company: Environments) -> str:
    return await make_person(database, company, Role.AGENT)


@pytest.mark.long
async def test_days_films_and_messages_that_failed(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str
) -> None:
    ticket = await desk.receive("Masih ada?", FAILING)
    await desk.pass_time(2 * DAY)
    await desk.receive("Halo?", FAILING)
    async with open_seat(browser, installation, database, desk, email, "Sari") as page:
        await page.click(f"#{ticket['id']} a")
        days = page.locator(".line.day")
        await expect(days).to_have_count(2)
        await expect(days.nth(1)).to_have_text("Today")
        await expect(page.locator(".window")).to_have_text(re.compile(r"^Reply window: 23 h \d+ min left$"))
        await page.set_input_files("#reply [name=files]", [FILM])
        await page.click("#reply [data-send]")
        await expect(page.locator(".line.out video[controls]")).to_have_count(1)
        await expect(page.locator("#reply [data-send][aria-busy]")).to_have_count(0)  # its answer is shown
        await page.fill("#reply textarea", "Masih ada, kak")
        await page.click("#reply [data-send]")
        failed = page.locator(".line.out:has-text('Masih ada, kak') button:text-is('Try again')")
        await expect(failed).to_have_count(1)
        await failed.click()
        await expect(page.locator(".toasts")).to_have_text("Sent again")
        await expect(page.locator(".line.out:has-text('Masih ada, kak')")).to_have_count(2)
        await expect(page.locator(".line.out .problem:has-text('Not delivered')")).to_have_count(3)
        await expect(failed).to_have_count(1)
        assert await page.evaluate("window.neverLeft")


async def test_a_visitor_is_called_alike_everywhere_and_saved_as_a_customer(
    browser: Browser, installation: Installation, database: Database, company: Environments, desk: Desk, email: str
) -> None:
    async with httpx.AsyncClient(base_url=installation.address, verify=TLS) as client:
        site = Visitor(client, build_chat(installation, database, company.test))
        await site.join()
        assert (await site.send("Bisa bayar di tempat?")).status_code == 200

    async def find_ticket() -> str | None:
        return next((one["id"] for one in await desk.get("/tickets")), None)

    id = await eventually(find_ticket)
    async with (
        connect(installation, (await make_key(database, company.test)).raw) as api,
        open_seat(browser, installation, database, desk, email, "Sari") as page,
    ):
        ayu = await make_customer(api, firstName="Ayunda", phoneNumber="+628123450001")
        await page.click(f"#{id} a")
        name = await page.inner_text(".talk-head h2")
        assert name.startswith("Visitor ")
        await page.goto("/console/test")
        await expect(page.locator(".needs")).to_contain_text(name)
        await page.goto(f"/console/test/inbox/{id}?view=all")
        await page.set_viewport_size({"width": 1200, "height": 900})
        await page.click(".talk [data-view-to=customer]")
        assert len(await page.eval_on_selector_all(".about form[role=search] > :not([type=hidden])", BOTTOMS)) == 1
        await page.click(".about summary:text-is('Save as customer')")
        await page.fill(".about [name=firstName]", "Citra")
        await page.click(".about button:text-is('Save')")
        await expect(page.locator(".alert")).to_be_visible()
        await expect(page.locator(".about [name=firstName]")).to_be_visible()
        await expect(page.locator(".about [name=firstName]")).to_have_value("Citra")
        await page.fill(".about [name=phoneNumber]", "0812-3450-001")
        await page.click(".about button:text-is('Save')")
        await expect(page.locator(".about")).to_contain_text("These contact details belong to another customer.")
        await expect(page.locator(".about [name=customer]")).to_contain_text("Link to Ayunda")
        await page.fill(".about [name=phoneNumber]", "0812-3450-002")
        await page.click(".about button:text-is('Save')")
        await expect(page.locator(".about h2 a")).to_have_text("Citra")
        await expect(page.locator(f"#{id} .name")).to_have_text("Citra")
        ticket = await desk.get(f"/tickets/{id}")
        assert ticket["customerId"] not in {None, ayu["id"]}
        order = await make_order(api, customerId=ticket["customerId"])
        await api.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})
        await parcels.create(api, "custom", orderId=order["id"], estimate="1-2 days")
        await page.set_viewport_size({"width": 1440, "height": 900})
        await page.reload()
        assert len(await page.eval_on_selector_all(".about .buttons > *", HEIGHTS)) == 1
        await page.set_viewport_size({"width": 390, "height": 844})
        await page.click(".talk [data-view-to=customer]")
        assert min(await page.eval_on_selector_all(".about .buttons > *", HEIGHTS)) >= 44
        await page.click(".about .back")

        async def has_room() -> bool:
            heights = await page.eval_on_selector_all(".talk-head .icon-b:visible", HEIGHTS)
            return min(heights, default=0) >= 44

        await eventually(has_room)
        await page.set_viewport_size({"width": 1440, "height": 900})
        await page.reload()
        await page.click(".about button:text-is('Insert tracking link')")
        assert installation.address in await page.input_value("#reply textarea")
        await page.click(".about a:text-is('Refund…')")
        await expect(page.locator("#refund")).to_be_visible()
        await page.go_back()
        await page.click(".about a:text-is('New order')")
        await expect(page.locator("[name=customer]")).to_have_value("Citra")


async def test_merged_conversations_lead_to_each_other(
    browser: Browser, installation: Installation, database: Database, company: Environments, desk: Desk, email: str
) -> None:
    async with connect(installation, (await make_key(database, company.test)).raw) as api:
        await make_customer(api, firstName="Ayunda", phoneNumber="+628111111151")
    going = await desk.receive("Dari ponsel", "+628111111151", "MSGAPP_COEX")
    staying = await desk.receive("Masih ada?", "+628111111151")
    async with open_seat(browser, installation, database, desk, email, "Sari") as page:
        await page.click(f"#{staying['id']} a")
        await page.click(".about summary:has-text('Earlier conversations')")
        await page.click(".about button:text-is('Merge…')")
        await page.click("dialog [data-yes]")
        await expect(page.locator(".toasts")).to_have_text("Merged")
        await expect(page.locator(".line.in")).to_have_count(2)
        event = page.locator(".line.event:has-text('Merged with another conversation')")
        await event.locator("a").click()
        await expect(page).to_have_url(re.compile(going["id"]))
        await expect(page.locator(".line.in")).to_have_count(0)
        await expect(page.locator("#merged")).to_have_text("Merged into another conversation")
        await page.click("#merged a")
        await expect(page).to_have_url(re.compile(staying["id"]))
        await expect(page.locator(".line.in")).to_have_count(2)
        await expect(page.locator("#merged")).to_be_empty()
        assert await page.evaluate("window.neverLeft")


BOTTOMS = "(parts) => [...new Set(parts.map((part) => Math.round(part.getBoundingClientRect().bottom)))]"
HEIGHTS = "(buttons) => [...new Set(buttons.map((button) => button.getBoundingClientRect().height))]"
BAR = """(bar) => {
    const shown = [...bar.children].filter((part) => part.getBoundingClientRect().width);
    const boxes = shown.map((part) => part.getBoundingClientRect());
    const middles = boxes.map(({ top, height }) => top + height / 2);
    return [Math.max(...middles) - Math.min(...middles), bar.scrollWidth - bar.clientWidth, bar.clientHeight];
}"""


@pytest.mark.parametrize("language", [pytest.param("en", marks=pytest.mark.long), "id"])
async def test_the_bar_of_a_conversation_is_one_line_beside_the_customer(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str, language: str
) -> None:
    """With a label, a priority, a target, the reply window and the paused AI, at the width of a common screen."""
    label = await desk.post("/labels", 201, name="Garansi", color="#864c00")
    await desk.post("/sla-policies", 201, name="Umum", position=1, firstResponseMinutes=60, resolutionMinutes=1440)
    ticket = await desk.receive("Masih ada?")
    changes = {"labelIds": [label["id"]], "priority": "urgent"}
    assert (await desk.client.put(f"/tickets/{ticket['id']}", json=changes)).status_code == 200
    async with open_seat(browser, installation, database, desk, email, "Sari Dewi") as page:
        await page.click(f"#{ticket['id']} a")
        bar, words = page.locator("#ticket-head"), page.locator("#ticket-head > .only-wide span")
        await expect(bar).to_contain_text("Unassigned")
        await page.press("body", "m")
        await expect(words).to_have_text("AI paused")
        async with database.transaction() as tx:
            user = await tx.fetchval("SELECT id FROM users WHERE email = $1", email)
            await people.set_language(tx, user, language)
        await page.reload()
        for width in (1440, 1920):
            await page.set_viewport_size({"width": width, "height": 900})
            for part in (".due", ".window time", ".label", ".flag", "[title^='AI ']", ".chip"):
                await expect(bar.locator(part)).to_be_visible()
            spread, hidden, height = await bar.evaluate(BAR)
            assert (spread < 3, hidden, height < 40) == (True, 0, True), (width, spread, hidden, height)
        for part in (".window > span", ".only-wide > span"):
            await expect(bar.locator(part).first).to_be_in_viewport(ratio=1)


HEAD = """(head) => {
    const shown = [...head.children].filter((part) => part.checkVisibility() && part.id !== "ticket-head");
    const boxes = shown.map((part) => part.getBoundingClientRect());
    const middles = boxes.map(({ top, height }) => top + height / 2);
    return [Math.max(...middles) - Math.min(...middles), head.scrollWidth - head.clientWidth];
}"""


@pytest.mark.parametrize("language", [pytest.param("en", marks=pytest.mark.long), "id"])
async def test_a_narrow_conversation_has_its_lesser_actions_in_a_menu(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str, language: str
) -> None:
    """On phones from 360 px on, beside the queue, and between the queue and the customer."""
    label = await desk.post("/labels", 201, name="Garansi", color="#864c00")
    await desk.post("/sla-policies", 201, name="Umum", position=1, firstResponseMinutes=60, resolutionMinutes=1440)
    ticket = await desk.receive("Masih ada?")
    changes = {"labelIds": [label["id"]], "priority": "urgent"}
    assert (await desk.client.put(f"/tickets/{ticket['id']}", json=changes)).status_code == 200
    async with open_seat(browser, installation, database, desk, email, "Sari Dewi") as page:
        async with database.transaction() as tx:
            user = await tx.fetchval("SELECT id FROM users WHERE email = $1", email)
            await people.set_language(tx, user, language)
        await page.goto(f"/console/test/inbox/{ticket['id']}")
        await page.press("body", "m")
        bar, more, labels = page.locator("#ticket-head"), page.locator(".more"), page.locator("#pop-labels .sheet")
        await expect(bar.locator("[title^='AI ']")).to_be_attached()
        for width in (360, 390, 480, 768, 769, 900, 1024, 1281, 1440):
            await page.set_viewport_size({"width": width, "height": 900})
            for part in (".due", ".window time", ".flag", ".chip"):
                await expect(bar.locator(part)).to_be_in_viewport(ratio=0.9)
            spread, hidden, height = await bar.evaluate(BAR)
            assert (spread < 3, hidden, height < 48) == (True, 0, True), (width, spread, hidden, height)
            spread, hidden = await page.locator(".talk-head").evaluate(HEAD)
            assert (spread < 5, hidden) == (True, 0), (width, spread, hidden)
            is_narrow = await page.locator("#talk").evaluate("talk => talk.clientWidth < 640") or width <= 768
            await expect(more).to_be_visible(visible=is_narrow)
            await page.press("body", "l")
            await expect(labels.locator("button")).to_be_in_viewport()
            await page.press("body", "Escape")
            await page.press("body", "Escape")
            await expect(labels).to_be_hidden()
        await page.set_viewport_size({"width": 360, "height": 740})
        await more.click()
        await page.click("#pop-snooze summary")
        await page.locator("#pop-snooze .sheet button").first.click()

        async def is_snoozed() -> bool:
            return (await desk.look(ticket))["snoozedUntil"] is not None

        await eventually(is_snoozed)
