"""A shop whose every page has something on it: one of each, made over HTTP in a company's test environment."""

from typing import Any

import httpx

from sapa.db.pool import Database
from sapa.values.sealing import Vault
from tests.conftest import Installation, connect
from tests.factories import (
    add_points,
    make_customer,
    make_endpoint,
    make_import,
    make_key,
    make_order,
    make_product,
    make_redemption,
    make_reward,
)
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.send_steps import list_records, make_template, send
from tests.shipping import parcels
from tests.support.ticket_steps import Desk
from tests.webhooks.station import Station

AYU = {"firstName": "Ayu", "lastName": "Lestari", "phoneNumber": "+628123456701", "tags": ["vip", "reseller"]}
STORE = {"name": "Toko Menteng", "isDefault": True, **{k: v for k, v in parcels.SENDER.items() if k != "name"}}
GAYO = {"name": "Kopi Gayo Arabika", "variants": [{"title": "250 g", "price": 85000, "inventoryQuantity": 40}]}
TABLE = b"Nama Lengkap;No HP;Kota;Hobi\nAyu Lestari;08123456702;Bandung;catur\nBudi;6.28123E+11;;\n"
FILE = b"email,firstName\nayu.file@example.com,Ayu\nnobody,Budi\n"

Addresses = dict[str, str]
"""A declared path → the address of a page that it stands for, from the environment on."""


async def fill_shop(installation: Installation, database: Database, company_id: int, station: Station) -> Addresses:
    """Something of everything; the pages that show one thing."""
    key = (await make_key(database, company_id)).raw
    managed = (await make_key(database, company_id)).id
    vault = Vault(installation.server.secret_key)
    hook = (await make_endpoint(database, vault, company_id, url=station.url("hooks"))).endpoint.id
    async with connect(installation, key) as api, connect_messaging(installation, key) as messaging:
        goods = await _fill_goods(api)
        talk = await _fill_talk(messaging)
    delivery = await eventually(lambda: _find_delivery(database, company_id))
    return {
        **goods,
        **talk,
        "/{environment}/webhooks/{id}": f"/webhooks/{hook}",
        "/{environment}/keys/{id}/edit": f"/keys/{managed}/edit",
        "/{environment}/deliveries/{id}": f"/deliveries/{delivery}",
        "/{environment}/channels/{id}": "/channels/MSGAPP_CLOUD",
        "/{environment}/carriers/{id}": "/carriers/aggregator_carrier",
    }


async def _fill_goods(api: httpx.AsyncClient) -> Addresses:
    ayu = (await make_customer(api, **AYU))["id"]
    await add_points(api, ayu, 1250, reason="Selamat datang")
    reward = await make_reward(api, 500)
    await make_redemption(api, ayu, reward)
    product = await make_product(api, **GAYO)
    order = await _make_order(api, ayu, product)
    store = (await api.post("/shipping/store-locations", json=STORE)).json()["data"]
    shipment = await _ship(api, order["id"])
    file = (await api.post("/shipping/labels", json={"ids": [shipment]})).json()["data"]["id"]
    settlement = await _collect(api)
    job = await make_import(api, FILE)
    draft = await make_import(api, TABLE, start="false")
    return {
        "/{environment}/customers/{id}": f"/customers/{ayu}",
        "/{environment}/customers/{id}/edit": f"/customers/{ayu}/edit",
        "/{environment}/products/{id}/edit": f"/products/{product['id']}/edit",
        "/{environment}/loyalty/{id}": f"/loyalty/{ayu}",
        "/{environment}/rewards/{id}": f"/rewards/{reward['id']}",
        "/{environment}/products/{id}": f"/products/{product['id']}",
        "/{environment}/orders/{id}": f"/orders/{order['id']}",
        "/{environment}/reports/orders": f"/reports/orders?article={order['lineItems'][0]['title']}",
        "/{environment}/orders/{id}/history": f"/orders/{order['id']}/history",
        "/{environment}/draft-orders/{id}": f"/draft-orders/{await _make_draft(api, ayu)}",
        "/{environment}/shipments/new": f"/shipments/new?orderId={order['id']}",
        "/{environment}/shipments/{id}": f"/shipments/{shipment}",
        "/{environment}/labels/{id}": f"/labels/{file}",
        "/{environment}/settlements/{id}": f"/settlements/{settlement}",
        "/{environment}/stores/{id}": f"/stores/{store['id']}",
        "/{environment}/imports/{id}": f"/imports/{job['id']}",
        "/{environment}/imports/{id}/mapping": f"/imports/{draft['id']}/mapping",
    }


