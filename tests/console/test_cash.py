"""Cash on delivery, payments, returns and scorecards at the console."""

import html
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.people.types import Role
from tests.conftest import Installation, connect
from tests.console.people import make_person, open_browser, read_token
from tests.factories import Environments, make_key, make_order
from tests.shipping.parcels import advance, create, get, until_status
from tests.shipping.settlements.test_api import deliver, differences

STATEMENT = {"provider": "custom", "reference": "COD <31>", "remittedOn": "2026-01-31"}


@pytest.fixture
async def sandbox(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with connect(installation, (await make_key(database, company.test)).raw) as client:
        yield client


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


async def submit(browser: httpx.AsyncClient, path: str, **fields: Any) -> httpx.Response:
    return await browser.post(f"/test{path}", data={"token": await read_token(browser), **fields})


async def upload(browser: httpx.AsyncClient, name: str, content: str, **fields: str) -> httpx.Response:
    data = {"token": await read_token(browser), **STATEMENT, **fields}
    return await browser.post("/test/settlements", data=data, files={"file": (name, content.encode(), "text/csv")})


async def test_a_statement_is_reconciled_and_its_difference_resolved(
    owner: httpx.AsyncClient, sandbox: httpx.AsyncClient
) -> None:
    parcel = await deliver(sandbox)
    assert "not paid out yet: 1" in (await owner.get("/test/settlements")).text
    response = await upload(owner, "januari.csv", f"resi;dana cair\n{parcel['id']};98.999\n")
    assert response.status_code == 303, response.text
    page = (await owner.get(response.headers["location"].removeprefix("/console"))).text
    assert "COD &lt;31&gt;" in page
    assert "different payout" in page
    assert f"/shipments/{parcel['id']}" in page
    listed = (await owner.get("/test/cod-differences", params={"state": "open"})).text
    (found,) = await differences(sandbox)
    assert f"/cod-differences/{found['id']}/resolve" in listed
    resolved = await submit(owner, f"/cod-differences/{found['id']}/resolve", note="Next time <b>.")
    assert resolved.status_code == 303, resolved.text
    assert "Every amount is as expected." in (await owner.get("/test/cod-differences?state=open")).text
    assert "Next time &lt;b&gt;." in (await owner.get("/test/cod-differences?state=resolved")).text
    shipment = (await owner.get(f"/test/shipments/{parcel['id']}")).text
    assert "paid out" in shipment


@pytest.mark.parametrize(
    ("name", "content", "fields", "message"),
    [
        ("a.xlsx", "x", {}, "must be a .csv or .ndjson file"),
        ("a.csv", "weight\n1\n", {}, "no column for the parcel"),
        ("a.csv", "awb,amount\nA,1\n", {"remittedOn": ""}, "choose the day"),
    ],
)
async def test_a_file_that_cannot_be_used(
    owner: httpx.AsyncClient, name: str, content: str, fields: dict[str, str], message: str
) -> None:
    response = await upload(owner, name, content, **fields)
    assert (response.status_code, message in html.unescape(response.text)) == (400, True)


async def test_agents_see_and_do_not_reconcile(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with open_browser(installation, await make_person(database, company, Role.AGENT)) as agent:
        assert "Reconcile a statement" not in (await agent.get("/test/settlements")).text
        assert (await upload(agent, "a.csv", "awb,amount\nA,1\n")).status_code == 403


async def test_the_code_that_pays_a_booking(
    owner: httpx.AsyncClient, sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    booked = await create(sandbox, "aggregator_carrier", sim="unpaid", autoBook=True)
    page = (await owner.get(f"/test/shipments/{booked['id']}")).text
    assert re.search(r'<img src="data:image/svg\+xml[^"]+" alt="QRIS code"', page)
    async with database.connection() as db:
        await db.execute("UPDATE shipments SET payment_qr = NULL WHERE company_id = $1", company.test)
    page = (await owner.get(f"/test/shipments/{booked['id']}")).text
    assert ("QRIS code" in page, "has not sent the code yet" in page) == (False, True)
    assert "QRIS code" in (await owner.get(f"/test/shipments/{booked['id']}?payment=1")).text
    await advance(sandbox, booked["id"], "paid")
    await until_status(sandbox, booked["id"], paymentStatus="paid")
    assert "QRIS code" not in (await owner.get(f"/test/shipments/{booked['id']}?payment=1")).text


async def test_a_return_is_made_once(owner: httpx.AsyncClient, sandbox: httpx.AsyncClient) -> None:
    sent = await deliver(sandbox)
    assert "Send it back" in (await owner.get(f"/test/shipments/{sent['id']}")).text
    answers = [await submit(owner, f"/shipments/{sent['id']}/return", once="a" * 32) for _ in range(2)]
    assert [response.status_code for response in answers] == [303, 303], answers[1].text
    assert answers[0].headers["location"] == answers[1].headers["location"]
    returned = await get(sandbox, answers[0].headers["location"].rpartition("/")[2])
    assert returned["returnOf"] == sent["id"]
    page = (await owner.get(f"/test/shipments/{returned['id']}")).text
    assert "Return R1001" in page
    assert f"/shipments/{sent['id']}" in page
    again = await submit(owner, f"/shipments/{sent['id']}/return")
    assert (again.status_code, "under way" in again.text) == (409, True)


async def test_a_return_is_linked_to_a_refund_of_its_order(
    owner: httpx.AsyncClient, sandbox: httpx.AsyncClient
) -> None:
    order = await make_order(sandbox)
    await sandbox.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})
    for reason in ("Cracked <cup>", "Wrong size"):
        await sandbox.post(f"/orders/{order['id']}/refunds", json={"amount": 50_000, "reason": reason})
    refunds = (await sandbox.get(f"/orders/{order['id']}")).json()["data"]["refunds"]
    sent = await deliver(sandbox, orderId=order["id"])
    page = (await owner.get(f"/test/shipments/{sent['id']}")).text
    assert all(f'<option value="{refund["id"]}">' in page for refund in refunds)
    assert "Cracked &lt;cup&gt;" in page
    made = await submit(owner, f"/shipments/{sent['id']}/return", refundId=refunds[0]["id"])
    id = made.headers["location"].rpartition("/")[2]
    assert (await get(sandbox, id))["refundId"] == refunds[0]["id"]
    assert f'<option value="{refunds[0]["id"]}" selected>' in (await owner.get(f"/test/shipments/{id}")).text
    assert (await submit(owner, f"/shipments/{id}/refund", refundId=refunds[1]["id"])).status_code == 303
    assert (await get(sandbox, id))["refundId"] == refunds[1]["id"]
    assert "Return R1001" in (await owner.get(f"/test/orders/{order['id']}")).text


async def test_a_scorecard_leads_to_its_parcels(owner: httpx.AsyncClient, sandbox: httpx.AsyncClient) -> None:
    sent = await deliver(sandbox, serviceName="Own <rider>", estimate="1-2 days")
    page = (await owner.get("/test/scorecards", params={"groupBy": "service", "days": "7"})).text
    assert "Own &lt;rider&gt;" in page
    links = re.findall(r'href="([^"]*scorecards/parcels[^"]*)"', page)
    assert {re.findall("figure=([a-z_]+)", link)[0] for link in links} == {"parcels", "delivered", "timed"}
    for link in links:
        parcels = await owner.get(html.unescape(link).removeprefix("/console"))
        assert (parcels.status_code, f"/shipments/{sent['id']}" in parcels.text) == (200, True), link
    wrong = await owner.get("/test/scorecards", params={"groupBy": "colour"})
    assert (wrong.status_code, "groupBy" in wrong.text) == (200, True)
