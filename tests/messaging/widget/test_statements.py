"""The form before the chat: what visitors say about themselves is checked, shown to agents, and links to nobody."""

import re
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from playwright.async_api import Browser as RealBrowser
from playwright.async_api import Page, expect

from sapa.db.pool import Database
from tests.browsers import new_context
from tests.cli.command import sapa
from tests.conftest import Installation, connect
from tests.factories import Environments, make_key
from tests.http.wire import eventually
from tests.messaging.conversation_steps import list_events
from tests.messaging.shop_site import Browser, Chat, open_site

WRONG = {
    "id": "Isi email seperti ayu@contoh.id, atau nomor telepon seperti 0812 3456 7890.",
    "en": "Enter an email like ayu@example.com, or a phone number like +62 812 3456 7890.",
}


@pytest.fixture
async def people(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    """The customers of the test environment, by the API."""
    async with connect(installation, (await make_key(database, company.test)).raw) as opened:
        yield opened


@pytest.fixture
def asking(installation: Installation, company: Environments) -> Chat:
    """A live chat that asks for a name and a contact."""
    arguments = ["--company", str(company.live), "--source", "WIDGET", "--json", "--set", "form=contact"]
    created = sapa(installation.data, "channel", "connect", *arguments).json()
    key = created["snippet"].partition('data-key="')[2].partition('"')[0]
    return Chat(installation.address, key, created["generated"]["secret"])


async def read_ticket(shop: httpx.AsyncClient) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        found = (await shop.get("/tickets")).json()["data"]
        return found[0] if found else None

    return await eventually(look)


async def test_a_statement_is_beside_the_conversation_and_not_in_it(
    page: Browser, shop: httpx.AsyncClient, people: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    email = f"ayu-{uuid4().hex[:8]}@example.com"
    known = await people.post("/customers", json={"email": email})
    assert known.status_code == 201, known.text
    assert (await page.join())["hasStated"] is False
    answer = await page.call("POST", "statement", {"name": " Ayu Lestari ", "contact": email})
    assert answer.status_code == 204, answer.text
    assert (await page.join())["hasStated"] is True
    await page.send("Halo, kopi Gayo masih ada?")
    (received,) = await list_events(database, company.test, "message.received")
    assert (received["body"], received["customerId"]) == ("Halo, kopi Gayo masih ada?", None)
    ticket = await read_ticket(shop)
    said = [ticket[name] for name in ("statedName", "statedContact", "clientName", "customerId")]
    assert said == ["Ayu Lestari", email, "Ayu Lestari", None]
    found = (await shop.get("/tickets/search", params={"query": "lestari"})).json()["data"]
    assert [match["ticket"]["id"] for match in found] == [ticket["id"]]


@pytest.mark.parametrize(
    ("contact", "stored"),
    [
        ("Ayu@Example.COM", "Ayu@example.com"),
        (" ayu@example.com ", "ayu@example.com"),
        ("0812 3456 7890", "+6281234567890"),
        ("+62 812-3456-7890", "+6281234567890"),
        ("+65 8123 4567", "+6581234567"),
    ],
)
async def test_an_address_or_a_number_is_stored_in_its_normal_form(
    page: Browser, shop: httpx.AsyncClient, contact: str, stored: str
) -> None:
    await page.join()
    assert (await page.call("POST", "statement", {"name": "Ayu", "contact": contact})).status_code == 204
    await page.send("Halo")
    assert (await read_ticket(shop))["statedContact"] == stored


@pytest.mark.parametrize("contact", ["ayu", "ayu@", "@example.com", "ayu@example", "12", "0812-ayu", "   ", "", 7])
async def test_anything_else_is_refused(page: Browser, shop: httpx.AsyncClient, contact: Any) -> None:
    await page.join()
    answer = await page.call("POST", "statement", {"name": "Ayu", "contact": contact})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert (await page.join())["hasStated"] is False
    await page.send("Halo")
    ticket = await read_ticket(shop)
    assert (ticket["statedName"], ticket["statedContact"]) == (None, None)


async def test_what_the_form_asks_for_is_required(client: httpx.AsyncClient, asking: Chat) -> None:
    page = Browser(client, asking)
    await page.join()
    for statement in ({"name": "Ayu"}, {"contact": "ayu@example.com"}, {"name": " ", "contact": "ayu@example.com"}):
        assert (await page.call("POST", "statement", statement)).status_code == 400


async def test_a_statement_is_erased_with_the_customer(
    page: Browser, shop: httpx.AsyncClient, people: httpx.AsyncClient
) -> None:
    await page.join()
    await page.call("POST", "statement", {"name": "Ayu Lestari", "contact": "0812 3456 7890"})
    await page.send("Halo")
    ticket = await read_ticket(shop)
    customer = (await people.post("/customers", json={"phoneNumber": "+6281234567890"})).json()["data"]
    linked = await shop.put(f"/tickets/{ticket['id']}/customer", json={"customerId": customer["id"]})
    assert (linked.json()["data"]["statedName"], linked.status_code) == ("Ayu Lestari", 200)
    assert (await people.delete(f"/customers/{customer['id']}")).status_code == 204
    erased = await read_ticket(shop)
    assert [erased[name] for name in ("statedName", "statedContact", "clientName")] == [None, None, None]


@pytest.fixture
async def site(asking: Chat) -> AsyncIterator[str]:
    async with open_site(asking) as address:
        yield address


@pytest.fixture
async def opened(browser: RealBrowser, site: str) -> AsyncIterator[Page]:
    context = await new_context(browser, viewport={"width": 390, "height": 760}, reduced_motion="reduce")
    yield await context.new_page()
    await context.close()


@pytest.mark.parametrize(
    ("lang", "name", "contact", "begin", "write", "send"),
    [
        ("id", "Nama Anda", "Email atau nomor telepon", "Mulai mengobrol", "Tulis pesan", "Kirim"),
        ("en", "Your name", "Email or phone number", "Start the chat", "Write a message", "Send"),
    ],
)
async def test_a_visitor_is_told_at_the_field_what_is_wrong(
    opened: Page,
    site: str,
    live: httpx.AsyncClient,
    lang: str,
    name: str,
    contact: str,
    begin: str,
    write: str,
    send: str,
) -> None:
    await opened.goto(f"{site}?lang={lang}")
    await opened.locator("button.launch").click()
    await opened.get_by_label(name).fill("Ayu Lestari")
    field = opened.get_by_label(contact)
    await field.fill("besok")
    await opened.get_by_role("button", name=begin).click()
    await expect(opened.get_by_role("alert")).to_have_text(WRONG[lang])
    await expect(field).to_be_focused()
    await expect(field).to_have_accessible_description(WRONG[lang])
    await expect(opened.get_by_role("textbox", name=write)).to_be_hidden()
    await field.fill("0812 3456 7890")
    await opened.keyboard.press("Enter")
    box = opened.get_by_role("textbox", name=write)
    await expect(box).to_be_focused()
    await opened.reload()
    await opened.locator("button.launch").click()
    await expect(box).to_be_focused()
    await box.fill("Halo")
    await opened.get_by_role("button", name=send, exact=True).click()
    await expect(opened.get_by_role("log").get_by_text("Halo")).to_have_count(1)
    await expect(opened.get_by_role("log")).not_to_contain_text(re.compile("Ayu|0812"))
    ticket = await read_ticket(live)
    assert [ticket["statedName"], ticket["statedContact"], ticket["lastMessage"]] == [
        "Ayu Lestari", "+6281234567890", "Halo",
    ]  # fmt: skip
