"""Fills an empty test environment with customers, orders and messages, for `sapa database size`.

`python -m bench.growth URL KEY`
"""

import asyncio
import sys

import httpx

CALLERS = 8
ORDERS = 250
MESSAGES = 125
LINES = [
    {"title": "Kopi Gayo 250 g", "price": 75000, "quantity": 2},
    {"title": "Kopi Toraja 250 g", "price": 82000, "quantity": 1},
]
ADDRESS = {"address1": "Jalan Merdeka 1", "city": "Bandung", "country": "ID", "zip": "40111"}
MESSAGE = {"to": "+12015550100", "sources": "MSGAPP_CLOUD", "message": "Halo, pesanan Anda sedang kami siapkan."}


async def fill(url: str, key: str) -> None:
    async with httpx.AsyncClient(base_url=url, headers={"x-api-key": key}, timeout=120) as api:
        await asyncio.gather(*(_make_orders(api, caller) for caller in range(CALLERS)))
        await asyncio.gather(*(_send_messages(api) for _ in range(CALLERS)))


async def _make_orders(api: httpx.AsyncClient, caller: int) -> None:
    for number in range(ORDERS):
        customer = {
            "email": f"budi.{caller}.{number}@example.com",
            "firstName": "Budi",
            "lastName": "Santoso",
            "phoneNumber": f"+62812{caller:02}{number:06}",
        }
        made = (await api.post("/customer/v1/customers", json=customer)).raise_for_status().json()["data"]
        order = {"customerId": made["id"], "lineItems": LINES, "shippingAddress": ADDRESS}
        (await api.post("/customer/v1/orders", json=order)).raise_for_status()


async def _send_messages(api: httpx.AsyncClient) -> None:
    for _ in range(MESSAGES):
        (await api.post("/messaging/v1/messages/send", json=MESSAGE)).raise_for_status()


if __name__ == "__main__":
    asyncio.run(fill(*sys.argv[1:3]))
