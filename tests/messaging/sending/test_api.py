"""The four kinds of send: responses, stored messages, and no duplicates."""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

import httpx
import pytest

from sapa.db.pool import Database
from tests import depth
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_key
from tests.http.wire import eventually
from tests.javascript import print_again
from tests.messaging.conftest import connect_messaging
from tests.messaging.provider import NUMBER_SENT, Live, open_live
from tests.messaging.send_steps import (
    BUTTONS,
    NUMBER,
    await_message,
    build_message,
    get_message,
    get_record,
    list_records,
    magic,
    make_template,
    send,
)
from tests.messaging.whatsapp_account import SECRET, build_change, build_text

Json = dict[str, Any]


async def outbox_total(client: httpx.AsyncClient) -> int:
    total: int = (await client.get("/sandbox/outbox")).json()["meta"]["total"]
    return total


@pytest.mark.smoke
async def test_a_plain_message_is_answered_as_it_was_sent(sandbox: httpx.AsyncClient) -> None:
    agent = (await sandbox.post("/agents", json={"name": "Sari"})).json()["data"]["id"]
    message = await send(sandbox, agentId=agent, metadata={"order": "INV-1"})
    assert (message["ack"], message["status"], message["type"], message["body"]) == (1, "sent", "text", "Halo!")
    assert (message["clientNumber"], message["source"], message["direction"]) == (NUMBER, "MSGAPP_CLOUD", "out")
    assert message["connectedNumber"].startswith("+")
    assert (message["featureSource"], message["agentId"], message["metadata"]) == ("API", agent, {"order": "INV-1"})
    assert message["messageId"]
    assert message["sentAt"]
    assert (message["deliveredAt"], message["failedAt"], message["error"], message["ticketId"]) == (None,) * 4
    record = await get_record(sandbox, message["messageId2"])
    assert record["response"] == {"data": message}
    assert (record["sentAt"], record["createdAt"] <= record["sentAt"]) == (message["sentAt"], True)
    assert (record["endpointType"], record["source"], record["templateId"]) == ("send_message", "MSGAPP_CLOUD", None)


