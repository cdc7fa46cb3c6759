"""Messages to visitors: rendered by kind, delivered and read when the page says so, missed by no page."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx

from tests.http.wire import eventually
from tests.messaging.shop_site import Browser
from tests.messaging.widget.steps import read_messages, send


async def test_a_reply_reaches_the_page_and_is_delivered_and_read_when_the_page_says_so(
    page: Browser, client: httpx.AsyncClient, shop: httpx.AsyncClient
) -> None:
    session = await page.join()
    await page.send("Halo")
    message = await send(shop, session["visitorId"], message="Masih ada, kak.")
    assert (message["ack"], message["status"]) == (1, "sent")
    ((number, content),) = [(line["number"], line["content"]) for line in await read_messages(page, client, 1, 1)]
    assert content == {"text": "Masih ada, kak."}

    async def look() -> dict[str, Any]:
        seen: dict[str, Any] = (await shop.get(f"/messages/{message['messageId2']}")).json()["data"]
        return seen

    assert (await page.call("POST", "acks", {"delivered": [number]})).status_code == 204
    assert ((await look())["status"], (await look())["readAt"]) == ("delivered", None)
    assert (await page.call("POST", "acks", {"read": [number]})).status_code == 204
    read = await look()
    assert (read["status"], read["ack"]) == ("read", 3)
    assert read["sentAt"] <= read["deliveredAt"] <= read["readAt"]


async def test_a_reconnected_page_gets_missed_messages_once(
    page: Browser, client: httpx.AsyncClient, shop: httpx.AsyncClient
) -> None:
    session = await page.join()
    for number in range(3):
        await send(shop, session["visitorId"], message=f"Kabar {number}")
    lines = await read_messages(page, client, 1, 2)
    assert [line["content"]["text"] for line in lines] == ["Kabar 1", "Kabar 2"]
    waiting = asyncio.create_task(read_messages(page, client, 3, 1))
    await asyncio.sleep(0.2)
    await send(shop, session["visitorId"], message="Kabar 3")
    assert [line["number"] for line in await waiting] == [4]
    again = await page.join()
    assert [line["number"] for line in again["messages"]] == [1, 2, 3, 4]


async def test_an_unknown_visitor_gets_no_message(shop: httpx.AsyncClient) -> None:
    body = {"to": "vis_01jc9y3q5me8w92v7x4t6r0n1k", "sources": "WIDGET", "message": "Halo"}
    answer = await shop.post("/messages/send", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "SEND_FAILED")


async def test_a_simulated_visitor_receives_reads_and_answers(shop: httpx.AsyncClient) -> None:
    message = await send(shop, "sim_reply", message="Apakah pesanannya sudah sampai?")

    async def look() -> dict[str, Any] | None:
        seen: dict[str, Any] = (await shop.get(f"/messages/{message['messageId2']}")).json()["data"]
        return seen if seen["repliedAt"] else None

    seen = await eventually(look)
    assert seen["status"] == "read"
    assert all(seen[name] for name in ("sentAt", "deliveredAt", "readAt", "repliedAt"))


async def test_a_chat_that_is_too_busy_is_asked_again(shop: httpx.AsyncClient) -> None:
    assert (await send(shop, "sim_rate", message="Halo"))["status"] in {"sent", "delivered"}
    refused = await shop.post("/messages/send", json={"to": "sim_pair_rate", "sources": "WIDGET", "message": "Halo"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (502, "SEND_FAILED")


async def test_every_kind_of_send_is_rendered(page: Browser, shop: httpx.AsyncClient) -> None:
    session = await page.join()
    visitor_id = session["visitorId"]
    name = f"promo_{uuid4().hex[:8]}"
    template = {
        "name": name, "language": "id", "source": "CRM", "category": "UTILITY",
        "body": "Halo {{1}}, pesanan {{2}} dikirim.",
    }  # fmt: skip
    created = await shop.post("/templates", json=template)
    assert created.status_code == 201, created.text
    await send(shop, visitor_id, "send-template", template_name=name, template_source="CRM", params=["Ayu", "INV-1"])
    await send(
        shop, visitor_id, "send-media", mediaUrl="https://images.example/kopi.png", mediaType="image", caption="Kopi"
    )
    link = {"type": "cta_url", "body": "Lacak", "displayText": "Buka", "url": "https://shop.example/track"}
    await send(shop, visitor_id, "send-interactive", interactive=link)
    shown = [line["content"] for line in (await page.join())["messages"]]
    assert shown == [
        {"text": "Halo Ayu, pesanan INV-1 dikirim."},
        {"text": "Kopi", "media": {"type": "image", "url": "https://images.example/kopi.png"}},
        {"text": "Lacak", "linkLabel": "Buka", "linkUrl": "https://shop.example/track"},
    ]
