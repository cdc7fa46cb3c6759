"""A day of three agents at one queue, in real browsers: who waits longest is next, for all of them."""

import asyncio
import time
from contextlib import AsyncExitStack, suppress

import pytest
from playwright.async_api import Browser, Page
from playwright.async_api import TimeoutError as PageTimeout

from sapa.db.pool import Database
from sapa.people.types import Role
from tests.conftest import Installation
from tests.console.people import make_person
from tests.console.test_inbox_screen import open_seat
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.conversation_steps import simulate_inbound
from tests.support.ticket_steps import Desk

ANSWERS = "SELECT ticket_id, body FROM messages WHERE company_id = $1 AND direction = 'out'"
# What the screen says about the open conversation, in the words that the agent reads.
READ = """() => {
  const show = (selector) => document.querySelector(selector)?.innerText.trim() ?? "";
  return {
    ticket: document.querySelector(".inbox").dataset.ticket ?? "",
    owner: show("#pop-assign summary"),
    state: show("#ticket-head .state"),
    typing: show("#typing"),
    empty: show("#queue-empty"),
    isOpening: document.querySelector("#talk").inert,
  };
}"""
IS_OPEN = """() => !document.querySelector("#talk").inert"""
CLICK_OTHER = """() => document.querySelector("#rows li:not(:has(a[aria-current])) a.ticket")?.click()"""
HAS_MOVED = """(id) => (document.querySelector(".inbox").dataset.ticket ?? "") !== id"""
IS_ANSWERED = (
    """(id) => document.querySelector(".inbox").dataset.ticket !== id || document.querySelector("#reply .asked")"""
)


class Worker:
    """Takes who waits longest, answers, and takes the next. Reads no message: what the screen says about the
    conversation decides whether to answer, and what it asks whether to send."""

    def __init__(self, page: Page, name: str, *, uses_keys: bool) -> None:
        self.page, self.name, self.uses_keys = page, name, uses_keys
        self.loads = 0
        self.answered = 0
        self.stopped = 0
        """Answers that the product did not let out, because somebody else was faster."""
        page.on("load", self._count_load)

    def _count_load(self, page: Page) -> None:
        self.loads += 1

    async def work(self) -> None:
        while not (seen := await self.page.evaluate(READ))["empty"]:
            if seen["isOpening"]:
                await self.page.wait_for_function(IS_OPEN)
                continue
            is_free = seen["owner"].startswith(("Unassigned", "With you")) and seen["state"].lower() != "resolved"
            if seen["ticket"] and is_free and not seen["typing"]:
                await self._answer(seen["ticket"])
            else:
                await self._open_next(seen["ticket"])

    async def _open_next(self, id: str) -> None:
        """Another one that waits; the keyboard steps down the queue, and up from its end."""
        for key in ("j", "k"):
            if self.uses_keys:
                await self.page.keyboard.press("Escape")
                await self.page.keyboard.press(key)
            else:
                await self.page.evaluate(CLICK_OTHER)
            with suppress(PageTimeout):
                await self.page.wait_for_function(HAS_MOVED, arg=id, timeout=500)
                return

    async def _answer(self, id: str) -> None:
        if self.uses_keys:
            await self.page.keyboard.press("Escape")  # out of the field, where the last answer left the focus
            await self.page.keyboard.press("r")
            await self.page.keyboard.type(f"Dari {self.name}")
            await self.page.keyboard.press("Control+Shift+Enter")
        else:
            await self.page.fill("#reply textarea", f"Dari {self.name}")
            await self.page.click("#reply [name=resolve]")
        await self.page.wait_for_function(IS_ANSWERED, arg=id)
        if await self.page.locator("#reply .asked").count():
            await self._give_up()
        else:
            self.answered += 1

    async def _give_up(self) -> None:
        """The page asks whether to send it anyway: no."""
        self.stopped += 1
        if self.uses_keys:
            await self.page.keyboard.press("Control+a")
            await self.page.keyboard.press("Delete")
        else:
            await self.page.fill("#reply textarea", "")


@pytest.mark.parametrize("count", [6, pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
async def test_a_day_of_three_agents(
    browser: Browser, installation: Installation, database: Database, company: Environments, desk: Desk, count: int
) -> None:
    """One of them with the keyboard only. Every conversation is answered once, and no page is loaded again."""
    for number in range(count):
        sender = f"+6281300{number:05}"
        await simulate_inbound(desk.client, source="MSGAPP_CLOUD", text=f"Tanya {number}", **{"from": sender})

    async def is_there() -> bool | None:
        return (await desk.get("/tickets/counts"))["unassignedWaiting"] == count or None

    await eventually(is_there)
    async with AsyncExitStack() as seats:
        workers = []
        for name in ("Sari", "Budi", "Citra"):
            email = await make_person(database, company, Role.AGENT)
            page = await seats.enter_async_context(open_seat(browser, installation, database, desk, email, name))
            await page.click("#queue-tabs a:has-text('Unassigned')")
            await page.wait_for_url("**view=unassigned")
            workers.append(Worker(page, name, uses_keys=name == "Sari"))
        started = time.monotonic()
        await asyncio.gather(*(worker.work() for worker in workers))
        took = time.monotonic() - started
        assert [worker.loads for worker in workers] == [0, 0, 0]
    answered, stopped = [sum(getattr(one, name) for one in workers) for name in ("answered", "stopped")]
    print(
        f"{count} conversations: {took / count:.2f} s for each with three agents, {3 * took / count:.2f} s of an "
        f"agent's time, 0 page loads, {stopped} second answers stopped"
    )
    async with database.connection() as db:
        sent = await db.fetch(ANSWERS, company.test)
    assert len({row["ticket_id"] for row in sent}) == len(sent) == answered == count
    assert {row["body"] for row in sent} <= {f"Dari {worker.name}" for worker in workers}
    assert (await desk.get("/tickets/counts"))["all"] == 0
