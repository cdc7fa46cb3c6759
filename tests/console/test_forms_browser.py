"""The shop's forms in a real browser: what was typed is kept, amounts are echoed, no order is made twice."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from itertools import product

import asyncpg
import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from sapa.console.amounts import NotAnAmount, parse_typed_amount
from sapa.console.routes import COOKIE
from sapa.db.pool import Database
from sapa.values.money import DIGITS, BadMoney, parse_amount
from sapa.values.phones import REGIONS
from tests.conftest import Installation
from tests.console.people import make_person
from tests.console.test_amounts import TYPED
from tests.console.test_inbox_screen import sign_in_again
from tests.console.test_workplace_browser import open_seat
from tests.factories import Environments, make_customer, make_order, make_product

NUMBERS = [
    *(typed for typed, *_ in TYPED), "", "Rp", "abc", "-5", "1e5", "1.2.3", "1,23,456", "10..0", "1.000.00", "9" * 16,
    "1.234", "1,2345", "1.2345", "0,005", "12.5", "12,50", "1.000,005", "0,07k", "1,23456 jt", "999999999 jt", "5,-",
    "5.-", "10.000,- rb", "Rp Rp 5", "usd 5", "5 usd", ".5", "5.", "1 000,5", "1.000 000", "12345.678",
    "123456789012345", "99999999999999,99", "1,000,000.5 rb", "2K", "10.0000", "0.500", "1,50000 jt",
]  # fmt: skip
TYPE = "(field, text) => (field.value = text)"
READ_ALL = "(cases) => cases.map((one) => readAmount(...one))"
REFUSE_PAYMENT = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no room'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON orders
        FOR EACH ROW WHEN (NEW.company_id = {id}) EXECUTE FUNCTION refuse();"""


@pytest.fixture
async def page(
    browser: Browser, installation: Installation, database: Database, company: Environments
) -> AsyncIterator[Page]:
    async with open_seat(browser, installation, database, await make_person(database, company)) as tab:
        yield tab


@asynccontextmanager
async def no_payments(installation: Installation, company_id: int) -> AsyncIterator[None]:
    """The company's orders cannot be changed."""
    owner = await asyncpg.connect(installation.server.owner_url)
    await owner.execute(REFUSE_PAYMENT.format(id=company_id))
    try:
        yield
    finally:
        await owner.execute("DROP FUNCTION refuse() CASCADE")
        await owner.close()


async def test_a_form_of_many_lines_survives_an_expired_session_and_its_order_is_made_once(
    page: Page, installation: Installation, company: Environments, api: httpx.AsyncClient
) -> None:
    variant = {"title": "250 g", "price": 85_000, "inventoryQuantity": 7}
    await make_product(api, name="Kopi Toraja", variants=[variant])
    await page.goto("/console/live/orders/new")
    email = await page.text_content(".account .menu p") or ""
    article = page.locator("[name=title]").first
    await article.fill("toraja")
    await expect(page.locator(".options [role=option]").first).to_contain_text("Rp 85,000 · 7 left")
    await article.press("Enter")
    await page.click("button:text-is('Add lines')")
    await expect(page.locator("[name=title]")).to_have_count(10)
    await page.fill("[name=title] >> nth=7", "Cangkir")
    await page.fill("[name=price] >> nth=7", "12.500")
    await expect(page.locator(".line-fields >> nth=7").locator(".echo:visible")).to_have_text("= Rp\u00a012,500")
    await page.fill("[name=quantity] >> nth=7", "3")
    await page.fill("[name=discount]", "2.500")
    await expect(page.locator(".echo:text('Rp\u00a02,500')")).to_be_visible()
    await page.fill("[name=discount]", "10")
    await page.select_option("[name=discountKind]", "percentage")
    await expect(page.locator(".echo:text('Rp\u00a02,500')")).to_be_hidden()
    await page.check("[name=isPaid]")
    await page.context.clear_cookies(name=COOKIE)
    await page.click("button.main:text-is('Create order')")
    await sign_in_again(page, email)
    await page.wait_for_url("**/console/live/orders/new")
    await expect(page.locator("[name=title]")).to_have_count(10)
    await expect(article).to_have_value("Kopi Toraja · 250 g")
    await expect(page.locator("[name=productVariantId]").first).not_to_have_value("")
    line = [await page.input_value(f"[name={name}] >> nth=7") for name in ("title", "price", "quantity")]
    assert line == ["Cangkir", "12.500", "3"]
    await expect(page.locator("[name=isPaid]")).to_be_checked()
    assert [await page.input_value(f"[name={name}]") for name in ("discount", "discountKind")] == ["10", "percentage"]
    async with no_payments(installation, company.live):
        await page.click("button.main:text-is('Create order')")
        await expect(page.locator(".toasts")).to_contain_text("created, but not marked as paid")
    (order,) = (await api.get("/orders")).json()["data"]
    assert page.url.endswith(f"/orders/{order['id']}")
    assert (order["financialStatus"], order["total"]) == ("pending", 110_250)
    assert [item["quantity"] for item in order["lineItems"]] == [1, 3]