async def test_a_receiver_that_prints_a_message_again_gets_the_same_bytes(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    own = '{"b":1.0,"2":1e5,"1":[1.50,{"9":-0.0,"id":12345678901234567890,"text":"\\u2028"}]}'
    form = f'{{"type":"flow","body":"b","button":"Isi","flowId":"1","flowToken":"t","screen":"S","data":{own}}}'
    for path, content in (
        ("send", f'"message":"Halo!","metadata":{own}'),
        ("send-interactive", f'"interactive":{form}'),
    ):
        body = f'{{"to":"{NUMBER}","sources":"MSGAPP_CLOUD",{content}}}'
        sent = await sandbox.post(f"/messages/{path}", content=body, headers={"content-type": "application/json"})
        assert sent.status_code == 200, sent.text
    async with database.connection() as db:
        events = await db.fetch("SELECT body FROM events WHERE company_id = $1 AND kind LIKE 'message.%'", company.test)
    bodies = [bytes(event[0]).decode() for event in events]
    assert len(bodies) >= 2
    assert bodies == [print_again(body) for body in bodies]
    data = sent.json()["data"]["interactive"]["data"]
    assert data == {"1": [1.5, {"9": 0, "id": "12345678901234567890", "text": "\u2028"}], "2": 100_000, "b": 1}


@pytest.mark.parametrize(("levels", "status"), [(300, 200), (900, 400)])
async def test_metadata_may_be_nested_but_not_too_deeply(sandbox: httpx.AsyncClient, levels: int, status: int) -> None:
    body = f'{{"to":"{NUMBER}","message":"Halo!","metadata":{{"a":{"[" * levels}{"]" * levels}}}}}'
    sent = await sandbox.post("/messages/send", content=body, headers={"content-type": "application/json"})
    assert sent.status_code == status, sent.text


async def test_the_other_three_kinds_are_stored_with_their_content(sandbox: httpx.AsyncClient) -> None:
    await make_template(sandbox)
    params = {"template_name": "order_update", "params": ["Ayu", "INV-1"], "template_source": "CRM"}
    template = await sandbox.post("/messages/send-template", json={"to": NUMBER, "sources": "MSGAPP_CLOUD", **params})
    data = template.json()["data"]
    assert (data["type"], data["templateId"]) == ("template", "order_update")
    assert data["body"] == "Halo Ayu, pesanan INV-1 dikirim."
    url = "https://shop.example/kopi.mp4"
    media = await sandbox.post("/messages/send-media", json={"to": NUMBER, "mediaUrl": url, "caption": "Lihat"})
    data = media.json()["data"]
    assert (data["type"], data["mediaUrl"], data["body"]) == ("video", url, "Lihat")
    pressed = await sandbox.post("/messages/send-interactive", json={"to": NUMBER, "interactive": BUTTONS})
    data = pressed.json()["data"]
    assert (data["type"], data["body"], data["interactive"]["buttons"]) == ("interactive", "Benar?", BUTTONS["buttons"])
    kinds = [record["endpointType"] for record in (await list_records(sandbox))["data"]]
    assert kinds == ["send_message_interactive", "send_message_media", "send_message_template"]


async def test_a_plain_message_may_bring_a_picture(sandbox: httpx.AsyncClient) -> None:
    message = await send(sandbox, imageUrl="https://shop.example/kopi.jpg")
    assert (message["type"], message["body"]) == ("image", "Halo!")
    assert message["mediaUrl"] == "https://shop.example/kopi.jpg"
    sent = (await sandbox.get("/sandbox/outbox")).json()["data"][0]
    assert "kopi.jpg" in sent["body"]
    assert "Halo!" in sent["body"]


async def test_a_refusal_of_the_channel_is_answered_with_its_reason(sandbox: httpx.AsyncClient) -> None:
    answer = await sandbox.post("/messages/send", json=build_message(to=magic(110)))
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "SEND_FAILED")
    assert answer.json()["error"]["message"].count("131026") == 1
    assert answer.json()["error"]["details"] == [
        {"category": "recipient", "providerCode": "131026", "retryable": False}
    ]
    assert "retry-after" not in answer.headers
    (record,) = (await list_records(sandbox))["data"]
    assert record["response"] == answer.json()
    assert record["sentAt"] is None
    message = await get_message(sandbox, record["messageId2"])
    assert (message["ack"], message["status"], message["sentAt"]) == (-1, "failed", None)
    assert message["failedAt"] == record["failedAt"] is not None
    assert message["error"]["code"] == "131026"


async def test_a_short_refusal_is_retried_within_the_call(sandbox: httpx.AsyncClient) -> None:
    message = await send(sandbox, to=magic(114))
    assert message["status"] == "sent"
    assert await outbox_total(sandbox) == 3
    assert (await list_records(sandbox))["meta"]["total"] == 1


async def test_a_refusal_that_takes_longer_is_answered(sandbox: httpx.AsyncClient) -> None:
    answer = await sandbox.post("/messages/send", json=build_message(to=magic(115)))
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "SEND_FAILED")
    assert answer.json()["error"]["details"] == [{"category": "rate", "providerCode": "131056", "retryable": True}]
    assert answer.headers["retry-after"] == "6"
    assert await outbox_total(sandbox) == 1


async def test_a_server_error_of_the_channel_leaves_the_message_pending(sandbox: httpx.AsyncClient) -> None:
    message = await send(sandbox, 202, to=magic(117))
    assert (message["ack"], message["status"], message["sentAt"]) == (0, "pending", None)
    assert message["error"]["code"] == "UNCLEAR"
    record = await get_record(sandbox, message["messageId2"])
    assert (record["response"], record["failedAt"]) == ({"data": message}, None)
    assert await outbox_total(sandbox) == 1


