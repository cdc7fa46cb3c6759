"""Visitors' messages: stored once, only offered options can be chosen, invalid ones are refused."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest

from sapa.db.pool import Database
from sapa.messaging.channels.interface import ReceivedItem, StatusReport
from sapa.messaging.channels.widget import calls
from sapa.messaging.channels.widget.adapter import Widget
from sapa.messaging.channels.widget.calls import SimulatedMessage, SimulatedStatus
from sapa.messaging.widget.inbound import MAX_TEXT_LENGTH
from sapa.messaging.widget.limits import MAX_PER_VISITOR
from sapa.messaging.widget.pages import MAX_BYTES
from sapa.values.provider_accounts import BadSignature
from tests.factories import Environments
from tests.messaging.conversation_steps import list_events
from tests.messaging.shop_site import Browser, Chat, new_id
from tests.messaging.widget.steps import send


async def test_a_visitors_text_arrives_as_message_received(
    page: Browser, database: Database, company: Environments
) -> None:
    session = await page.join()
    answer = await page.send("Halo, apakah kopi Gayo masih ada?")
    assert answer.status_code == 200, answer.text
    (received,) = await list_events(database, company.test, "message.received")
    assert (received["source"], received["direction"], received["body"]) == (
        "WIDGET", "in", "Halo, apakah kopi Gayo masih ada?",
    )  # fmt: skip
    assert received["clientNumber"] == session["visitorId"]
    assert received["customerId"] is None


async def test_a_repeated_message_is_stored_once(page: Browser, database: Database, company: Environments) -> None:
    await page.join()
    id = new_id()
    answers = await asyncio.gather(*(page.send("Halo", id) for _ in range(4)))
    assert [answer.status_code for answer in answers] == [200] * 4
    assert {answer.json()["data"]["number"] for answer in answers} == {1}
    assert len(await list_events(database, company.test, "message.received")) == 1


async def test_a_receipt_counts_once_and_only_for_own_messages(
    page: Browser, client: httpx.AsyncClient, shop: httpx.AsyncClient, chat: Chat, database: Database,
    company: Environments,
) -> None:  # fmt: skip
    session, other = await page.join(), Browser(client, chat)
    await other.join()
    await other.send("Halo")
    await page.send("Halo")
    message = await send(shop, session["visitorId"], message="Halo juga")
    for _ in range(2):
        await other.call("POST", "acks", {"read": [1, 2, 3]})
    unread = (await shop.get(f"/messages/{message['messageId2']}")).json()["data"]
    assert unread["status"] == "sent"
    for _ in range(3):
        await page.call("POST", "acks", {"delivered": [2], "read": [2, 1, 99]})
    updates = await list_events(database, company.test, "message.status.updated")
    mine = [update["status"] for update in updates if update["messageId2"] == message["messageId2"]]
    assert mine[-2:] == ["delivered", "read"]


async def test_only_offered_options_can_be_chosen(
    page: Browser, shop: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    session = await page.join()
    buttons = {
        "type": "buttons",
        "body": "Giling?",
        "buttons": [{"id": "yes", "title": "Ya"}, {"id": "no", "title": "Tidak"}],
    }
    sections = [{"title": "Biji", "rows": [{"id": "gayo", "title": "Gayo", "description": "250 g"}]}]
    listed = {"type": "list", "body": "Pilih kopi", "button": "Lihat", "sections": sections}
    first = await send(shop, session["visitorId"], "send-interactive", interactive=buttons)
    await send(shop, session["visitorId"], "send-interactive", interactive=listed)
    chosen = [{"number": 1, "id": "yes"}, {"number": 2, "id": "gayo"}]
    for choice in chosen:
        answer = await page.call("POST", "messages", {"id": new_id(), "choice": choice})
        assert answer.status_code == 200, answer.text
    for choice in [{"number": 1, "id": "gayo"}, {"number": 9, "id": "yes"}, {"number": 3, "id": "yes"}]:
        answer = await page.call("POST", "messages", {"id": new_id(), "choice": choice})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "NO_SUCH_CHOICE")
    received = await list_events(database, company.test, "message.received")
    assert [message["interaction"] for message in received] == [
        {"kind": "button", "id": "yes", "title": "Ya"},
        {"kind": "list", "id": "gayo", "title": "Gayo"},
    ]
    answered = (await shop.get(f"/messages/{first['messageId2']}")).json()["data"]
    assert answered["repliedAt"] is not None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"id": "p_" + "a" * 32}, 400),
        ({"id": "p_" + "a" * 32, "text": "   \n"}, 400),
        ({"id": "p_" + "a" * 32, "text": "a\0b"}, 400),
        ({"id": "p_" + "a" * 32, "text": "x" * (MAX_TEXT_LENGTH + 1)}, 400),
        ({"id": "short", "text": "Halo"}, 400),
        ({"id": str(uuid4()), "text": "Halo"}, 400),
        ({"id": "p_" + "a" * 32, "text": "Halo", "sender": "vis_x"}, 400),
        ({"id": "p_" + "a" * 32, "choice": {"number": 0, "id": "x"}}, 400),
        ({"id": "p_" + "a" * 32, "choice": {"number": 2**63, "id": "x"}}, 400),
        ({"id": "p_" + "a" * 32, "text": "x" * MAX_BYTES}, 413),
        ({"id": "p_" + "a" * 32, "text": "x" * MAX_TEXT_LENGTH}, 200),
        ({"id": "p_" + "a" * 32, "text": "👩‍🚀" * 500}, 200),
    ],
)
async def test_an_invalid_message_is_refused_and_changes_nothing(
    page: Browser, database: Database, company: Environments, body: dict[str, Any], status: int
) -> None:
    await page.join()
    answer = await page.call("POST", "messages", body)
    assert answer.status_code == status, answer.text
    assert len(await list_events(database, company.test, "message.received")) == (status == 200)


async def test_a_visitor_who_writes_too_fast_has_to_wait(page: Browser, client: httpx.AsyncClient, chat: Chat) -> None:
    await page.join()
    most = MAX_PER_VISITOR["message"]
    answers = await asyncio.gather(*(page.send(f"Halo {number}") for number in range(2 * most + 1)))
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {200, 429}
    assert most <= statuses.count(200) <= 2 * most  # a new minute may begin
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert int(refused.headers["retry-after"]) > 0
    assert refused.headers["access-control-allow-origin"] == "*"
    other = Browser(client, chat)
    await other.join()
    assert (await other.send("Saya orang lain")).status_code == 200


NOW = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)
PLAYED: list[SimulatedStatus | SimulatedMessage] = [
    SimulatedStatus("read", "sim_happy.1", NOW, "0199a1f0-7c3e-7d52-9b1a-4e6f2c8d0a35"),
    SimulatedMessage("sim_happy.2", "sim_happy", NOW, "Halo"),
]


def test_a_signed_callback_is_read_completely() -> None:
    headers, body = calls.build_callback("s", PLAYED)
    Widget().check_callback({"secret": "s"}, headers, body)
    status, message = Widget().read_callback({}, body)
    assert isinstance(status, StatusReport)
    assert (status.status, status.message_id, status.reference, status.at) == (
        "read", "sim_happy.1", "0199a1f0-7c3e-7d52-9b1a-4e6f2c8d0a35", NOW,
    )  # fmt: skip
    assert isinstance(message, ReceivedItem)
    assert (message.body, message.sender[0].value) == ("Halo", "sim_happy")


@pytest.mark.parametrize("signature", ["", "0" * 64, "as for a visitor", "of another secret"])
def test_a_callback_with_another_signature_is_refused(chat: Chat, signature: str) -> None:
    headers, body = calls.build_callback(chat.secret, PLAYED)
    forged = {
        "as for a visitor": chat.prove(body.decode()),
        "of another secret": calls.build_signature("guessed", body),
    }.get(signature, signature)
    with pytest.raises(BadSignature):
        Widget().check_callback({"secret": chat.secret}, headers | {calls.SIGNATURE: forged}, body)


async def test_the_public_key_is_no_token_of_a_hook(
    client: httpx.AsyncClient, chat: Chat, database: Database, company: Environments
) -> None:
    headers, body = calls.build_callback(chat.secret, PLAYED)
    answer = await client.post(f"/hooks/channels/{chat.key}", headers=headers, content=body)
    assert answer.status_code == 404
    assert await list_events(database, company.test, "message.received") == []
