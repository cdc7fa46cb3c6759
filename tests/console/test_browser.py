"""The console in a real browser, as people use it."""

from collections.abc import AsyncIterator
from typing import Literal
from uuid import uuid4

import httpx
import pytest
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser, Page, ViewportSize

from sapa.console.desk import desk
from sapa.console.pages import PARTS
from sapa.db.pool import Database
from sapa.people import actions
from sapa.vault import Vault
from tests.conftest import Installation
from tests.console.people import PASSWORD, make_person
from tests.factories import (
    Environments,
    add_points,
    make_customer,
    make_endpoint,
    make_key,
    make_order,
    make_redemption,
    make_reward,
)
from tests.messaging.sending import build_message
from tests.shipping import parcels
from tests.webhooks.station import Station, answer_with

WIDTHS: dict[str, ViewportSize] = {"desk": {"width": 1440, "height": 900}, "phone": {"width": 360, "height": 800}}
assert PARTS
PAGES = [
    sheet.path.removeprefix("/{environment}")
    for sheet in desk.sheets
    if sheet.method == "GET" and sheet.roles is not None and sheet.path.count("{") == 1
]
"""Every page that needs no id."""


@pytest.fixture
async def page(
    browser: Browser, post_office: Installation, post: Database, client: Environments
) -> AsyncIterator[Page]:
    """An owner, signed in, with a pair of eyes on what the browser complains about."""
    email = await make_person(post, client)
    context = await browser.new_context(base_url=post_office.address, viewport=WIDTHS["desk"], locale="en-GB")
    opened = await context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda said: complaints.append(said.text) if "Content Security" in said.text else None)
    opened.on("dialog", lambda dialog: dialog.accept())
    await opened.goto("/console/live")
    await opened.fill("[name=email]", email)
    await opened.fill("[name=password]", PASSWORD)
    await opened.click("button.main")
    yield opened
    assert complaints == []
    await context.close()


async def test_the_first_owner_signs_in_by_the_link(
    browser: Browser, post_office: Installation, post: Database, client: Environments
) -> None:
    async with post.transaction() as tx:
        link = await actions.make_setup_link(tx, client.live)
    context = await browser.new_context(base_url=post_office.address, locale="id-ID")
    page = await context.new_page()
    await page.goto(f"/console/link/{link}")
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
    await page.click("button.main")
    key = await page.inner_text("#secret")

    async def call() -> int:
        async with httpx.AsyncClient() as shop:
            answer = await shop.get(f"{post_office.customer_base}/customers", headers={"x-api-key": key})
        return answer.status_code

    assert await call() == 200
    await page.click("text=I have copied it")
    assert key not in await page.content()
    assert key not in page.url
    await page.go_back()
    assert key not in await page.content()
    await page.goto("/console/live/keys")
    await page.click("text=Revoke")
    await page.wait_for_selector("text=revoked")
    assert await call() == 401
    await page.goto("/console/live/audit")
    assert "key.revoked" in await page.inner_text("table")
    assert key not in post_office.log.read_text()


async def test_a_webhook_fails_is_suspended_and_goes_on(
    page: Page, post_office: Installation, post: Database, client: Environments, station: Station
) -> None:
    key = await make_key(post, client.live)
    station.answer = answer_with(500)
    await page.goto("/console/live/webhooks/new")
    await page.fill("[name=url]", station.url("hooks"))
    await page.click("button.main")
    secret = await page.inner_text("#secret")
    await page.click("text=I have copied it")
    address = page.url
    headers = {"x-api-key": key.raw}
    async with httpx.AsyncClient(base_url=post_office.customer_base, headers=headers) as shop:
        for _ in range(10):
            await make_customer(shop)
        await wait_for(page, address, "text=suspended")
        assert "customer.created" in await page.inner_text("table")
        assert secret not in await page.content()
        station.answer = answer_with(200)
        await page.check("[value=all][name=missed]")
        await page.click("button:has-text('Resume')")
        await wait_for(page, address, "span.state.good:has-text('active')")
        await wait_for(page, address, "td .state.good:has-text('delivered')")
    await page.click("table a >> nth=0")
    assert "X-Service-Webhook-Signature" in await page.inner_text("pre >> nth=0")


async def wait_for(page: Page, address: str, sign: str) -> None:
    """Pages do not change by themselves yet: look again until it is there."""
    for _ in range(100):
        await page.goto(address)
        if await page.query_selector(sign):
            return
        await page.wait_for_timeout(200)
    raise AssertionError(f"{sign} did not appear: {await page.inner_text('main')}")


async def make_things(post_office: Installation, key: str) -> list[str]:
    """Something to look at for pages that show one thing."""
    headers = {"x-api-key": key}
    async with (
        httpx.AsyncClient(base_url=post_office.customer_base, headers=headers) as api,
        httpx.AsyncClient(base_url=f"{post_office.address}/messaging/v1", headers=headers) as messages,
    ):
        customer = await make_customer(api)
        await add_points(api, customer["id"], 100)
        reward = await make_reward(api, 50)
        await make_redemption(api, customer["id"], reward)
        order = await make_order(api, customerId=customer["id"])
        shipment = await parcels.create(api, "custom", orderId=order["id"])
        store = (await api.post("/shipping/store-locations", json={"name": "Toko", "address": "Jl. Satu"})).json()
        await messages.post("/messages/send", json=build_message())
        (record,) = (await messages.get("/messages/requests")).json()["data"]
    return [
        f"/customers/{customer['id']}",
        f"/loyalty/{customer['id']}",
        f"/rewards/{reward['id']}",
        f"/orders/{order['id']}",
        f"/shipments/{shipment['id']}",
        f"/shipments/new?orderId={order['id']}",
        f"/stores/{store['data']['id']}",
        f"/requests/{record['id']}?at={record['createdAt']}",
    ]


@pytest.mark.parametrize(("width", "scheme"), [("desk", "light"), ("phone", "dark")])
async def test_axe_finds_nothing_serious_on_any_page_and_nothing_is_cut_off(
    page: Page,
    post_office: Installation,
    post: Database,
    client: Environments,
    seal: Vault,
    width: str,
    scheme: Literal["light", "dark"],
) -> None:
    things = await make_things(post_office, (await make_key(post, client.live)).raw)
    endpoint = (await make_endpoint(post, seal, client.live)).endpoint.id
    await page.set_viewport_size(WIDTHS[width])
    await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    for path in (*PAGES, *things, f"/webhooks/{endpoint}"):
        answer = await page.goto(f"/console/live{path}")
        assert answer is not None
        assert answer.status == 200
        assert len(await answer.body()) < 200_000
        found = (await Axe().run(page, options={"resultTypes": ["violations"]})).response["violations"]
        assert [one["id"] for one in found if one["impact"] in {"serious", "critical"}] == [], path
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


async def test_it_works_without_scripts(
    browser: Browser, post_office: Installation, post: Database, client: Environments
) -> None:
    email = await make_person(post, client)
    context = await browser.new_context(base_url=post_office.address, java_script_enabled=False)
    page = await context.new_page()
    await page.goto("/console/test/keys/new")
    await page.fill("[name=email]", email)
    await page.fill("[name=password]", PASSWORD)
    await page.click("button.main")
    assert page.url.endswith("/console/test/keys/new")
    await page.fill("[name=name]", "plain")
    await page.click("button.main")
    assert (await page.inner_text("#secret")).startswith("svc_test_")
    await context.close()