async def test_a_message_without_an_answer_is_settled_by_its_report_and_not_sent_again(
    sandbox: httpx.AsyncClient,
) -> None:
    once = {"idempotency-key": uuid4().hex}
    first = await sandbox.post("/messages/send", json=build_message(to=magic(118)), headers=once)
    assert first.status_code in {200, 202}, "its report may be there before we give up waiting"
    id = first.json()["data"]["messageId2"]
    message = await await_message(sandbox, id, lambda found: found["readAt"])
    assert (message["ack"], message["error"]) == (3, None)
    assert message["messageId"]
    again = await sandbox.post("/messages/send", json=build_message(to=magic(118)), headers=once)
    assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")
    assert await outbox_total(sandbox) == 1
    assert (await list_records(sandbox))["meta"]["total"] == 1


async def test_concurrent_calls_with_one_key_send_once_and_leave_one_record(
    installation: Installation, database: Database, company: Environments, sandbox: httpx.AsyncClient
) -> None:
    once = {"idempotency-key": uuid4().hex}
    key = await make_key(database, company.test)
    async with connect_messaging(installation, key.raw) as other:
        calls = [
            client.post("/messages/send", json=build_message(), headers=once)
            for client in (sandbox, other)
            for _ in range(5)
        ]
        answers = await asyncio.gather(*calls)
    assert {(answer.status_code, answer.content) for answer in answers} == {(200, answers[0].content)}
    assert await outbox_total(sandbox) == 1
    assert (await list_records(sandbox))["meta"]["total"] == 1


async def test_after_a_refusal_the_same_key_may_be_tried_again(sandbox: httpx.AsyncClient) -> None:
    once = {"idempotency-key": uuid4().hex}
    for _ in range(2):
        answer = await sandbox.post("/messages/send", json=build_message(to=magic(110)), headers=once)
        assert answer.status_code == 502
    assert await outbox_total(sandbox) == 2


@pytest.mark.parametrize("number", [112, 113])
async def test_a_template_that_the_channel_refuses(sandbox: httpx.AsyncClient, number: int) -> None:
    await make_template(sandbox, body="Halo")
    body = {"to": magic(number), "sources": "MSGAPP_CLOUD", "template_name": "order_update"}
    answer = await sandbox.post("/messages/send-template", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "SEND_FAILED")
    assert {112: "132001", 113: "132000"}[number] in answer.json()["error"]["message"]
    (record,) = (await list_records(sandbox))["data"]
    assert (record["templateId"], record["messageId2"] is not None) == ("order_update", True)