async def test_an_amount_is_echoed_exactly_when_the_server_takes_it(page: Page) -> None:
    await page.goto("/console/live/products/new")
    await page.fill("[name='variant.price']", "85.000")
    await page.fill("[name='variant.compareAtPrice']", "85.0001")
    echoes = page.locator("table .echo")
    await expect(echoes.first).to_have_text("= Rp\u00a085,000")
    await expect(echoes.nth(1)).to_be_hidden()
    cases = [
        (text, language, currency, DIGITS[currency])
        for text, language, currency in product(NUMBERS, ("en", "id"), ("IDR", "USD", "JPY", "KWD"))
    ]
    echoed = await page.evaluate(READ_ALL, cases)
    differing = [
        (case, shown, meant)
        for case, shown in zip(cases, echoed, strict=True)
        if (None if shown is None else Decimal(str(shown))) != (meant := read_on_server(*case[:3]))
    ]
    assert differing == []


def read_on_server(text: str, language: str, currency: str) -> Decimal | None:
    try:
        return parse_amount(parse_typed_amount(text, language, currency), currency)
    except (NotAnAmount, BadMoney):
        return None


async def test_a_preset_keeps_the_name_and_is_chosen_without_creating_a_key(page: Page) -> None:
    await page.goto("/console/live/keys/new")
    await page.fill("[name=name]", "ERP")
    await page.click("button:text-is('Read only')")
    await expect(page.locator("[value='orders:READ']")).to_be_checked()
    await expect(page.locator("[value='orders:WRITE']")).not_to_be_checked()
    await expect(page.locator("button:text-is('Read only')")).to_have_attribute("aria-pressed", "true")
    assert await page.input_value("[name=name]") == "ERP"
    await page.uncheck("[value='products:READ']")
    email = await page.text_content(".account .menu p") or ""
    await page.context.clear_cookies(name=COOKIE)
    await page.press("[name=name]", "Enter")
    await sign_in_again(page, email)
    await expect(page.locator("[value='orders:READ']")).to_be_checked()
    await expect(page.locator("[value='products:READ']")).not_to_be_checked()
    await page.press("[name=name]", "Enter")
    await expect(page.locator("#secret")).to_be_visible()
    await page.goto("/console/live/keys")
    await expect(page.locator("tbody tr")).to_have_count(1)
    await expect(page.locator("tbody tr")).to_contain_text("ERP")


async def test_ticks_find_their_rows_again(page: Page, api: httpx.AsyncClient) -> None:
    """Though others have come above them while the session had expired."""
    first = await make_order(api)
    await page.goto("/console/live/orders")
    email = await page.text_content(".account .menu p") or ""
    await page.check(f"[name=id][value={first['id']}]")
    await page.context.clear_cookies(name=COOKIE)
    second = await make_order(api)
    await page.click("button:text-is('Archive')")
    await sign_in_again(page, email)
    await page.wait_for_url("**/console/live/orders")
    await expect(page.locator(f"[name=id][value={first['id']}]")).to_be_checked()
    await expect(page.locator(f"[name=id][value={second['id']}]")).not_to_be_checked()