async def _make_order(api: httpx.AsyncClient, customer_id: str, product: dict[str, Any]) -> dict[str, Any]:
    to = {"firstName": "Ayu", "lastName": "Lestari", "address1": "Jl. Melawai Raya No. 8", "city": "Jakarta Selatan"}
    lines = [{"productVariantId": product["variants"][0]["id"], "quantity": 2}]
    order = await make_order(api, customerId=customer_id, lineItems=lines, shippingAddress=to, notes="Titip satpam.")
    await api.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})
    await api.post(f"/orders/{order['id']}/refunds", json={"amount": 25000, "reason": "Kemasan rusak"})
    return order


async def _make_draft(api: httpx.AsyncClient, customer_id: str) -> str:
    """With everything that changes its price."""
    body = {
        "customerId": customer_id,
        "lineItems": [{"title": "Kopi Toraja 1 kg", "price": 240000, "quantity": 2, "discount": {"percentage": 5}}],
        "discounts": [{"code": "TEMAN10", "percentage": 10}],
        "shippingLines": [{"title": "JNE REG", "price": 18000}],
        "fees": [{"title": "Asuransi", "amount": 2500}],
        "taxLines": [{"title": "PPN", "rate": 11, "included": True}],
    }
    return str((await api.post("/draft-orders", json=body)).json()["data"]["id"])


async def _ship(api: httpx.AsyncClient, order_id: str) -> str:
    """Booked with the simulated carrier, and on its way."""
    created = await parcels.create(api, "aggregator_carrier", orderId=order_id)
    await parcels.change(api, created["id"], triggerBooking=True)
    await parcels.until_status(api, created["id"], "confirmed", "picking_up", "picked_up", "in_transit", awb=...)
    await parcels.advance(api, created["id"])
    return str(created["id"])


async def _collect(api: httpx.AsyncClient) -> str:
    """A parcel that was paid on delivery, and a statement with a rupiah less."""
    created = await parcels.create(api, "custom", codAmount=150_000, codFee=2_500, estimate="1-2 days")
    for status in ("confirmed", "picked_up", "delivered"):
        assert (await parcels.change(api, created["id"], shippingStatus=status)).status_code == 200
    line = {"parcel": created["id"], "amount": 147_499, "codAmount": 150_000, "codFee": 2_500}
    body = {"provider": "custom", "reference": "COD-31", "remittedAt": "2026-01-31T09:30:00Z", "lines": [line]}
    settled = await api.post("/shipping/settlements", json=body)
    assert settled.status_code == 201, settled.text
    return str(settled.json()["data"]["id"])


async def _fill_talk(messaging: httpx.AsyncClient) -> Addresses:
    desk = Desk(messaging)
    template = await make_template(messaging, buttons=[{"type": "quick_reply", "text": "Terima kasih"}])
    await send(messaging, to=AYU["phoneNumber"])
    record = (await list_records(messaging))["data"][0]
    sari = await desk.create_agent("Sari", "human")
    bot = await desk.create_agent("Sapa Bot", "ai")
    label = await desk.post("/labels", 201, name="Garansi", color="#864c00")
    await desk.post("/teams", 201, name="Gudang Timur")
    await desk.post("/saved-replies", 201, shortcut="dikirim", text="Pesanan {pesanan} sudah dikirim: {resi}.")
    await desk.post("/macros", 201, name="Minta video", actions={"snoozeMinutes": 60}, reply="Boleh kirim videonya?")
    await desk.post("/views", 201, name="Perlu cepat", filters={"priority": "urgent"})
    await desk.post("/sla-policies", 201, name="Umum", position=9, firstResponseMinutes=60, resolutionMinutes=1440)
    await desk.rate(sari, 5, "+628123456703")
    ticket = await desk.receive("Halo kak, pesanan saya sudah dikirim belum ya?", str(AYU["phoneNumber"]))
    await desk.reply(ticket, bot, "Halo Ayu! Sebentar ya, saya sambungkan ke tim kami.", handover=True)
    await messaging.put(f"/tickets/{ticket['id']}", json={"labelIds": [label["id"]], "priority": "urgent"})
    return {
        "/{environment}/templates/{id}": f"/templates/{template['id']}?param=Ayu&param=INV-7",
        "/{environment}/requests/{id}": f"/requests/{record['id']}?at={record['createdAt']}",
        "/{environment}/reports/conversations": f"/reports/conversations?source={ticket['source']}",
        "/{environment}/reports/ratings": f"/reports/ratings?agentId={sari}",
        "/{environment}/inbox/{id}": f"/inbox/{ticket['id']}?view=all",
    }


async def _find_delivery(database: Database, company_id: int) -> str | None:
    async with database.connection() as db:
        found: str | None = await db.fetchval(
            "SELECT delivery_id FROM webhook_attempts WHERE company_id = $1 ORDER BY started_at LIMIT 1", company_id
        )
    return found
