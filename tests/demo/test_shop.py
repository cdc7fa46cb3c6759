"""The demo shop: realistic, the same everywhere, and filled only once."""

from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.demo import shop
from sapa.demo.products import build_products
from sapa.demo.templates import TEMPLATES
from tests.conftest import Installation, connect
from tests.factories import make_key

COUNTS = """
    SELECT (SELECT count(*) FROM customers WHERE company_id = $1 AND external_id LIKE 'demo-%'),
           (SELECT count(*) FROM products WHERE company_id = $1 AND product_id LIKE 'demo-%'),
           (SELECT count(*) FROM orders WHERE company_id = $1 AND order_id LIKE 'demo-%'),
           (SELECT count(*) FROM message_templates WHERE company_id = $1 AND name LIKE 'demo_%'),
           (SELECT count(*) FROM api_calls WHERE company_id = $1 AND key_id NOT IN (SELECT id FROM api_keys
                                                                                     WHERE status = 'active')),
           (SELECT count(*) FROM events WHERE company_id = $1)"""


@pytest.fixture
def small_shop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shop, "CUSTOMERS", 30)
    monkeypatch.setattr(shop, "ORDERS", 60)


@pytest.mark.usefixtures("small_shop")
async def test_the_shop_is_filled_once_and_reads_like_one(installation: Installation, database: Database) -> None:
    company = await shop.fill(database, lambda *_: None)
    async with database.connection() as db:
        first = tuple(await db.fetchrow(COUNTS, company.id) or ())
    assert first[:4] == (30, 120, 60, len(TEMPLATES))
    await shop.fill(database, lambda *_: None)
    async with database.connection() as db:
        assert tuple(await db.fetchrow(COUNTS, company.id) or ()) == first
    key = await make_key(database, company.id)
    async with connect(installation, key.raw) as api:
        orders = (await api.get("/orders", params={"search": "demo-", "limit": 100})).json()["data"]
        customers = (await api.get("/customers", params={"limit": 100})).json()["data"]
        drafts = (await api.get("/draft-orders")).json()["meta"]["total"]
        await _check_parcels(api)
        calls = (await api.get("/api-calls", params={"status": "404"})).json()["data"]
        await _check_templates(api)
        await _check_conversations(api)
    assert {(call["route"], call["code"]) for call in calls} == {("/customer/v1/orders/{id}", "NOT_FOUND")}
    assert drafts == 4
    _check_story(orders, {customer["id"]: customer for customer in customers})


async def _check_templates(api: httpx.AsyncClient) -> None:
    """The simulator approves every one."""
    api.base_url = httpx.URL(str(api.base_url).replace("/customer/", "/messaging/"))
    assert (await api.post("/templates/sync")).status_code == 200
    found = (await api.get("/templates", params={"limit": 100})).json()["data"]
    demo = [template for template in found if template["name"].startswith("demo_")]
    assert [(template["status"], template["sendable"]) for template in demo] == [("APPROVED", True)] * len(TEMPLATES)


async def _check_conversations(api: httpx.AsyncClient) -> None:
    """On several channels; some wait, some are snoozed, and those that are over were rated at their own time."""
    tickets = (await api.get("/tickets", params={"limit": 100})).json()["data"]
    over = [ticket for ticket in tickets if ticket["status"] == "resolved"]
    assert len({ticket["source"] for ticket in tickets}) >= 5
    assert len([ticket for ticket in tickets if ticket["waitingSince"] is not None]) >= 5
    assert len([ticket for ticket in tickets if ticket["snoozedUntil"] is not None]) == 2
    assert len([ticket for ticket in over if ticket["rating"] and ticket["resolvedAt"] < ticket["updatedAt"]]) == 5
    (told,) = [ticket for ticket in tickets if ticket["priority"] == "urgent"]
    shown = (await api.get(f"/tickets/{told['id']}")).json()["data"]
    assert (len(shown["messages"]), len(shown["notes"])) == (4, 1)


async def _check_parcels(api: httpx.AsyncClient) -> None:
    """Orders that were not paid are paid on delivery, and the statement about them lacks a rupiah."""
    (card,) = (await api.get("/shipping/scorecards")).json()["data"]["scorecards"]
    assert card["parcels"] > card["delivered"] > card["late"] >= 0
    remitted = (await api.get("/shipping/shipments", params={"codState": "remitted"})).json()["data"]
    settled = (await api.get("/shipping/settlements")).json()["data"]
    assert [(one["parcels"], one["difference"]) for one in settled] == ([(len(remitted), -1)] if remitted else [])


def _check_story(orders: list[dict[str, Any]], customers: dict[str, dict[str, Any]]) -> None:
    """In order of time and number, in rupiah, each to its buyer's address, with several outcomes."""
    assert [int(order["orderNumber"]) for order in orders] == sorted(
        (int(order["orderNumber"]) for order in orders), reverse=True
    )
    assert {order["currency"] for order in orders} == {"IDR"}
    assert len({order["status"] for order in orders}) > 1
    for order in orders:
        home = customers[order["customer"]["id"]]["addresses"][0]
        assert order["shippingAddress"]["city"] == home["city"]


def test_customers_and_products_are_the_same_at_every_run() -> None:
    assert list(shop.build_customers()) == list(shop.build_customers())
    assert list(build_products()) == list(build_products())
