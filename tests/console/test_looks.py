"""Every page in a real browser: wide and narrow, light and dark, in both languages; and a file that comes in there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import groupby, product
from typing import Literal

import pytest
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from msgspec import Struct
from playwright.async_api import Browser, FilePayload, Page, expect

from sapa.console.pages import PARTS
from sapa.console.routes import COOKIE, console
from sapa.db.pool import Database
from sapa.people import actions as people
from sapa.people.types import Role
from tests import depth
from tests.browsers import new_context
from tests.conftest import Installation
from tests.console.filled import fill_shop
from tests.console.people import PASSWORD, make_person
from tests.factories import Environments, make_company
from tests.webhooks.station import open_station

assert PARTS
WIDTHS = {1440: (768, 1440), 390: (360, 390)}
"""At which a page must not be cut off, by the width that it is looked at; at all of them in the long run."""
LARGEST = 200_000
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
VIEWS = list(product(("en", "id"), WIDTHS, SCHEMES))
"""Each page in each of them in the long run, and in one of them otherwise."""
SHOWN = {page.path for page in console.pages if page.method == "GET"}
NO_PAGES = {
    "",
    "/link/{secret}",
    "/{environment}/inbox/events",
    "/{environment}/inbox/{id}/events",
    "/{environment}/inbox/{id}/files/{message}",
    "/{environment}/imports/{id}/errors.csv",
    "/{environment}/exports/{file}",
    "/{environment}/reports/files/{id}",
    "/{environment}/areas",
    "/{environment}/alerts",
    "/{environment}/suggestions/{kind}",
    "/{environment}/labels/{id}/file",
    "/{environment}/shipments/{id}/print/{document}",
}
"""Redirects, streams and files."""
FIND_BARRIERS = """async () => {
  const found = await axe.run({ resultTypes: ["violations"] });
  return found.violations.map((one) => `${one.id} at ${one.nodes[0].target}`);
}"""
"""What keeps somebody from reading a page. The whole report takes half as long again to hand over as to make."""
WIDEN_IDS = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    walker.currentNode.data = walker.currentNode.data.replace(/_[0-9a-z]{26}/g, "_" + "m".repeat(26));
  }
}"""
"""Shows each id as wide as an id can be: how much room it takes differs from id to id."""


class Shop(Struct, frozen=True):
    """A company with something on every page, and the sessions of its owner and of an agent."""

    secret: str
    agent_secret: str
    user_ids: list[int]
    inside: dict[str, str]
    outside: dict[str, str]
    """By the declared path: pages with and without a session."""


@pytest.fixture(scope="module")
async def shop(post_office: Installation, post: Database) -> Shop:
    company = await make_company(post)
    emails = [await make_person(post, company), await make_person(post, company, Role.AGENT)]
    secrets = [await people.sign_in(post, email, PASSWORD, people.Origin("127.0.0.1", "test")) for email in emails]
    async with open_station() as station:
        filled = await fill_shop(post_office, post, company.test, station)
    async with post.transaction() as tx:
        sessions = [await people.find_session(tx, secret) for secret in secrets]
        link = await people.make_setup_link(tx, company.live)
    outside = {"/sign-in": "/sign-in", "/forgotten": "/forgotten", "/link": f"/link/{link}"}
    plain = {path: path.replace("{environment}", "test") for path in SHOWN - NO_PAGES - set(outside)}
    one_of_each = {path: f"/test{address}" for path, address in filled.items()}
    inside = {path: address for path, address in (plain | one_of_each).items() if "{" not in address}
    return Shop(secrets[0], secrets[1], [session.user_id for session in sessions if session], inside, outside)


@asynccontextmanager
async def open_page(browser: Browser, address: str, secret: str = "") -> AsyncIterator[Page]:
    """A browser's page, signed in if a session is given; browser errors fail the test."""
    context = await new_context(browser, base_url=address, locale="en-GB", reduced_motion="reduce")
    if secret:
        await context.add_cookies([{"name": COOKIE, "value": secret, "url": f"{address}/console"}])
    page = await context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda said: complaints.append(f"{said.text} {said.location['url']}") if said.type == "error" else None,
    )
    yield page
    await context.close()
    assert complaints == []


async def find_faults(page: Page, path: str, width: int, language: str) -> list[str]:
    """What is wrong with a page at one width, and whether anything is cut off there or at others."""
    response = await page.goto(f"/console{path}")
    assert response is not None
    body = await response.body()
    faults: list[str] = await page.evaluate(FIND_BARRIERS)
    faults += [f"answered {response.status}"] if response.status != 200 else []
    faults += [f"{len(body)} bytes"] if len(body) >= LARGEST else []
    faults += ["another language"] if await page.get_attribute("html", "lang") != language else []
    faults += ["inline style or script"] if b" style=" in body or b"<style" in body or b"<script>" in body else []
    await page.evaluate(WIDEN_IDS)
    widths = [other for near in WIDTHS.values() for other in near] if depth.is_long() else WIDTHS[width]
    for other in sorted(widths, key=lambda other: other == width):
        await page.set_viewport_size({"width": other, "height": 900})
        if not await page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
            faults.append(f"cut off at {other}")
    return faults


