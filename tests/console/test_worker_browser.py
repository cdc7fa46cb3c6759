"""The service worker in a real browser: what it shows offline, what it keeps, its notifications, and its end."""

from collections.abc import AsyncIterator
from functools import partial

import pytest
from playwright.async_api import Browser, FilePayload, Page, expect

from sapa.console.rendering import ASSET_VERSION
from sapa.db.pool import Database
from sapa.people.types import Role
from tests import browsers
from tests.conftest import Installation
from tests.console.people import make_person
from tests.console.test_inbox_screen import open_seat
from tests.console.test_inbox_writing import open_ticket
from tests.console.test_workplace_browser import open_seat as open_console
from tests.factories import Environments
from tests.http.wire import eventually
from tests.support.ticket_steps import Desk

READY = "navigator.serviceWorker.ready.then((one) => one.active.scriptURL)"
LIST_KEPT = """async () => {
  const kept = [];
  for (const name of await caches.keys())
    for (const { url } of await (await caches.open(name)).keys()) kept.push(url.replace(location.origin, ""));
  return kept.sort();
}"""
COUNT = "async () => [(await caches.keys()).length, (await navigator.serviceWorker.getRegistrations()).length]"
# Chromium forgets a notification when somebody lists them while it is still being shown: this says when it is there.
SAY_WHEN_SHOWN = """
  const show = ServiceWorkerRegistration.prototype.showNotification;
  ServiceWorkerRegistration.prototype.showNotification = async function (...all) {
    await show.apply(this, all);
    window.timesShown = (window.timesShown ?? 0) + 1;
  };
"""
LIST_SHOWN = """async () => {
  const worker = await navigator.serviceWorker.getRegistration();
  return (await worker.getNotifications()).map((one) => one.body);
}"""
NOTA: FilePayload = {"name": "nota.txt", "mimeType": "text/plain", "buffer": b"nota"}
# A click on the notification that is shown. The browser lets a worker take the focus after a real one only.
CLICK = """async () => {
  WindowClient.prototype.focus = async function () { return this; };
  clients.openWindow = async (place) => { self.opened = place; };
  const [notification] = await registration.getNotifications();
  dispatchEvent(new NotificationEvent("notificationclick", { notification }));
}"""


@pytest.fixture
async def email(database: Database, company: Environments) -> str:
    return await make_person(database, company, Role.AGENT)


async def wait_for_worker(page: Page) -> None:
    await page.evaluate(READY)
    await eventually(partial(page.evaluate, "navigator.serviceWorker.controller !== null"))


@pytest.mark.parametrize(
    ("language", "title", "again"),
    [
        pytest.param("en", "You're offline", "Try again", marks=pytest.mark.long),
        ("id", "Anda sedang offline", "Coba lagi"),
    ],
)
async def test_offline_there_is_a_page_and_nothing_private_is_kept(
    browser: Browser, installation: Installation, database: Database, email: str, language: str, title: str, again: str
) -> None:
    async with open_console(browser, installation, database, email, language) as page:
        await page.goto("/console/test/inbox")
        await wait_for_worker(page)
        await page.goto("/console/test/orders")
        kept = await page.evaluate(LIST_KEPT)
        assert [path for path in kept if not path.startswith("/console/static/")] == [f"/console/offline/{language}"]
        assert {path.rpartition("?v=")[2] for path in kept[1:]} == {ASSET_VERSION}
        await page.context.set_offline(True)
        await page.goto("/console/test/products")
        await expect(page.locator("h1")).to_have_text(title)
        await expect(page.locator("a.button")).to_have_text(again)
        await expect(page.locator(".card")).to_have_css("border-top-left-radius", "14px")
        await page.click("a.button")
        await expect(page.locator("h1")).to_have_text(title)
        await page.context.set_offline(False)
        await expect(page.locator("h1")).not_to_have_text(title)
        assert page.url.endswith("/console/test/products")
        await page.go_back()
        assert page.url.endswith("/console/test/orders")


@pytest.fixture
async def whole_browser() -> AsyncIterator[Browser]:
    """Notifications need one."""
    async with browsers.launch(is_whole=True) as launched:
        yield launched


async def test_a_notification_opens_its_conversation_and_signing_out_ends_the_worker(
    whole_browser: Browser, installation: Installation, database: Database, desk: Desk, email: str
) -> None:
    permitted = {"permissions": ["notifications"], "service_workers": "allow"}
    async with open_seat(whole_browser, installation, database, desk, email, "Sari", **permitted) as page:
        await wait_for_worker(page)
        [worker] = page.context.service_workers
        await page.goto("/console/profile")
        await page.check("[name=desktop]")
        await page.click("#alerts button.main")
        await expect(page.locator(".toasts")).to_be_visible()
        await page.goto("/console/test/inbox")
        await page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => true });")
        await page.add_init_script(SAY_WHEN_SHOWN)
        await page.goto("/console/test/products")
        await page.evaluate("lookForAlerts()")
        ticket = await desk.receive("Halo kak")
        place = f"/console/test/inbox/{ticket['id']}"
        await page.evaluate("lookForAlerts()")
        await eventually(partial(page.evaluate, "window.timesShown"))
        assert await page.evaluate(LIST_SHOWN) == ["A new conversation waits"]
        await worker.evaluate(CLICK)
        assert await eventually(partial(worker.evaluate, "self.opened")) == place, "not in a tab where somebody works"

        await page.goto("/console/test/inbox?view=all")
        second = await desk.receive("Masih ada?", "+628123456780")
        await page.evaluate("lookForAlerts()")
        await eventually(partial(page.evaluate, "window.timesShown"))
        await worker.evaluate(CLICK)
        await page.wait_for_url(f"**/inbox/{second['id']}")
        assert await page.evaluate(LIST_SHOWN) == []

        await page.click(".account summary")
        await page.click("button:text-is('Sign out')")
        await page.wait_for_url("**/console/sign-in")

        async def has_ended() -> bool | None:
            return await page.evaluate(COUNT) == [0, 0] or None

        await eventually(has_ended)


@pytest.mark.long
async def test_conversations_are_answered_as_without_a_worker(
    browser: Browser, installation: Installation, database: Database, desk: Desk, email: str
) -> None:
    """Forms, files, the stream, and the way back."""
    first, second = [await desk.receive(f"Pertanyaan {n}", f"+62812345670{n}") for n in range(2)]
    async with open_seat(browser, installation, database, desk, email, "Sari", service_workers="allow") as page:
        await wait_for_worker(page)
        await page.goto("/console/test/inbox?view=all")
        await open_ticket(page, first)
        await page.set_input_files("#reply [name=files]", [NOTA])
        await page.fill("#reply textarea", "Sudah dikirim")
        await page.click("#reply [data-send]")
        await expect(page.locator(".line.out:not(.sending)")).to_contain_text("Sudah dikirim")
        async with page.expect_download() as download:
            await page.click(".line.out a:has-text('nota.txt')")
        assert (await (await download.value).path()).read_bytes() == NOTA["buffer"]
        await open_ticket(page, second)
        await page.go_back()
        await expect(page.locator(f"#{first['id']} a")).to_have_attribute("aria-current", "true")
        await desk.receive("Terima kasih", "+628123456700")
        await expect(page.locator("#conversation")).to_contain_text("Terima kasih")
        await page.goto("/console/profile")
        await page.fill("[name=name]", "Sari Dewi")
        await page.locator("form:has([name=name]) button.main").click()
        await expect(page.locator(".toasts")).to_be_visible()
        assert await page.input_value("[name=name]") == "Sari Dewi"
        await page.go_back()
        await page.wait_for_url("**/console/profile")