@pytest.mark.parametrize(
    ("language", "own", "british"),
    [
        pytest.param("en", "Indonesian (id)", "English (United Kingdom) (en_GB)", marks=pytest.mark.long),
        ("id", "Indonesia (id)", "Inggris (Inggris Raya) (en_GB)"),
    ],
)
async def test_the_language_of_a_template_is_chosen_by_name(
    browser: Browser, installation: Installation, database: Database, company: Environments, language: str, own: str,
    british: str,
) -> None:  # fmt: skip
    """A code that is not in the list stays, with what is wrong about it."""
    email = await make_person(database, company)
    async with open_seat(browser, installation, database, email, language) as page:
        await page.goto("/console/test/templates/new")
        assert await page.eval_on_selector("select[name=language]", CHOSEN) == own
        listed = await page.eval_on_selector("select[name=language]", NAMES)
        assert [name for name in listed if not re.search(r".\([a-z]{2,3}(_[A-Z]{2})?\)$", name)] == []
        await page.fill("[name=name]", "order_update")
        await page.fill("[name=body]", "Pesanan Anda siap diambil.")
        await page.select_option("select[name=language]", label=british)
        await page.click("form.form button.main")
        await expect(page.locator("h1")).to_have_text(f"order_update {british}")
        await page.goto("/console/test/templates/new")
        await page.eval_on_selector("select[name=language]", "(all) => { all.selectedOptions[0].value = 'xx_YY1'; }")
        await page.fill("[name=name]", "order_update")
        await page.fill("[name=body]", "Pesanan Anda siap diambil.")
        await page.click("form.form button.main")
        await expect(page.locator("#language-problem")).to_be_visible()
        assert await page.eval_on_selector("select[name=language]", CHOSEN) == "xx_YY1"
        await expect(page.locator("select[name=language]")).to_have_value("xx_YY1")


CHOSEN = "(select) => select.selectedOptions[0].textContent"
NAMES = "(select) => [...select.options].map((option) => option.textContent)"


@pytest.mark.parametrize(
    ("language", "country", "currency", "own"),
    [
        pytest.param("en", "Japan (JP)", "Indonesian Rupiah (IDR)", "The company's", marks=pytest.mark.long),
        ("id", "Jepang (JP)", "Rupiah Indonesia (IDR)", "Ikut perusahaan"),
    ],
)
async def test_the_country_and_the_currency_are_chosen_by_name(
    browser: Browser, installation: Installation, database: Database, company: Environments, language: str,
    country: str, currency: str, own: str, api: httpx.AsyncClient,
) -> None:  # fmt: skip
    email = await make_person(database, company)
    async with open_seat(browser, installation, database, email, language) as page:
        await page.goto("/console/live/settings/company")
        assert await page.eval_on_selector("[name=currency]", CHOSEN) == currency
        await expect(page.locator("td [data-names=currency]").first).to_have_text(currency)
        for name, codes in (("country", REGIONS), ("currency", DIGITS)):
            assert await page.eval_on_selector_all(
                f"[name={name}] option", "(all) => all.map((one) => one.value).sort()"
            ) == sorted(codes)
        listed = await page.eval_on_selector("[name=country]", NAMES)
        assert listed == await page.evaluate(
            "([names, to]) => [...names].sort((a, b) => a.localeCompare(b, to))", [listed, language]
        )
        await page.goto("/console/profile")
        assert await page.eval_on_selector("[name=currency]", CHOSEN) == own
        await page.select_option("[name=currency]", label=currency)
        await page.goto("/console/live/settings/company")
        await page.select_option("[name=country]", label=country)
        zones = await page.eval_on_selector_all("#zones option", "(all) => all.map((one) => one.value)")
        assert {"Asia/Jakarta", "Asia/Makassar", "Asia/Jayapura"} <= set(zones)
        await page.fill("[name=timeZone]", "Mars/Olympus")
        await page.click("form[action$=regional] button.main")
        await expect(page.locator("#timeZone-problem")).to_be_visible()
        await expect(page.locator("[name=timeZone]")).to_have_value("Mars/Olympus")
        assert await page.eval_on_selector("[name=country]", CHOSEN) == country
        await page.fill("[name=timeZone]", "Asia/Tokyo")
        await page.click("form[action$=regional] button.main")
        await expect(page.locator(".toasts")).to_be_visible()
    settings = (await api.get("/company")).json()["data"]
    assert (settings["country"], settings["currency"], settings["timeZone"]) == ("JP", "IDR", "Asia/Tokyo")


async def test_a_country_that_is_refused_stays_visible(page: Page) -> None:
    await page.goto("/console/live/settings/company")
    await page.evaluate("document.querySelector('[name=country]').add(new Option('Atlantis', 'Q9', true, true))")
    await page.click("form[action$=regional] button.main")
    await expect(page.locator("#country-problem")).to_be_visible()
    await expect(page.locator("[name=country]")).to_have_value("Q9")
    await expect(page.locator("[name=country]")).to_be_focused()