async def test_a_slow_channel_does_not_delay_other_callers(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """Many callers hang on one channel; a message on another channel gets its response before any of them."""
    clients = 20 if depth.is_long() else 8
    async with AsyncExitStack() as stack:
        # Several clients: httpx looks through all of a client's connections for each request.
        crowd = [
            await stack.enter_async_context(
                httpx.AsyncClient(base_url=sandbox.base_url, headers=sandbox.headers, timeout=120, verify=TLS)
            )
            for _ in range(clients)
        ]
        hanging = [
            asyncio.create_task(client.post("/messages/send", json=build_message(to=magic(118))))
            for client in crowd
            for _ in range(10)
        ]
        enough = 50  # more than the connections of all API processes

        async def enough_hang() -> bool | None:
            async with database.connection() as db:
                count = await db.fetchval("SELECT count(*) FROM sandbox_outbox WHERE company_id = $1", company.test)
            return count >= enough or None

        await eventually(enough_hang)
        await send(sandbox, to="ayu@example.com", sources="MAIL")
        await send(sandbox, to="sim_happy", sources="SHORT_VIDEO")
        unanswered = sum(not task.done() for task in hanging)
        answers = await asyncio.gather(*hanging)
    assert unanswered >= enough
    assert sum(answer.status_code in {200, 202} for answer in answers) >= enough


async def test_a_channels_alias_of_a_recipient_is_stored(sandbox: httpx.AsyncClient, database: Database) -> None:
    message = await send(sandbox, to=magic(121))
    assert message["clientNumber"] == magic(121)
    async with database.connection() as db:
        spellings = await db.fetch("SELECT contact_id FROM contact_identities WHERE key LIKE '+1201555019%'")
    assert spellings


async def open_window(live: Live) -> None:
    """The customer writes, so that free messages are allowed."""
    await live.hook.send_change(build_change(build_text("628123456789", at=int(time.time()))))

    async def is_open() -> bool | None:
        live.peer.answers = [(200, NUMBER_SENT)]
        return (await live.post("/messages/send", **build_message())).status_code != 409 or None

    await eventually(is_open)


def build_graph_error(code: int, reason: str) -> dict[str, Any]:
    return {"error": {"message": f"(#{code}) {reason}", "type": "OAuthException", "code": code}}


async def test_a_definite_error_is_a_failure_even_with_a_5xx(
    installation: Installation, database: Database, company: Environments
) -> None:
    """Until now such a message stayed pending for a day, and its caller was told to wait."""
    async with open_live(installation, database, company.live) as live:
        await open_window(live)
        live.peer.answers = [(500, build_graph_error(131045, "The number has no certificate"))]
        refused = await live.post("/messages/send", **build_message())
        assert refused.status_code == 502, refused.text
        assert refused.json()["error"] == {
            "code": "SEND_FAILED",
            "message": "The channel refused the message: The number has no certificate (code 131045)",
            "details": [{"category": "config", "providerCode": "131045", "retryable": False}],
        }
        live.peer.answers = [(500, build_graph_error(131000, "Something went wrong"))]
        unclear = await live.post("/messages/send", **build_message())
        assert (unclear.status_code, unclear.json()["data"]["ack"]) == (202, 0)


async def test_a_refusal_that_repeats_the_accounts_secrets_is_shown_and_stored_without_them(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with open_live(installation, database, company.live) as live:
        await open_window(live)
        for status, code in ((400, 190), (500, 131000)):
            live.peer.answers = [(status, build_graph_error(code, f"Malformed {SECRET}"))]
            answer = await live.post("/messages/send", **build_message())
            assert answer.status_code == (502 if code == 190 else 202), answer.text
            assert SECRET not in answer.text
        shown = (await live.client.get("http://probe/messaging/v1/messages/requests")).text
        assert "Malformed …" in shown
        assert SECRET not in shown
    async with database.connection() as db:
        stored = await db.fetchval("SELECT last_error FROM channel_connections WHERE company_id = $1", company.live)
    assert "Malformed …" in stored


async def test_only_our_own_check_says_that_the_window_is_closed(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with open_live(installation, database, company.live) as live:
        own = await live.post("/messages/send", **build_message())
        assert (own.status_code, own.json()["error"]["code"]) == (409, "WINDOW_CLOSED")
        assert live.peer.requests == []
        await open_window(live)
        live.peer.answers = [(400, build_graph_error(131047, "Re-engagement message"))]
        theirs = await live.post("/messages/send", **build_message())
        assert (theirs.status_code, theirs.json()["error"]["code"]) == (502, "SEND_FAILED")
        assert theirs.json()["error"]["details"][0]["category"] == "window"


async def test_a_request_without_a_response_is_not_retried_and_one_never_sent_is(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with open_live(installation, database, company.live) as live:
        await open_window(live)
        live.peer.requests.clear()
        live.peer.answers = [None, (200, NUMBER_SENT)]
        unclear = await live.post("/messages/send", **build_message())
        assert (unclear.status_code, unclear.json()["data"]["status"]) == (202, "pending")
        assert len(live.peer.requests) == 1
    hook = live.hook
    async with open_live(installation, database, company.live, "http://127.0.0.1:9", hook) as nobody:
        answer = await nobody.post("/messages/send", **build_message())
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "SEND_FAILED")
        assert "could not be reached" in answer.json()["error"]["message"]
        assert answer.json()["error"]["details"] == [
            {"category": "temporary", "providerCode": "NOT_SENT", "retryable": True}
        ]
