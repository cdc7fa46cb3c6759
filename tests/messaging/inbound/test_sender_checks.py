"""What the receiving mail server found out about a sender is shown, and proves which mails are the company's own."""

import httpx
import pytest

from sapa.db.pool import Database
from tests.cli.command import sapa
from tests.conftest import TLS, Installation
from tests.console.people import make_person, open_browser
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.conversation_steps import get_message, list_events, wait_for_inbound

ACCOUNT = {
    "smtp_host": "mail.shop.example",
    "address": "halo@shop.example",
    "authentication_authority": "mx.shop.example",
}
CUSTOMERS = "SELECT email FROM customers WHERE company_id = $1"
TICKETS = "SELECT count(*) FROM tickets WHERE company_id = $1"
DONE = "SELECT count(*) FROM channel_callbacks WHERE company_id = $1 AND status = 'done'"


@pytest.fixture
def hook(installation: Installation, company: Environments) -> str:
    fields = [part for name, value in ACCOUNT.items() for part in ("--set", f"{name}={value}")]
    command = ["channel", "connect", "--company", str(company.live), "--source", "MAIL", "--no-check", "--json"]
    path = sapa(installation.data, *command, *fields).json()["hookUrl"].partition("/hooks/")[2]
    return f"{installation.address}/hooks/{path}"


async def post(hook: str, *headers: str) -> None:
    mail = "\r\n".join(["To: halo@shop.example", *headers, "", "Halo"])
    async with httpx.AsyncClient(timeout=120, verify=TLS) as client:
        assert (await client.post(hook, content=mail.encode())).status_code == 200


async def test_the_checks_are_shown(
    hook: str, installation: Installation, live: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    results = "mx.shop.example; spf=pass smtp.mailfrom=example.com; dkim=fail header.d=example.com"
    forged = "evil.example; dmarc=pass header.from=example.com"
    await post(hook, "From: ayu@example.com", f"Authentication-Results: {results}", f"Authentication-Results: {forged}")
    (row,) = await wait_for_inbound(database, company.live)
    message = await get_message(live, row["id"])
    assert message["authentication"] == {"spf": "pass", "dkim": "fail", "dmarc": None}
    (event,) = await list_events(database, company.live, "message.received")
    assert event["authentication"] == message["authentication"]
    email = await make_person(database, company)
    async with open_browser(installation, email) as browser:
        page = (await browser.get(f"/live/inbox/{message['ticketId']}")).text
    for words in ("Sender checks", "SPF pass", "DKIM fail", "DMARC not checked"):
        assert words in page


async def test_a_forged_mail_of_the_company_is_not_its_own(
    hook: str, database: Database, company: Environments
) -> None:
    for result in ("mx.shop.example; dmarc=fail", "evil.example; dmarc=pass"):
        forged_results = f"Authentication-Results: {result} header.from=shop.example"
        await post(hook, "From: halo@shop.example", "To: ayu@example.com", forged_results)
    forged = await wait_for_inbound(database, company.live, 2)
    assert {row["direction"] for row in forged} == {"in"}
    proven = "Authentication-Results: mx.shop.example; dmarc=pass header.from=shop.example"
    await post(hook, "From: halo@shop.example", "To: ayu@example.com", proven)
    *_, own = await wait_for_inbound(database, company.live, 3)
    assert own["direction"] == "out"


async def test_a_bulk_mail_opens_no_ticket_and_makes_no_customer(
    hook: str, database: Database, company: Environments
) -> None:
    marks = ("X-Auto-Response-Suppress: All", "Precedence: bulk", "List-Id: <news.example.com>", "Auto-Submitted: yes")
    for number, mark in enumerate(marks):
        await post(hook, f"From: news{number}@example.com", mark)
    await post(hook, "From: MAILER-DAEMON@example.com", "Subject: About your account")

    async def look() -> bool | None:
        async with database.connection() as db:
            return await db.fetchval(DONE, company.live) == len(marks) + 1 or None

    await eventually(look)
    async with database.connection() as db:
        assert await db.fetchval(TICKETS, company.live) == 0
        assert await db.fetch(CUSTOMERS, company.live) == []
