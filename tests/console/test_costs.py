"""Costs of messages, and the status of a channel, at the console."""

import csv
import re
from collections.abc import AsyncIterator
from datetime import date
from decimal import Decimal
from io import StringIO
from urllib.parse import quote

import httpx
import pytest

from sapa.db.pool import Database
from sapa.messaging.costs.actions import import_rates
from sapa.messaging.costs.types import MessageRate
from tests.conftest import Installation
from tests.console.people import make_person, open_browser, read_token
from tests.factories import Environments, make_key
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.send_steps import await_message, get_record, magic, make_template, send


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


@pytest.fixture
async def sandbox(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    key = await make_key(database, company.test)
    async with connect_messaging(installation, key.raw) as client:
        yield client


async def store_rates(database: Database, company: Environments) -> None:
    rates = [
        MessageRate(company.test, "*", category, date(2026, 1, 1), "IDR", Decimal(price))
        for category, price in {"service": "1365.25", "utility": "410.5"}.items()
    ]
    async with database.transaction() as tx:
        await import_rates(tx, company.test, rates)


async def test_costs_are_shown_with_the_message_the_template_and_in_a_report(
    database: Database, company: Environments, sandbox: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    assert "No message with a price arrived" in (await owner.get("/test/reports/costs")).text
    early = (await send(sandbox, to=magic(101)))["messageId2"]
    await await_message(sandbox, early, lambda message: message["status"] == "delivered")
    assert "had no rate when it arrived" in (await owner.get("/test/reports/costs")).text
    await store_rates(database, company)
    template = await make_template(sandbox)
    body = {"to": magic(101), "sources": "MSGAPP_CLOUD", "template_name": template["name"], "params": ["Ayu", "A1"]}
    answer = await sandbox.post("/messages/send-template", json=body)
    sent = [(await send(sandbox, to=magic(101)))["messageId2"], answer.json()["data"]["messageId2"]]
    for id in sent:
        await await_message(sandbox, id, lambda message: message["status"] == "delivered")

    record = await get_record(sandbox, sent[0])
    shown = (await owner.get(f"/test/requests/{record['id']}?at={quote(record['createdAt'])}")).text
    assert "Rp\u00a01,365.25" in shown
    assert 'message in a conversation, charged, <span data-names="region">US</span>' in shown

    page = (await owner.get(f"/test/templates/{template['id']}")).text
    assert "Rp\u00a0410.50" in page
    link = re.search(r'href="/console(/test/reports/costs\?template=[^"]+)"', page)
    assert link is not None
    assert (await owner.get(link[1])).text.count("Rp\u00a0410.50") >= 2

    for grouping, key in (("day", None), ("template", "order_update"), ("channel", "WhatsApp")):
        report = (await owner.get(f"/test/reports/costs?by={grouping}")).text
        assert "Rp\u00a01,775.75" in report
        assert key is None or key in report
        assert not re.search(r'class="long">\d{4}-', report), "a day as people write it"
        assert ('id="costs-title"' in report) == (grouping == "day")
        file = await owner.get(f"/test/reports/files/costs.csv?by={grouping}&days=7")
        header, *rows = csv.reader(StringIO(file.text))
        assert header == [grouping, "currency", "messages", "billable_messages", "unpriced_messages", "amount"]
        assert sum(Decimal(row[5]) for row in rows if row[1] == "IDR") == Decimal("1775.75")
        assert [row[2:5] for row in rows if row[1] == ""] == [["1", "1", "1"]]
    assert "must be a date" in (await owner.get("/test/reports/costs?by=month&from=x")).text
    assert (await owner.get("/live/reports/costs")).text.count("IDR") == 0


async def test_the_status_of_a_channel_is_on_its_page(sandbox: httpx.AsyncClient, owner: httpx.AsyncClient) -> None:
    page = "/test/channels/MSGAPP_CLOUD"
    assert 'id="status"' not in (await owner.get(page)).text
    changes = {"source": "MSGAPP_CLOUD", "quality": "RED", "messagingLimit": 2000, "warning": "ACCOUNT_VIOLATION"}
    assert (await sandbox.post("/sandbox/channel-status", json=changes)).status_code == 200

    async def look() -> str | None:
        text = (await owner.get(page)).text
        return text if "state bad" in text and "rules were broken" in text else None

    text = await eventually(look)
    assert "2,000" in text
    assert "SPAM" in text
    assert "WhatsApp warns you" in (await owner.get("/test")).text
    form = {"token": await read_token(owner)}
    assert (await owner.post("/test/channels/MSGAPP_COEX/test", data=form)).status_code == 303
    other = (await owner.get("/test/channels/MSGAPP_COEX")).text
    assert "100,000" in other
    assert "rules were broken" not in other
