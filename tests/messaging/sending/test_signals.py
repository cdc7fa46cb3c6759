"""Replies in context, reactions, read marks and typing."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.factories import Environments
from tests.messaging.conversation_steps import list_inbound, wait_for_inbound
from tests.messaging.send_steps import NUMBER, await_message, get_message, send

Json = dict[str, Any]

READABLE = {"MSGAPP_CLOUD": NUMBER, "SOCIAL_NETWORK": "sim_happy", "PHOTO_SOCIAL": "sim_happy"}


Receive = Callable[..., Awaitable[Json]]


@pytest.fixture
def receive(sandbox: httpx.AsyncClient, database: Database, company: Environments) -> Receive:
    """A message from a customer, as the API shows it."""

    async def receive_message(source: str = "MSGAPP_CLOUD", sender: str = NUMBER) -> Json:
        before = len(await list_inbound(database, company.test))
        body = {"source": source, "from": sender, "text": "Halo, ada kopi?"}
        answer = await sandbox.post("/sandbox/inbound", json=body)
        assert answer.is_success, answer.text
        found = await wait_for_inbound(database, company.test, before + 1)
        return await get_message(sandbox, found[-1]["id"])

    return receive_message


async def read_requests(client: httpx.AsyncClient) -> list[Json]:
    found = (await client.get("/sandbox/outbox")).json()["data"]
    return [json.loads(request["body"]) for request in found if request["path"].endswith("/messages")]


async def test_a_reply_quotes_the_customers_message(sandbox: httpx.AsyncClient, receive: Receive) -> None:
    received = await receive()
    sent = await send(sandbox, replyTo=received["messageId2"])
    assert (await read_requests(sandbox))[0]["context"] == {"message_id": received["messageId"]}
    own = await send(sandbox, message="Satu lagi", replyTo=sent["messageId2"])
    assert own["ack"] == 1
    assert (await read_requests(sandbox))[0]["context"] == {"message_id": sent["messageId"]}


async def test_a_reply_to_another_conversation_is_refused(sandbox: httpx.AsyncClient, receive: Receive) -> None:
    received = await receive()
    body = {"message": "Halo", "sources": "MSGAPP_CLOUD", "replyTo": received["messageId2"]}
    other = await sandbox.post("/messages/send", json={**body, "to": "+628999999999"})
    unknown = await sandbox.post("/messages/send", json={**body, "to": NUMBER, "replyTo": "unknown"})
    for refused in (other, unknown):
        assert refused.status_code == 400
        assert refused.json()["error"]["details"][0]["field"] == "replyTo"


async def test_a_channel_without_quotes_refuses_them(sandbox: httpx.AsyncClient, receive: Receive) -> None:
    received = await receive("WIDGET", "sim_happy")
    body = {"to": "sim_happy", "sources": "WIDGET", "message": "Halo", "replyTo": received["messageId2"]}
    refused = await sandbox.post("/messages/send", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "CHANNEL_UNSUPPORTED")


async def test_a_blank_reaction_is_refused_before_the_channel_is_called(
    sandbox: httpx.AsyncClient, receive: Receive
) -> None:
    path = f"/messages/{(await receive())['messageId2']}/reaction"
    refused = await sandbox.put(path, json={"emoji": " "})
    assert (refused.status_code, refused.json()["error"]["details"][0]["field"]) == (400, "emoji")
    assert await read_requests(sandbox) == []


async def test_a_reaction_is_sent_replaced_and_removed(sandbox: httpx.AsyncClient, receive: Receive) -> None:
    received = await receive()
    path = f"/messages/{received['messageId2']}/reaction"
    answer = await sandbox.put(path, json={"emoji": "👍"})
    assert answer.status_code == 200, answer.text
    events = answer.json()["data"]["events"]
    assert [(event["kind"], event["detail"]) for event in events if event["kind"] == "reacted"] == [("reacted", "👍")]
    assert (await read_requests(sandbox))[0] == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": NUMBER.removeprefix("+"),
        "type": "reaction",
        "reaction": {"message_id": received["messageId"], "emoji": "👍"},
    }
    assert (await sandbox.delete(path)).status_code == 204
    assert (await read_requests(sandbox))[0]["reaction"]["emoji"] == ""
    shown = await get_message(sandbox, received["messageId2"])
    assert [event["detail"] for event in shown["events"] if event["kind"] == "reacted"] == ["👍", None]


@pytest.mark.parametrize("source", READABLE)
async def test_a_message_is_marked_as_read_and_answered(
    sandbox: httpx.AsyncClient, receive: Receive, source: str
) -> None:
    received = await receive(source, READABLE[source])
    path = f"/messages/{received['messageId2']}"
    assert (await sandbox.post(f"{path}/read")).status_code == 204
    assert (await sandbox.post(f"{path}/typing")).status_code == 204
    typing, read = (await read_requests(sandbox))[:2]
    if source == "MSGAPP_CLOUD":
        mark = {"messaging_product": "whatsapp", "status": "read", "message_id": received["messageId"]}
        assert (read, typing) == (mark, mark | {"typing_indicator": {"type": "text"}})
    else:
        assert (read["sender_action"], typing["sender_action"]) == ("mark_seen", "typing_on")


@pytest.mark.parametrize("source", ["SOCIAL_NETWORK", "PHOTO_SOCIAL"])
async def test_messenger_and_instagram_react_and_quote(
    sandbox: httpx.AsyncClient, receive: Receive, source: str
) -> None:
    received = await receive(source, "sim_happy")
    path = f"/messages/{received['messageId2']}/reaction"
    assert (await sandbox.put(path, json={"emoji": "❤️"})).status_code == 200
    reaction = (await read_requests(sandbox))[0]
    assert (reaction["sender_action"], reaction["payload"]) == (
        "react",
        {"message_id": received["messageId"], "reaction": "❤️"},
    )
    await send(sandbox, to="sim_happy", sources=source, replyTo=received["messageId2"])
    assert (await read_requests(sandbox))[0]["reply_to"] == {"mid": received["messageId"]}


async def test_only_received_messages_are_marked_as_read(sandbox: httpx.AsyncClient, receive: Receive) -> None:
    sent = await send(sandbox)
    await await_message(sandbox, sent["messageId2"], lambda message: message["messageId"])
    refused = await sandbox.post(f"/messages/{sent['messageId2']}/read")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "MESSAGE_NOT_ON_CHANNEL")
    mail = await receive("MAIL", "ayu@example.com")
    refused = await sandbox.post(f"/messages/{mail['messageId2']}/read")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "CHANNEL_UNSUPPORTED")
    reaction = await sandbox.put(f"/messages/{mail['messageId2']}/reaction", json={"emoji": "👍"})
    assert (reaction.status_code, reaction.json()["error"]["code"]) == (409, "CHANNEL_UNSUPPORTED")
