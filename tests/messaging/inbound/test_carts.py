"""Carts: kept with their items and, by the company's setting, one order each."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.messaging.inbound.jobs import CallbackProcessor
from sapa.messaging.inbound.queries import CallbackLane
from sapa.settings import read_settings
from sapa.startup import build_context
from tests.cli.command import sapa
from tests.conftest import Installation
from tests.factories import Environments, make_product
from tests.http.wire import eventually
from tests.messaging.conversation_steps import get_message, list_events, wait_for_inbound
from tests.messaging.whatsapp_account import WhatsAppHook, build_change, build_text, connect_whatsapp

Json = dict[str, Any]

SENDER = "628123456789"


@pytest.fixture
def hook(installation: Installation, company: Environments) -> WhatsAppHook:
    return connect_whatsapp(installation, company.live)


@pytest.fixture
async def shop(api: httpx.AsyncClient) -> httpx.AsyncClient:
    """The live company, whose carts become orders."""
    answer = await api.put("/company", json={"cartOrders": True})
    assert (answer.status_code, answer.json()["data"]["cartOrders"]) == (200, True)
    return api


def build_item(sku: str = "GAYO", quantity: int = 2, price: float = 75000, currency: str = "IDR") -> Json:
    return {"product_retailer_id": sku, "quantity": quantity, "item_price": price, "currency": currency}


def build_cart(*items: Json, id: str | None = None, text: str = "", **more: Any) -> Json:
    order = {"catalog_id": "1948", "text": text, "product_items": list(items) or [build_item()]}
    base = {key: value for key, value in build_text(SENDER, id=id, **more).items() if key != "text"}
    return {**base, "type": "order", "order": order}


async def list_orders(api: httpx.AsyncClient) -> list[Json]:
    found: list[Json] = (await api.get("/orders")).json()["data"]
    return found


async def receive(hook: WhatsAppHook, database: Database, company: Environments, *carts: Json) -> list[Json]:
    await hook.send_change(build_change(*carts))
    return await wait_for_inbound(database, company.live, len(carts))


async def count_waiting(database: Database, company_id: int) -> int:
    async with database.connection() as db:
        statement = "SELECT count(*) FROM channel_callbacks WHERE company_id = $1 AND status = 'waiting'"
        number: int = await db.fetchval(statement, company_id)
        return number


async def wait_until_idle(database: Database, company_id: int) -> None:
    async def look() -> bool | None:
        return await count_waiting(database, company_id) == 0 or None

    await eventually(look)


async def test_a_cart_is_no_order_unless_the_company_wants_it(
    hook: WhatsAppHook, api: httpx.AsyncClient, live: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    assert (await api.get("/company")).json()["data"]["cartOrders"] is False
    (stored,) = await receive(hook, database, company, build_cart())
    cart = (await get_message(live, stored["id"]))["order"]
    assert (cart["orderId"], cart["error"]) == (None, None)
    assert await list_orders(api) == []
    await api.put("/company", json={"cartOrders": True})
    await replay(hook, database, company)
    assert await list_orders(api) == []


async def test_a_cart_becomes_an_order_at_its_prices(
    hook: WhatsAppHook, shop: httpx.AsyncClient, live: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    product = await make_product(
        shop, name="Kopi Gayo", variants=[{"title": "250 g", "price": 80000, "sku": "GAYO", "inventoryQuantity": 5}]
    )
    cart = build_cart(build_item(price=75000.5), build_item("TORAJA", 1, 0.1), text="Bungkus kado")
    (stored,) = await receive(hook, database, company, cart)
    message = await get_message(live, stored["id"])
    (order,) = await list_orders(shop)
    assert message["order"]["orderId"] == order["id"]
    assert message["order"]["error"] is None
    assert (order["total"], order["currency"], order["notes"]) == (150001.1, "IDR", "Bungkus kado")
    assert (order["orderId"], order["customer"]["id"]) == (cart["id"], stored["customer_id"])
    gayo, toraja = order["lineItems"]
    assert (gayo["title"], gayo["price"], gayo["quantity"]) == ("Kopi Gayo", 75000.5, 2)
    assert gayo["productVariant"]["id"] == product["variants"][0]["id"]
    assert (toraja["title"], toraja["price"], toraja["productVariant"]) == ("TORAJA", 0.1, None)
    left = (await shop.get(f"/products/{product['id']}")).json()["data"]["variants"][0]["inventoryQuantity"]
    assert left == 3
    (received,) = await list_events(database, company.live, "message.received")
    assert received["order"] == message["order"]
    (created,) = await list_events(database, company.live, "order.created")
    assert created["id"] == order["id"]


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([build_item(quantity=6)], "has 5 units in stock"),
        ([build_item(), build_item("OTHER", currency="USD")], "one currency"),
        ([build_item(price=-1)], "0 or more"),
        ([build_item(price=0.001)], "decimal places"),
        ([build_item(currency="XXX")], "ISO 4217"),
        ([{"product_retailer_id": "GAYO"}], "quantity"),
        ([build_item(quantity=1_000_001)], "quantity"),
        ([{"product_retailer_id": "GAYO", "quantity": 1}], "price"),
        ([build_item(str(number)) for number in range(501)], "500 lines"),
    ],
)
async def test_a_cart_that_cannot_be_ordered_is_kept_with_the_reason(
    hook: WhatsAppHook,
    shop: httpx.AsyncClient,
    live: httpx.AsyncClient,
    database: Database,
    company: Environments,
    items: list[Json],
    reason: str,
) -> None:
    await make_product(shop, variants=[{"title": "M", "price": 1, "sku": "GAYO", "inventoryQuantity": 5}])
    (stored,) = await receive(hook, database, company, build_cart(*items))
    cart = (await get_message(live, stored["id"]))["order"]
    assert (cart["orderId"], len(cart["items"])) == (None, len(items))
    assert reason in cart["error"]["message"]
    assert await list_orders(shop) == []
    assert len(await list_events(database, company.live, "message.received")) == 1


async def test_an_order_that_has_the_carts_id_is_the_carts(
    hook: WhatsAppHook, shop: httpx.AsyncClient, live: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    line = {"title": "Kopi", "price": 75000, "quantity": 2}
    own = await shop.post("/orders", json={"lineItems": [line], "orderId": "wamid.mine"})
    assert own.status_code == 201
    (stored,) = await receive(hook, database, company, build_cart(id="wamid.mine"))
    assert (await get_message(live, stored["id"]))["order"]["orderId"] == own.json()["data"]["id"]
    assert len(await list_orders(shop)) == 1


async def test_an_imported_cart_and_an_echo_are_no_orders(
    installation: Installation, shop: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    phone = connect_whatsapp(installation, company.live, "MSGAPP_COEX")
    threads = [{"id": SENDER, "messages": [build_cart()]}]
    await phone.send_change({"history": [{"metadata": {"phase": 0}, "threads": threads}]}, field="history")
    await phone.send_change({"message_echoes": [build_cart(to=SENDER)]}, field="smb_message_echoes")
    await wait_for_inbound(database, company.live, 2)
    assert await list_orders(shop) == []


async def replay(hook: WhatsAppHook, database: Database, company: Environments) -> None:
    """All callbacks again, as `sapa channel replay` does."""
    async with database.connection() as db:
        await db.execute(
            "UPDATE channel_callbacks SET status = 'waiting', position = 0, tries = 0, due_at = now()"
            " WHERE company_id = $1",
            company.live,
        )
    await wait_until_idle(database, company.live)


async def test_a_replayed_cart_stays_one_order(
    installation: Installation,
    hook: WhatsAppHook,
    shop: httpx.AsyncClient,
    database: Database,
    company: Environments,
) -> None:
    cart = build_cart()
    await receive(hook, database, company, cart)
    await hook.send_change(build_change(cart, build_text(SENDER, "lagi")))  # the same item in another callback
    await wait_for_inbound(database, company.live, 2)
    where = ["--company", str(company.live), "--source", "MSGAPP_CLOUD"]
    assert sapa(installation.data, "channel", "replay", *where, "--json").json()["replayed"] == 2
    await wait_until_idle(database, company.live)
    assert len(await list_orders(shop)) == 1
    assert len(await list_events(database, company.live, "order.created")) == 1


@pytest.fixture
async def rivals(installation: Installation, database: Database) -> AsyncIterator[list[AppContext]]:
    """Processes that work beside the installation's own worker."""
    variables = {"SAPA_SECRET_KEY": installation.server.secret_key}
    contexts = [build_context(read_settings(variables), database) for _ in range(2)]
    yield contexts
    for context in contexts:
        await context.close()


