"""Drafts that meet an error, another person or another device, in a real browser."""

import re
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, Page, Route, expect

from sapa.console.routes import COOKIE
from sapa.db.pool import Database
from sapa.people.types import Role
from tests.conftest import Installation
from tests.console.people import PASSWORD, make_person
from tests.console.test_inbox_screen import open_seat
from tests.console.test_inbox_writing import list_sent, open_ticket, wait_for_draft
from tests.factories import Environments
from tests.http.wire import eventually
from tests.support.ticket_steps import Desk

REPLY, NOTE = "#reply textarea", "#note textarea"
FIND_USER = "SELECT id FROM users WHERE email = $1"
PHONE = {"width": 390, "height": 844}


@pytest.fixture
async def email(database: Database, company: Environments) -> str:
    return await make_person(database, company, Role.AGENT)


async def sign_in(page: Page, email: str, ticket_id: str) -> None:
    await page.fill("[name=email]", email)
    await page.fill("[name=password]", PASSWORD)
    await page.click("form.card button.main")
    await page.wait_for_url(f"**/inbox/{ticket_id}**")


async def test_a_draft_is_kept_again_after_an_error_of_the_server(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str
) -> None:
    ticket = await desk.receive()
    statuses: Iterator[int] = iter([503, 500])
    failed: list[int] = []

    async def fail(route: Route) -> None:
        if (status := next(statuses, None)) is None:
            return await route.continue_()
        failed.append(status)
        return await route.fulfill(status=status)

    async def has_failed() -> bool | None:
        await page.clock.run_for(1_000)
        return len(failed) == 2 or None

    async with open_seat(browser, installation, database, desk, email, "Sari") as page:
        await page.clock.install()
        await page.reload()
        await open_ticket(page, ticket)
        await page.route("**/draft", fail)
        await page.fill(REPLY, "Sebentar ya")
        await eventually(has_failed)
        await page.clock.run_for(20_000)
        await wait_for_draft(database, ticket, "Sebentar ya")
        await expect(page.locator(REPLY)).to_have_value("Sebentar ya")


async def test_who_signs_in_after_somebody_in_the_same_tab_neither_sees_nor_sends_their_draft(
    browser: Browser, installation: Installation, database: Database, company: Environments, desk: Desk, email: str
) -> None:
    ticket, other = await desk.receive(), await make_person(database, company, Role.AGENT)
    async with database.connection() as db:
        budi = await desk.create_agent("Budi", userId=await db.fetchval(FIND_USER, other))
    async with open_seat(browser, installation, database, desk, email, "Sari") as page:
        await open_ticket(page, ticket)
        await page.route("**/draft", lambda route: route.abort())
        await page.fill(REPLY, "Rahasia Sari")
        await page.click("#reply label[for=kind-note]")
        await page.fill(NOTE, "Catatan Sari")
        await page.context.clear_cookies(name=COOKIE)
        await page.press(NOTE, "Control+Enter")
        await page.wait_for_url("**/console/sign-in**")
        await page.unroute_all(behavior="wait")
        await sign_in(page, other, ticket["id"])
        for field in (REPLY, NOTE):
            await expect(page.locator(field)).to_have_value("")
        await page.fill(REPLY, "Halo dari Budi")
        await page.evaluate("dispatchEvent(new Event('online'))")
        await wait_for_draft(database, ticket, "Halo dari Budi")
        await page.press(REPLY, "Control+Enter")
        await expect(page.locator(".line.out:not(.sending)")).to_contain_text("Halo dari Budi")
        assert await list_sent(desk, ticket) == ["Halo dari Budi"]
        assert "Sari" not in await page.inner_text("#conversation")
        assert (await desk.look(ticket))["agentId"] == budi

        await page.context.clear_cookies(name=COOKIE)
        await page.reload()
        await sign_in(page, email, ticket["id"])
        await expect(page.locator(REPLY)).to_have_value("Rahasia Sari")
        await expect(page.locator(NOTE)).to_have_value("Catatan Sari")


