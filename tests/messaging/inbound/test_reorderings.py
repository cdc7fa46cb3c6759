"""Callbacks arrive in any order and more than once: one order, one answer, one state of each message."""

import asyncio
import random
import time
from typing import Any
from uuid import uuid4

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.conversation_steps import get_message, list_events, list_inbound
from tests.messaging.inbound.test_carts import SENDER, build_cart, count_waiting, list_orders, wait_until_idle
from tests.messaging.provider import open_live
from tests.messaging.whatsapp_account import WhatsAppHook, build_change, build_text, connect_whatsapp

Json = dict[str, Any]

START = 1_700_000_000
STAMPS = ("sentAt", "deliveredAt", "readAt")
MAKE_DUE = "UPDATE channel_callbacks SET due_at = now() WHERE company_id = $1 AND status = 'waiting'"


@pytest.fixture
def hook(installation: Installation, company: Environments) -> WhatsAppHook:
    return connect_whatsapp(installation, company.live)


async def exhaust_pauses(database: Database, company: Environments) -> None:
    """Callbacks that wait for a message are tried again at once, until they wait no more."""
    while await count_waiting(database, company.live):
        async with database.connection() as db:
            await db.execute(MAKE_DUE, company.live)
        await asyncio.sleep(0.05)


def build_flow(id: str, quoted: str, answer: str, at: int) -> Json:
    reply = {"name": "flow", "body": "Sent", "response_json": answer}
    base = {key: value for key, value in build_text(SENDER, id=id, at=at).items() if key != "text"}
    interactive = {"type": "nfm_reply", "nfm_reply": reply}
    return {**base, "type": "interactive", "interactive": interactive, "context": {"id": quoted}}


def build_edit(original: str, text: str, at: int) -> Json:
    base = {key: value for key, value in build_text(SENDER, at=at).items() if key != "text"}
    new = {"type": "text", "text": {"body": text}}
    return {**base, "type": "edit", "edit": {"original_message_id": original, "message": new}}


def build_status(reference: str, id: str, status: str, at: int) -> Json:
    return {
        "id": id, "status": status, "timestamp": str(at), "recipient_id": SENDER, "biz_opaque_callback_data": reference,
    }  # fmt: skip


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.long] if seed else []) for seed in range(40)])
async def test_any_order_with_repetitions_ends_in_the_same_state(
    installation: Installation, api: httpx.AsyncClient, database: Database, company: Environments, seed: int
) -> None:
    """A flow goes out and its outcome is unknown. Its reports, the answer, carts, a message and its edits arrive
    shuffled and repeated, alone and in batches."""
    await api.put("/company", json={"cartOrders": True})
    chance, start = random.Random(seed), int(time.time()) - 100
    async with open_live(installation, database, company.live) as live:
        await live.hook.send_change(build_change(build_text(SENDER, "Halo", at=start)))
        await wait_until_idle(database, company.live)
        live.peer.answers = [(500, {})]
        flow = {"type": "flow", "body": "Isi", "button": "Isi", "flowId": "12", "flowToken": "t-1", "screen": "S"}
        sent = (await live.post("/messages/send-interactive", to=f"+{SENDER}", interactive=flow)).json()["data"]
        assert sent["ack"] == 0
        wamid, original = f"wamid.out{uuid4().hex}", f"wamid.in{uuid4().hex}"
        statuses = [
            {"statuses": [build_status(sent["messageId2"], wamid, status, start + 10 + number)]}
            for number, status in enumerate(("sent", "delivered", "read"))
        ]
        carts = [build_cart(id=f"wamid.cart{number}{uuid4().hex}", at=start + 20 + number) for number in range(2)]
        answer = build_flow(f"wamid.flow{uuid4().hex}", wamid, '{"city":"Bandung"}', start + 30)
        written = [*carts, answer, build_text(SENDER, "satu", id=original, at=start + 40)]
        edits = [build_edit(original, text, start + 50 + number) for number, text in enumerate(("dua", "tiga"))]
        changes = [*statuses, *(build_change(message) for message in (*written, *edits))]
        batches = [build_change(*chance.sample(written, 2)), build_change(*edits)]
        deliveries = [*changes, *changes, *batches]
        chance.shuffle(deliveries)
        for change in deliveries:
            await live.hook.send_change(change, *chance.choices([[], [chance.choice(changes)]])[0])
        await wait_until_idle(database, company.live)
        message = await live.get(f"/messages/{sent['messageId2']}")
        assert (message["status"], message["messageId"]) == ("read", wamid)
        assert all(message[stamp] for stamp in STAMPS)
        assert message["repliedAt"] is not None
        found = {one["provider_id"]: one for one in await list_inbound(database, company.live)}
        assert set(found) - {one["id"] for one in written} == {next(iter(found))}
        reply = await live.get(f"/messages/{found[answer['id']]['id']}")
        assert (reply["type"], reply["flow"]["data"]) == ("flow", {"city": "Bandung"})
        edited = await live.get(f"/messages/{found[original]['id']}")
        assert (edited["body"], [event["detail"] for event in edited["events"]].count("tiga")) == ("tiga", 1)
    orders = await list_orders(api)
    assert sorted(order["orderId"] for order in orders) == sorted(cart["id"] for cart in carts)
    received = await list_events(database, company.live, "message.received")
    assert sorted(one["messageId"] for one in received) == sorted(found)
    assert len(await list_events(database, company.live, "order.created")) == 2
    assert len(await list_events(database, company.live, "message.updated")) == 2


async def test_an_edit_long_before_its_message_is_applied(
    hook: WhatsAppHook, live: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """The channel retries the original for days, and the edit has long been processed."""
    await hook.send_change(build_change(build_edit("wamid.late", "tiga", START + 2)))
    await hook.send_change(build_change(build_edit("wamid.late", "dua", START + 1)))
    await exhaust_pauses(database, company)
    events = (await live.get("/channel-events", params={"kind": "edit"})).json()["data"]
    assert [event["messageId"] for event in events] == ["wamid.late", "wamid.late"]
    await hook.send_change(build_change(build_text(SENDER, "satu", id="wamid.late", at=START)))

    async def look() -> Json | None:
        found = await list_inbound(database, company.live)
        return await get_message(live, found[0]["id"]) if found else None

    message = await eventually(look)
    assert (message["body"], message["editedAt"]) == ("tiga", "2023-11-14T22:13:22.000Z")
    assert [event["detail"] for event in message["events"] if event["kind"] == "edited"] == ["dua", "tiga"]


async def test_two_edits_within_a_second_are_both_applied(
    hook: WhatsAppHook, live: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await hook.send_change(build_change(build_text(SENDER, "satu", id="wamid.o", at=START)))
    edits = [build_edit("wamid.o", text, START + 1) for text in ("dua", "tiga")]
    for edit in (*edits, *edits):
        await hook.send_change(build_change(edit, build_text(SENDER, at=START + 2)))
    await wait_until_idle(database, company.live)
    (original, *_) = [one for one in await list_inbound(database, company.live) if one["provider_id"] == "wamid.o"]
    message = await get_message(live, original["id"])
    assert message["body"] == "tiga"
    assert [event["detail"] for event in message["events"]] == ["dua", "tiga"]
    assert len(await list_events(database, company.live, "message.updated")) == 2