async def test_weights_and_units_are_typed_as_people_write_them(
    browser: Browser, installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    ayu = await make_customer(api, firstName="Ayu")
    async with open_seat(browser, installation, database, await make_person(database, company), "id") as page:
        await page.goto("/console/live/shipments/new")
        weight = page.locator("[name='package.weight']")
        for typed, echo in (("1,5", "= 1,5\u00a0kg"), ("0.250", "= 0,25\u00a0kg"), ("1.500", "= 1.500\u00a0kg")):
            await weight.press_sequentially(typed)
            await expect(weight).to_have_value(typed)
            await expect(page.locator(".echo:visible")).to_have_text(echo)
            await weight.fill("")
        await page.goto(f"/console/live/loyalty/{ayu['id']}")
        points = page.locator("[action$='/points'] [name=points]")
        await points.press_sequentially("1.500")
        await expect(page.locator(".echo:visible")).to_have_text("= 1.500")
        await page.fill("[action$='/points'] [name=reason]", "Hadiah")
        await page.click("[action$='/points'] button")
        await expect(page.locator(".toasts")).to_be_visible()
    wallet = (await api.get(f"/loyalty/customers/{ayu['id']}/wallet")).json()["data"]
    assert wallet["availablePoints"] == "1500"


COFFEE = {"name": "Kopi", "variant.price": "1"}
LINE = {"title": "Kopi", "price": "5"}
REFUSED_FORMS: list[tuple[str, dict[str, str], str, str]] = [
    ("products/new", COFFEE | {"variant.price": "much"}, "variant.price", "amount"),
    ("products/new", COFFEE | {"variant.stock": "few"}, "variant.stock", "number"),
    ("products/new", COFFEE | {"pictures": "kopi.png"}, "pictures", "http"),
    ("products/new", COFFEE | {"tags": "x" * 101}, "tags", "each can have at most 100 characters"),
    ("orders/new", LINE | {"title 1": "Teh", "price 1": "x"}, "price", "amount"),
    ("orders/new", {"title": "Kopi Mars"}, "title", "choose a product"),
    ("orders/new", LINE | {"discount": "7"}, "discount", "Rp\u00a07"),
    ("orders/new", LINE | {"discount": "150%"}, "discount", "from 0 to 100"),
    ("customers/new", {"firstName": "Ayu"}, "phoneNumber", "enter a phone number or an email"),
    (
        "../test/stores/new",
        {"name": "Toko", "address": "Jl. Satu", "areaSearch": "suka"},
        "areaSearch",
        "choose the district",
    ),
    ("keys/new", {"name": "ERP"}, "scope", "at least one"),
    ("settings/loyalty", {"amount": "10000", "points": "x"}, "points", "whole number"),
    ("settings/team", {"name": "Budi", "email": "{email}"}, "email", "already on your team"),
    ("orders/{order}", {"amount": "6000"}, "amount", "Rp\u00a06,000"),
]
"""What is typed, with the place of a row that is not the first; the field that has the focus then, and what is said."""


async def test_a_problem_is_said_at_its_field_which_has_the_focus(
    browser: Browser, installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    email = await make_person(database, company)
    order = (await make_order(api, lineItems=[{"title": "Kopi", "price": 5_000, "quantity": 1}]))["id"]
    async with open_seat(browser, installation, database, email) as page:
        for path, fields, name, said in REFUSED_FORMS:
            await page.goto(f"/console/live/{path.format(order=order)}")
            form = page.locator(f"main form:has([name='{list(fields)[-1].split()[0]}'])").last
            for field, text in fields.items():
                input_name, _, place = field.partition(" ")
                await (
                    form.locator(f"[name='{input_name}']").nth(int(place or 0)).evaluate(TYPE, text.format(email=email))
                )
            await form.evaluate("(form) => form.requestSubmit()")
            focused = page.locator("main :focus[aria-invalid=true]")
            await expect(focused).to_have_attribute("name", name)
            problem = page.locator(f"[id='{await focused.get_attribute('aria-describedby')}']")
            await expect(problem).to_contain_text(said, ignore_case=True)