@pytest.mark.long
async def test_what_was_typed_offline_replaces_nothing_of_another_device(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str
) -> None:
    ticket = await desk.receive()
    async with (
        open_seat(browser, installation, database, desk, email, "Sari") as laptop,
        open_seat(browser, installation, database, desk, email, "Sari", viewport=PHONE, has_touch=True) as phone,
    ):
        address = f"/console/test/inbox/{ticket['id']}"
        for page in (laptop, phone):
            await page.goto(address)
        await laptop.fill(REPLY, "Halo kak")
        await wait_for_draft(database, ticket, "Halo kak")
        await phone.reload()
        await expect(phone.locator(REPLY)).to_have_value("Halo kak")
        await phone.context.set_offline(True)
        await phone.fill(REPLY, "Halo kak, dari ponsel")
        await laptop.fill(REPLY, "Stok habis")
        await wait_for_draft(database, ticket, "Stok habis")
        await phone.context.set_offline(False)
        both = "Stok habis\nHalo kak, dari ponsel"
        await expect(phone.locator(REPLY)).to_have_value(both)
        await expect(phone.locator(".toasts")).to_contain_text("Both texts are kept")
        await wait_for_draft(database, ticket, both)

        await laptop.fill(REPLY, "Stok habis, besok ada")
        await expect(laptop.locator(REPLY)).to_have_value("Stok habis, besok ada\nHalo kak, dari ponsel")
        await wait_for_draft(database, ticket, "Stok habis, besok ada\nHalo kak, dari ponsel")

        await phone.reload()
        await phone.route("**/draft", lambda route: route.abort())  # the last one may get through
        await phone.click("#reply label[for=kind-note]")
        await phone.fill(NOTE, "Cek gudang")
        await phone.goto("about:blank")
        await laptop.click("#reply label[for=kind-note]")
        await laptop.fill(NOTE, "Tanya Budi")

        async def is_kept() -> bool | None:
            async with database.connection() as db:
                note = await db.fetchval("SELECT note FROM reply_drafts WHERE ticket_id = $1", ticket["id"])
            return "Tanya Budi" in (note or "") or None

        await eventually(is_kept)
        await phone.unroute_all(behavior="wait")
        await phone.goto(address)
        await expect(phone.locator(NOTE)).to_have_value(re.compile("Tanya Budi\nCek gudang|Cek gudang\nTanya Budi"))


@pytest.mark.long
async def test_two_tabs_of_one_person_lose_nothing(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str
) -> None:
    """Also what one of them deletes or sends stays gone there."""
    ticket = await desk.receive()
    async with open_seat(browser, installation, database, desk, email, "Sari") as first:
        await open_ticket(first, ticket)
        second = await first.context.new_page()
        await second.goto(f"/console/test/inbox/{ticket['id']}")
        await first.fill(REPLY, "Satu")
        await wait_for_draft(database, ticket, "Satu")
        await second.fill(REPLY, "Dua")
        await wait_for_draft(database, ticket, "Satu\nDua")
        await expect(second.locator(REPLY)).to_have_value("Satu\nDua")
        await second.fill(REPLY, "")

        async def is_gone() -> bool | None:
            async with database.connection() as db:
                return not await db.fetch("SELECT FROM reply_drafts WHERE ticket_id = $1", ticket["id"]) or None

        await eventually(is_gone)
        await second.fill(REPLY, "Tiga")
        await wait_for_draft(database, ticket, "Tiga")
        await second.press(REPLY, "Control+Enter")
        await expect(second.locator(".line.out:not(.sending)")).to_contain_text("Tiga")
        assert await list_sent(desk, ticket) == ["Tiga"]
        await second.reload()
        await expect(second.locator(REPLY)).to_have_value("")

        await second.fill(REPLY, "Empat")
        await wait_for_draft(database, ticket, "Empat")
        await first.reload()
        await expect(first.locator(REPLY)).to_have_value("Empat")
        await second.press(REPLY, "Control+Enter")
        await expect(first.locator(".line.out").last).to_contain_text("Empat")
        await expect(first.locator(REPLY)).to_have_value("")
        await first.reload()
        await expect(first.locator(REPLY)).to_have_value("")