def test_every_page_is_looked_at(shop: Shop) -> None:
    assert {*shop.inside, *shop.outside} == SHOWN - NO_PAGES


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("language", "width", "scheme"), VIEWS)
async def test_every_page_can_be_read_by_everybody(
    browser: Browser,
    post_office: Installation,
    post: Database,
    shop: Shop,
    language: str,
    width: int,
    scheme: Literal["light", "dark"],
) -> None:
    async with post.transaction() as tx:
        for user_id in shop.user_ids:
            await people.set_language(tx, user_id, language)
    inside = [*sorted(shop.inside.values()), "/live/channels/MSGAPP_CLOUD", "/live/carriers/aggregator_carrier"]
    of_agents = ["/test", "/test/inbox", shop.inside["/{environment}/inbox/{id}"], "/profile"]
    pages = [(path, shop.secret) for path in inside] + [(path, shop.agent_secret) for path in of_agents]
    pages += [(path, "") for path in (*shop.outside.values(), f"/offline/{language}")]
    if not depth.is_long():  # each page in one of the views
        pages = pages[VIEWS.index((language, width, scheme)) :: len(VIEWS)]
    faults = {}
    axe = Axe().axe_script
    for secret, own in groupby(pages, key=lambda page: page[1]):
        async with open_page(browser, post_office.address, secret) as page:
            await page.add_init_script(axe)
            await page.context.add_cookies([{"name": "sapa_language", "value": language, "url": post_office.address}])
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            await page.set_viewport_size({"width": width, "height": 900})
            for path, _ in own:
                faults[path, secret] = await find_faults(page, path, width, language)
    assert {path: found for (path, _), found in faults.items() if found} == {}


async def test_variants_are_cards_on_a_phone(browser: Browser, post_office: Installation, shop: Shop) -> None:
    async with open_page(browser, post_office.address, shop.secret) as page:
        await page.set_viewport_size({"width": 390, "height": 844})
        await page.goto("/console/test/products/new")
        assert await page.locator(".scroll:has(.edits)").evaluate("one => one.scrollWidth <= one.clientWidth")


async def sign_in(page: Page, email: str, path: str) -> None:
    await page.goto(path)
    await page.fill("[name=email]", email)
    await page.fill("[name=password]", PASSWORD)
    await page.click("button.main")
    await page.wait_for_url(f"**{path}")


async def test_a_file_comes_in_with_its_progress_and_goes_out_again(
    browser: Browser, installation: Installation, database: Database, company: Environments
) -> None:
    lines = [f"buyer-{number}@toko.example,Buyer {number}" for number in range(2_000)]
    content = "\n".join(["email,firstName", *lines, "nobody,Budi"]).encode()
    email = await make_person(database, company)
    async with open_page(browser, installation.address) as page:
        await sign_in(page, email, "/console/live/imports")
        file = FilePayload(name="customers.csv", mimeType="text/csv", buffer=content)
        await page.set_input_files("[name=file]", file)
        await page.click("button:text-is('Import')")
        await page.wait_for_url("**/imports/imp_*")
        await page.evaluate("window.neverLeft = true")
        await expect(page.locator(".head .state")).to_have_text("partial")
        assert await page.evaluate("window.neverLeft")
        assert await page.locator("progress").evaluate("bar => bar.value === bar.max")
        message = await page.inner_text("main")
        assert "2,001 records: 2,000 created, 0 updated, 0 as they were, 1 failed." in message
        assert await page.inner_text("tbody th") == "2002"
        async with page.expect_download() as mended:
            await page.click("text=All of them as a file (CSV)")
        assert (await (await mended.value).path()).read_text().startswith("line,field,reason")
        await page.goto("/console/live/imports")
        async with page.expect_download() as whole:
            await page.click("text=CSV >> nth=1")
        exported = (await (await whole.value).path()).read_text()
    assert exported.count("@toko.example") == 2_000


async def test_an_owner_connects_the_web_chat_and_sees_its_secret_once(
    browser: Browser, installation: Installation, database: Database, company: Environments
) -> None:
    email = await make_person(database, company)
    async with open_page(browser, installation.address) as page:
        await sign_in(page, email, "/console/live/channels")
        await page.click("tr:has-text('Web chat') a.button")
        await page.fill("[name=title]", "Tanya kami")
        await page.click("button.main")
        await page.wait_for_selector("#snippet")
        snippet, secret = await page.inner_text("#snippet"), await page.inner_text("#made-secret")
        assert "<script" in snippet
        await page.click("a:text-is('Done')")
        await page.wait_for_selector("text=Change the account")
        assert secret not in await page.content()
        await page.go_back()
        assert secret not in await page.content()
        await page.goto("/console/live/channels/WIDGET")
        await page.click("button.danger")
        await page.click("dialog [data-yes]")
        await page.wait_for_selector("text=Connect an account")