async def test_two_workers_make_one_order_of_each_cart(
    installation: Installation,
    hook: WhatsAppHook,
    shop: httpx.AsyncClient,
    database: Database,
    company: Environments,
    rivals: list[AppContext],
) -> None:
    """The same carts arrive over two connections of one number, so that two lanes are worked on at the same time."""
    other = connect_whatsapp(installation, company.live, "MSGAPP_COEX")
    lanes = [CallbackLane(company.live, each.connection_id) for each in (hook, other)]
    is_over = asyncio.Event()

    async def hurry(context: AppContext) -> None:
        processor = CallbackProcessor(context)
        while not is_over.is_set():
            for lane in lanes:
                await processor.advance(lane)
            await asyncio.sleep(0.005)
        await processor.close()

    carts = [build_cart(id=f"wamid.{uuid4().hex}", at=1_700_000_000 + number) for number in range(8)]
    rush = asyncio.gather(*map(hurry, rivals))
    try:
        for cart in [*carts, *reversed(carts)]:
            await asyncio.gather(hook.send_change(build_change(cart)), other.send_change(build_change(cart, cart)))
        await wait_until_idle(database, company.live)
    finally:
        is_over.set()
        await rush
    orders = await list_orders(shop)
    assert sorted(order["orderId"] for order in orders) == sorted(cart["id"] for cart in carts)
    received = await list_events(database, company.live, "message.received")
    assert sorted(one["order"]["orderId"] for one in received) == sorted(order["id"] for order in [*orders, *orders])


async def test_the_setting_is_changed_alone(api: httpx.AsyncClient) -> None:
    before = (await api.get("/company")).json()["data"]
    after = (await api.put("/company", json={"cartOrders": True})).json()["data"]
    assert after == {**before, "cartOrders": True}
    assert (await api.put("/company", json={"language": "en"})).json()["data"]["cartOrders"] is True
    refused = await api.put("/company", json={"cartOrders": "yes"})
    assert [detail["field"] for detail in refused.json()["error"]["details"]] == ["cartOrders"]
