"""The reference pages, in a real browser."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Literal

import httpx
import pytest
from playwright.async_api import Browser, Page, Response

from sapa.db.pool import Database
from sapa.http.endpoints import Base
from sapa.http.openapi import Document
from sapa.http.reference import (
    build_curl,
    colour_json,
    describe_rules,
    describe_type,
    prose,
    render_page,
)
from sapa.http.reference_pages import OVERVIEW, WEBHOOKS, slug_of
from sapa.http.schemas import Schema
from tests.browsers import new_context, new_page
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_key
from tests.http.response_check import document_of, operations_of

MAX_BYTES = 40_000
"""Of a page on the wire: a slow phone, at 1.6 Mbit/s, loads them in a fifth of a second."""
MAX_ELEMENTS = 10_000
"""Of a page. A slow phone builds so many in about a second; the whole reference has ten times as many."""

# For every text: the ratio of its colour's luminance to that of what lies behind it, after WCAG 2.
POOR_CONTRASTS = """() => {
  const parse = (text) => (text.match(/[0-9.]+/g) || [0, 0, 0, 0]).map(Number);
  const linear = (v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => .2126 * linear(r / 255) + .7152 * linear(g / 255) + .0722 * linear(b / 255);
  const behind = (node) => {
    if (!node) return [255, 255, 255];
    const [r, g, b, a = 1] = parse(getComputedStyle(node).backgroundColor);
    const under = a < 1 ? behind(node.parentElement) : [0, 0, 0];
    return [r, g, b].map((v, i) => v * a + under[i] * (1 - a));
  };
  const holdsText = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  const texts = [...document.querySelectorAll("body :not(script)")].filter((n) => n.checkVisibility() && holdsText(n));
  return texts.map((node) => {
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    return [(a + .05) / (b + .05), node.tagName, node.className, node.textContent.trim().slice(0, 40)];
  }).filter(([ratio]) => ratio < 4.5);
}"""


def pages_of(base: Base) -> list[str]:
    return [OVERVIEW, *(slug_of(tag["name"]) for tag in document_of(base)["tags"]), WEBHOOKS]


def address_of(installation: Installation, base: Base, page: str) -> str:
    return f"{installation.address}{base}/docs/{page}".rstrip("/")


@pytest.fixture
async def page(browser: Browser, installation: Installation) -> AsyncIterator[Page]:
    """The customer API's page of customers on a desk."""
    context = await new_context(browser, viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    opened = await context.new_page()
    await opened.goto(address_of(installation, Base.CUSTOMER, "customers"))
    yield opened
    await context.close()


class Visit:
    """A page in a light browser, what it requested and what the browser reported."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    async def load(self) -> Response | None:
        """Waits for both: on a slow machine the network is idle before a page is parsed."""
        response = await self.page.goto(self.address, wait_until="load")
        await self.page.wait_for_load_state("networkidle")
        return response


@pytest.fixture(scope="module")
async def visits(browser: Browser, installation: Installation) -> AsyncIterator[dict[tuple[Base, str], Visit]]:
    """One of each page for all tests that only read."""
    context = await new_context(browser, color_scheme="light")
    opened = {
        (base, page): Visit(await context.new_page(), address_of(installation, base, page))
        for base in Base
        for page in pages_of(base)
    }
    for response in await asyncio.gather(*(visit.load() for visit in opened.values())):
        assert response is not None
        assert response.status == 200
        assert response.headers["content-type"].startswith("text/html")
    yield opened
    await context.close()


async def test_a_page_asks_for_nothing_but_itself_and_runs_without_complaint(
    visits: dict[tuple[Base, str], Visit],
) -> None:
    for visit in visits.values():
        assert [url for url in visit.requests if not url.startswith("data:")] == [visit.address]
        assert visit.complaints == [], visit.address


@pytest.mark.parametrize("base", Base)
async def test_every_operation_schema_and_event_is_on_one_page_and_in_the_contents_of_all(
    visits: dict[tuple[Base, str], Visit], base: Base
) -> None:
    document = document_of(base)
    schemas = document["components"]["schemas"]
    places = {operation.id for operation in operations_of(base)}
    places |= {f"event-{kind}" for kind in document["webhooks"]}
    places |= {
        f"schema-{name}" for name, schema in schemas.items() if [*schema.get("properties", ["data"])] != ["data"]
    }
    found: list[str] = []
    for page in pages_of(base):
        opened = visits[base, page].page
        found += await opened.evaluate("() => [...document.querySelectorAll('main [id]')].map((node) => node.id)")
        contents = await opened.evaluate("() => [...document.querySelectorAll('nav li a')].map((a) => a.hash.slice(1))")
        assert places <= set(contents)
        assert len(contents) == len(set(contents))
    assert sorted(id for id in found if id in places) == sorted(places)


async def test_every_link_leads_to_a_place_that_exists(visits: dict[tuple[Base, str], Visit]) -> None:
    places, links = set(), set()
    for visit in visits.values():
        ids = await visit.page.evaluate("() => [...document.querySelectorAll('[id]')].map((node) => node.id)")
        places |= {visit.address, *(f"{visit.address}#{id}" for id in ids)}
        links |= set(await visit.page.evaluate("() => [...document.links].map(String)"))
    assert {link for link in links - places if not link.endswith(("/openapi.json", "/docs/errors.html"))} == set()


async def test_a_page_is_small_on_the_wire(visits: dict[tuple[Base, str], Visit]) -> None:
    async with httpx.AsyncClient(verify=TLS, timeout=120) as client:
        for visit in visits.values():
            async with client.stream("GET", visit.address) as answer:
                assert sum([len(chunk) async for chunk in answer.aiter_raw()]) < MAX_BYTES, visit.address


async def test_a_page_is_little_work_for_a_slow_phone(visits: dict[tuple[Base, str], Visit]) -> None:
    for place, visit in visits.items():
        elements = await visit.page.evaluate("document.querySelectorAll('*').length")
        requests = await visit.page.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
        assert elements <= MAX_ELEMENTS, place
        assert requests == [], place  # each would cost another round trip


async def test_a_place_that_was_saved_with_the_overview_s_address_is_found(
    browser: Browser, installation: Installation
) -> None:
    opened = await new_page(browser)
    await opened.goto(address_of(installation, Base.CUSTOMER, OVERVIEW) + "#create_order")
    await opened.wait_for_url("**/docs/orders#create_order")
    await opened.goto(address_of(installation, Base.CUSTOMER, OVERVIEW) + "#errors")
    assert opened.url.endswith("/docs#errors")
    await opened.close()


async def test_a_base_without_operations_says_so(browser: Browser) -> None:
    empty = document_of(Base.CUSTOMER) | {"paths": {}, "webhooks": {}, "tags": []}
    opened = await new_page(browser)
    await opened.set_content(render_page(Document(empty), OVERVIEW))
    assert await opened.get_by_text("Nothing can be called under this address yet.").is_visible()
    await opened.close()


async def test_the_filter_narrows_the_contents(page: Page) -> None:
    shown = page.locator("nav li:visible")
    everything = await shown.count()
    await page.keyboard.press("/")
    assert await page.evaluate("document.activeElement.id") == "filter"
    await page.keyboard.type("delete customers")
    assert await shown.all_inner_texts() == ["DELETE\nDelete a customer"]
    assert await page.locator("nav h2:visible").all_inner_texts() == ["CUSTOMERS"]
    await page.keyboard.press("Enter")
    assert page.url.endswith("#delete_customer")
    await page.locator("#filter").fill("no such thing")
    assert await page.get_by_text("Nothing matches.").is_visible()
    await page.locator("#filter").press("Escape")
    assert await shown.count() == everything
    await page.locator("#filter").fill("list_orders")
    await page.locator("#filter").press("Enter")
    await page.wait_for_url("**/docs/orders#list_orders")


async def test_a_link_of_the_contents_leads_to_its_section_and_is_marked(page: Page) -> None:
    link = page.locator('nav a[href="#update_customer"]')
    await link.click()
    await page.wait_for_selector('nav a[href="#update_customer"][aria-current]')
    is_at_the_top = "() => (top => 0 <= top && top < 100)(update_customer.getBoundingClientRect().top)"
    await page.wait_for_function(is_at_the_top)
    assert await page.locator("nav a[aria-current]").count() == 1


async def test_the_page_can_be_read_by_keyboard_and_screen_reader(page: Page) -> None:
    assert await page.locator("main").count() == await page.locator("nav[aria-label]").count() == 1
    assert await page.locator("h1").count() == 1
    assert await page.get_by_label("Filter").count() == 1
    levels = [
        int(tag[1])
        for tag in await page.locator("main :is(h1, h2, h3, h4)").evaluate_all("(n) => n.map((h) => h.tagName)")
    ]
    assert all(deeper - level <= 1 for level, deeper in pairwise(levels))
    assert await page.locator("table:not(:has(caption))").count() == 0
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    assert page.url.endswith("#main")


@pytest.mark.parametrize("shown", [OVERVIEW, "customers", WEBHOOKS])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_text_stands_out_from_its_ground(
    visits: dict[tuple[Base, str], Visit], scheme: Literal["light", "dark"], shown: str
) -> None:
    opened = visits[Base.CUSTOMER, shown].page
    await opened.emulate_media(color_scheme=scheme)
    assert await opened.evaluate(POOR_CONTRASTS) == []
    ground = await opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")


async def test_a_phone_shows_the_whole_width_and_a_menu(browser: Browser, installation: Installation) -> None:
    context = await new_context(browser, viewport={"width": 360, "height": 740}, reduced_motion="reduce")
    opened = await context.new_page()
    for page in pages_of(Base.CUSTOMER):
        await opened.goto(address_of(installation, Base.CUSTOMER, page))
        assert await opened.evaluate("document.documentElement.scrollWidth") == 360, page
    assert not await opened.locator("#contents").is_visible()
    await opened.get_by_role("button", name="Contents").click()
    await opened.locator('nav a[href$="#list_customers"]').click()
    await opened.wait_for_url("**/docs/customers#list_customers")
    assert not await opened.locator("#contents").is_visible()
    await context.close()


async def test_the_page_needs_no_key_and_forbids_itself_anything_from_elsewhere(installation: Installation) -> None:
    async with httpx.AsyncClient(verify=TLS, timeout=120) as client:
        response = await client.get(f"{installation.address}{Base.CUSTOMER}/docs")
    assert response.status_code == 200
    assert "default-src &#39;none&#39;" in response.text


async def test_the_example_calls_work_when_pasted_into_a_shell(
    visits: dict[tuple[Base, str], Visit], database: Database, company: Environments
) -> None:
    page = visits[Base.CUSTOMER, "customers"].page
    key = await make_key(database, company.test)
    create = await page.locator("#create_customer .code pre").first.text_content()
    made = await paste(create or "", key.raw)
    assert made.startswith("201 "), made
    id = re.search(r"cust_[0-9a-z]{26}", made)
    assert id is not None
    for operation, status in [("list_customers", 200), ("upsert_customer", 200), ("get_customer", 200),
                              ("update_customer", 200), ("delete_customer", 204)]:  # fmt: skip
        command = await page.locator(f"#{operation} .code pre").first.text_content()
        answered = await paste(re.sub(r"cust_[0-9a-z]{26}", id[0], command or ""), key.raw)
        assert answered.startswith(f"{status} "), answered


async def paste(command: str, key: str) -> str:
    """The status and body that the command gets, run by a shell that has the key."""
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", command + ' -sS -w "\\n%{http_code}"',
        env={**os.environ, "SAPA_API_KEY": key}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    body, _, status = output.decode().rpartition("\n")
    return f"{status} {body}"


def test_a_quote_in_an_example_does_not_end_the_shells_text() -> None:
    operation = {"parameters": [], "requestBody": {"content": {"application/json": {"example": {"a": "it's"}}}}}
    assert build_curl("http://h", "/a", "post", operation).endswith("""-d '{\n  "a": "it'\\''s"\n}'""")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["integer", "null"]}, "integer or null"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/Address"}}, "list of Address"),
        ({"anyOf": [{"$ref": "#/components/schemas/Address"}, {"type": "null"}]}, "Address or null"),
    ],
)
def test_types_are_described_in_words(schema: Schema, words: str) -> None:
    assert describe_type(schema) == words


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"minLength": 1, "maxLength": 255}, ["1 – 255 characters"]),
        ({"maxItems": 1}, ["at most 1 item"]),
        ({"minItems": 1}, ["at least 1 item"]),
        ({"minimum": 1, "maximum": 1_000_000, "default": 1}, ["1 – 1,000,000", "default `1`"]),
        ({"format": "email", "examples": ["a@b.c"]}, ["email", "such as `a@b.c`"]),
        ({"const": "true"}, ["always `true`"]),
    ],
)
def test_rules_are_described_in_words(schema: Schema, words: list[str]) -> None:
    assert list(describe_rules(schema)) == words


def test_texts_are_escaped_before_they_are_marked() -> None:
    assert prose("One `<b>`\nline.\n\nTwo <i>.") == "<p>One <code>&lt;b&gt;</code> line.</p><p>Two &lt;i&gt;.</p>"
    assert "<script>" not in colour_json({"a": "<script>"})
