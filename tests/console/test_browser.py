"""The console in a real browser, as people use it."""

import asyncio
import shlex
from collections.abc import AsyncIterator
from uuid import uuid4

import httpx
import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect

from sapa.db.pool import Database
from sapa.people import actions
from tests.browsers import new_context
from tests.conftest import TLS, Installation
from tests.console.people import PASSWORD, make_person
from tests.factories import Environments, make_customer, make_key
from tests.http.wire import eventually
from tests.webhooks.station import Station, answer_with

WIDTHS: dict[str, ViewportSize] = {"desk": {"width": 1440, "height": 900}, "phone": {"width": 360, "height": 800}}


@pytest.fixture
async def page(
    browser: Browser, post_office: Installation, post: Database, client: Environments
) -> AsyncIterator[Page]:
    """An owner, signed in; browser errors fail the test."""
    email = await make_person(post, client)
    context = await new_context(browser, base_url=post_office.address, viewport=WIDTHS["desk"], locale="en-GB")
    tab = await context.new_page()
    complaints: list[str] = []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("console", lambda message: complaints.append(message.text) if "Content Security" in message.text else None)
    await tab.goto("/console/live")
    await tab.fill("[name=email]", email)
    await tab.fill("[name=password]", PASSWORD)
    await tab.click("button.main")
    yield tab
    assert complaints == []
    await context.close()


async def test_the_first_owner_signs_in_by_the_link(
    browser: Browser, post_office: Installation, post: Database, client: Environments
) -> None:
    async with post.transaction() as tx:
        link = await actions.make_setup_link(tx, client.live)
    context = await new_context(browser, base_url=post_office.address, locale="id-ID")
    page = await context.new_page()
    await page.goto(f"/console/link/{link}")
    assert page.url == f"{post_office.address}/console/link"
    assert link not in await page.content()
    assert await page.inner_text("h1") == "Selamat datang di Sapa"
    await page.fill("[name=name]", "Sari")
    await page.fill("[name=email]", f"{uuid4().hex}@toko.example")
    await page.fill("[name=password]", PASSWORD)
    await page.fill("[name=again]", PASSWORD)
    await page.click("button.main")
    assert page.url == f"{post_office.address}/console/live"
    assert "Kunci API" in await page.inner_text("main")
    await context.close()


async def test_a_key_is_made_used_and_revoked(page: Page, post_office: Installation) -> None:
    await page.goto("/console/live/keys")
    await page.click("text=New key")
    await page.fill("[name=name]", "shop")
    await page.check("[value='customers:READ']")
    await page.click("button.main")
    key, command = await page.inner_text("#secret"), await page.inner_text("pre code")
    assert key in command
    assert await run_curl(command) == "200"
    await page.click("text=I've copied it")
    assert key not in await page.content()
    assert key not in page.url
    await page.go_back()
    assert key not in await page.content()
    await page.goto("/console/live/keys")
    assert await page.locator("tbody tr").count() == 1
    await page.click("text=Revoke")
    await page.click("dialog [data-yes]")
    await page.wait_for_selector("text=revoked")

    async def is_refused() -> bool | None:
        return await run_curl(command) == "401" or None

    await eventually(is_refused)
    await page.goto("/console/live/audit")
    assert "Key revoked" in await page.inner_text("table")
    assert key not in post_office.log.read_text()


async def run_curl(command: str) -> str:
    """Runs the command that the page shows, and returns the response's status."""
    words = [*shlex.split(command), "--silent", "--output", "/dev/null", "--write-out", "%{http_code}"]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    return output.decode()


async def test_a_reloaded_page_shows_a_secret_no_more_and_makes_no_other(page: Page) -> None:
    await page.goto("/console/live/keys/new")
    await page.fill("[name=name]", "shop")
    await page.check("[value='customers:READ']")
    await page.click("button.main")
    key = await page.inner_text("#secret")
    await page.reload()
    assert key not in await page.content()
    assert page.url.endswith("/console/live/keys")
    assert await page.locator("tbody tr").count() == 1


@pytest.mark.long
async def test_a_webhook_delivers_fails_is_suspended_and_goes_on(
    page: Page, post_office: Installation, post: Database, client: Environments, station: Station
) -> None:
    key = await make_key(post, client.live)
    await page.goto("/console/live/webhooks/new")
    await page.fill("[name=url]", station.url("hooks"))
    await page.click("button.main")
    secret = await page.inner_text("#secret")
    await page.reload()
    address = page.url
    assert (secret in await page.content(), address.rpartition("/")[2].startswith("whe")) == (False, True)
    headers = {"x-api-key": key.raw}
    async with httpx.AsyncClient(base_url=post_office.customer_base, headers=headers, verify=TLS) as shop:
        customer = await make_customer(shop)
        assert (await shop.put(f"/customers/{customer['id']}", json={"firstName": "Ayu"})).status_code == 200
        await wait_for(page, address, "tr:has-text('customer.updated') .state.good:has-text('delivered')")
        station.answer = answer_with(500)
        for _ in range(10):
            await make_customer(shop)
        await wait_for(page, address, ".head .state.bad:has-text('suspended')")
        assert "500" in await page.inner_text(".cards tbody tr >> nth=0")
        for series in ("series-1", "series-2"):
            await expect(page.locator(f".deliveries rect.{series}").first).to_be_attached()
        assert secret not in await page.content()
        await make_customer(shop)
        await wait_for(page, address, "tbody tr:nth-child(1) .state:has-text('held')")
        station.answer = answer_with(200)
        await page.check("[value=all][name=missed]")
        await page.click("button:has-text('Resume')")
        await wait_for(page, address, "span.state.good:has-text('active')")
        await wait_for(page, address, "tbody tr:nth-child(1) .state.good:has-text('delivered')")
    await page.click("table a >> nth=0")
    assert "X-Service-Webhook-Signature" in (await page.text_content("dl.headers") or "")


async def wait_for(page: Page, address: str, sign: str) -> None:
    """The endpoint's page does not update itself: reload until it is there."""
    for _ in range(100):
        await page.goto(address)
        if await page.query_selector(sign):
            return
        await page.wait_for_timeout(200)
    raise AssertionError(f"{sign} did not appear: {await page.inner_text('main')}")


async def test_it_works_without_scripts(
    browser: Browser, post_office: Installation, post: Database, client: Environments
) -> None:
    email = await make_person(post, client)
    context = await new_context(browser, base_url=post_office.address, java_script_enabled=False)
    page = await context.new_page()
    await page.goto("/console/test/keys/new")
    await page.fill("[name=email]", email)
    await page.fill("[name=password]", PASSWORD)
    await page.click("button.main")
    assert page.url.endswith("/console/test/keys/new")
    await page.fill("[name=name]", "plain")
    await page.check("[value='customers:READ']")
    await page.click("button.main")
    assert (await page.inner_text("#secret")).startswith("svc_test_")
    await context.close()
