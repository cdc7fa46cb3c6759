"""The unsubscribe link of a mail: one click for mail programs, a page with a button for people."""

import re

import httpx
import pytest
from playwright.async_api import Browser

from sapa.db.pool import Database
from tests.browsers import new_page
from tests.conftest import TLS
from tests.factories import Environments, make_customer
from tests.messaging.consents.steps import (
    ADDRESS,
    find_customer,
    find_link,
    get_subscriptions,
    is_refused,
    list_consents,
    make_promo,
    post_link,
    read_mails,
    send_promo,
    write,
)
from tests.messaging.send_steps import make_template


async def mail_promo(sandbox: httpx.AsyncClient, to: str = ADDRESS) -> str:
    """The link of the newest promotion."""
    answer = await send_promo(sandbox, to, "MAIL")
    assert answer.status_code == 200, answer.text
    return find_link((await read_mails(sandbox))[-1])


async def get_page(link: str, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(verify=TLS, timeout=120) as reader:
        return await reader.get(link, headers=headers)


@pytest.mark.smoke
async def test_a_promotion_by_mail_has_the_headers_of_one_click_unsubscribe(
    sandbox: httpx.AsyncClient, shop: httpx.AsyncClient
) -> None:
    await make_promo(sandbox)
    await make_template(sandbox)
    customer = await make_customer(shop, email=ADDRESS)
    answer = await send_promo(sandbox, ADDRESS, "MAIL")
    message_id = answer.json()["data"]["messageId2"]
    (mail,) = await read_mails(sandbox)
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    link = find_link(mail)
    assert re.fullmatch(r"https?://[^/]+/unsubscribe/[0-9]+-[A-Za-z0-9_-]{32}\?message=[0-9a-f-]{36}", link)
    assert ADDRESS not in link
    plain, page = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert page is not None
    assert f"Berhenti berlangganan: {link}" in plain.get_content()
    assert f'<a href="{link}">Berhenti berlangganan</a>' in page.get_content()
    done = await post_link(link)
    assert (done.status_code, done.history, "set-cookie" in done.headers) == (200, [], False)
    assert await is_refused(sandbox, ADDRESS, "MAIL")
    (consent,) = await list_consents(shop, customer["id"])
    assert (consent["source"], consent["identity"], consent["byPerson"]) == ("one_click", ADDRESS, True)
    assert (consent["proof"]["reference"], consent["proof"]["place"]) == (message_id, "MAIL")
    assert await get_subscriptions(shop, customer["id"]) == {"MAIL": "unsubscribe"}
    update = {"to": ADDRESS, "sources": "MAIL", "template_name": "order_update", "params": ["Ayu", "17"]}
    assert (await sandbox.post("/messages/send-template", json=update)).status_code == 200
    assert (await read_mails(sandbox))[-1]["List-Unsubscribe"] is None


async def test_opening_the_link_changes_nothing(sandbox: httpx.AsyncClient) -> None:
    """Scanners of mail open every link."""
    await make_promo(sandbox)
    link = await mail_promo(sandbox)
    page = await get_page(link)
    assert page.status_code == 200
    assert ADDRESS not in page.text
    assert "a•••@example.com" in page.text
    assert page.headers["cache-control"] == "no-store"
    assert "script" not in page.text
    assert not await is_refused(sandbox, ADDRESS, "MAIL")


async def test_each_person_has_one_link_and_only_their_own(sandbox: httpx.AsyncClient, shop: httpx.AsyncClient) -> None:
    await make_promo(sandbox)
    link, again, other = [await mail_promo(sandbox, to) for to in (ADDRESS, ADDRESS.upper(), "budi@example.com")]
    assert link.partition("?")[0] == again.partition("?")[0] != other.partition("?")[0]
    assert (await post_link(other)).status_code == 200
    assert not await is_refused(sandbox, ADDRESS, "MAIL")
    assert await is_refused(sandbox, "Budi@Example.com", "MAIL")


@pytest.mark.parametrize("path", ["1-" + "x" * 32, "999999-" + "x" * 32, "x", "0-" + "y" * 32, "%00", "9" * 30 + "-x"])
async def test_an_unknown_link_is_not_found(sandbox: httpx.AsyncClient, path: str) -> None:
    await make_promo(sandbox)
    base = (await mail_promo(sandbox)).partition("/unsubscribe/")[0]
    for answer in (await get_page(f"{base}/unsubscribe/{path}"), await post_link(f"{base}/unsubscribe/{path}")):
        assert answer.status_code == 404


async def test_a_large_body_is_refused(sandbox: httpx.AsyncClient) -> None:
    await make_promo(sandbox)
    link = await mail_promo(sandbox)
    assert (await post_link(link, b"x" * 5000)).status_code == 413
    assert not await is_refused(sandbox, ADDRESS, "MAIL")


async def test_a_mail_with_the_subject_unsubscribes(
    sandbox: httpx.AsyncClient, shop: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """The second way that List-Unsubscribe names; mail programs write no text."""
    await make_promo(sandbox)
    await write(sandbox, database, company.test, " ", ADDRESS, source="MAIL", subject="UNSUBSCRIBE")
    assert await is_refused(sandbox, ADDRESS, "MAIL")
    customer = await find_customer(shop, ADDRESS)
    assert await get_subscriptions(shop, customer["id"]) == {"MAIL": "unsubscribe"}


@pytest.mark.parametrize(
    "rest",
    [
        "\n\nOn Thu, 19 Nov 2026 at 10:00 Toko Kopi <\nshop@shop.example> wrote:\n\n> Halo Ayu, ada promo hari ini.\n",
        "\n\nPada Kam, 19 Nov 2026 pukul 10.00 Toko Kopi menulis:\n\n> Halo Ayu, ada promo hari ini.\n",
        "\n\nAm Do., 19. Nov. 2026 schrieb Toko Kopi:\n> Halo Ayu, ada promo hari ini.\n",
        "\n\nDikirim dari iPhone saya\n\n> Pada 19 Nov 2026, pukul 10.00, Toko Kopi menulis:\n> \n> Halo Ayu\n",
        "\n\n-----Original Message-----\nFrom: Toko Kopi\nSent: Thursday\n\nHalo Ayu\n",
        "\n\n________________________________\nFrom: Toko Kopi <shop@shop.example>\nSent: Thursday\n\nHalo Ayu\n",
        "\n\nFrom: Toko Kopi <shop@shop.example>\nSent: Thursday\n\nHalo Ayu\n",
        "\n\n-- \nAyu Lestari\nBandung\n",
    ],
)
async def test_a_word_counts_above_what_a_mail_program_adds(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, rest: str
) -> None:
    await make_promo(sandbox)
    await write(sandbox, database, company.test, f"Stop.{rest}", ADDRESS, source="MAIL", subject="Re: Promo")
    assert await is_refused(sandbox, ADDRESS, "MAIL")
    assert (await sandbox.get("/tickets")).json()["data"] == []


@pytest.mark.parametrize(
    "text",
    [
        "Stop.\n\nSaya mau pesan dua kopi.\n\nPada Kam, 19 Nov 2026 Toko Kopi menulis:\n\n> Halo Ayu\n",
        "Kapan buka?\n\nPada Kam, 19 Nov 2026 Toko Kopi menulis:\n\n> STOP\n",
        "> STOP\n\nApa ini?\n",
        "Stop:\n\nSaya mau pesan dua kopi.\n",
    ],
)
async def test_a_word_in_a_longer_mail_is_none(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, text: str
) -> None:
    await make_promo(sandbox)
    await write(sandbox, database, company.test, text, ADDRESS, source="MAIL", subject="Re: Promo")
    assert not await is_refused(sandbox, ADDRESS, "MAIL")
    assert len((await sandbox.get("/tickets")).json()["data"]) == 1


async def test_a_mail_that_may_be_forged_starts_nothing(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await make_promo(sandbox)
    await write(sandbox, database, company.test, "STOP", ADDRESS, source="MAIL")
    assert await is_refused(sandbox, ADDRESS, "MAIL")
    await write(sandbox, database, company.test, "START", ADDRESS, source="MAIL")
    assert await is_refused(sandbox, ADDRESS, "MAIL")
    assert len((await sandbox.get("/tickets")).json()["data"]) == 1


async def test_people_use_the_page_in_a_browser(sandbox: httpx.AsyncClient, browser: Browser) -> None:
    await make_promo(sandbox)
    link = await mail_promo(sandbox)
    page = await new_page(browser, locale="en-GB", java_script_enabled=False)
    try:
        await page.goto(link)
        await page.get_by_role("button", name="Unsubscribe").click()
        assert await page.get_by_role("heading").inner_text() == "You are unsubscribed."
        assert await is_refused(sandbox, ADDRESS, "MAIL")
        await page.get_by_role("button", name="Subscribe again").click()
        assert await page.get_by_role("heading").inner_text() == "You are subscribed again."
        assert not await is_refused(sandbox, ADDRESS, "MAIL")
        await page.get_by_role("link", name="Bahasa Indonesia").click()
        assert await page.get_by_role("button", name="Berhenti berlangganan").is_visible()
    finally:
        await page.close()
