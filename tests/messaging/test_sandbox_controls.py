"""Controls of the test environment: inbound messages, the clock, the outbox."""

import asyncio
import json
from collections import Counter
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.factories import Environments
from tests.messaging.conversation_steps import (
    advance,
    get_message,
    read_outbox,
    send,
    settled,
    simulate_inbound,
    wait_for_inbound,
)

Json = dict[str, Any]

ALL = {"sentAt", "deliveredAt", "readAt"}


async def test_any_text_arrives_in_a_mail(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    hostile = {"name": 'Ayu "Kopi"\n<x@y>', "subject": "Pesanan\r\nBcc: all@example.com", "text": "Apa\r\nkabar? ☕"}
    await simulate_inbound(sandbox, source="MAIL", quoted="<a@b>\r\nX: y", **{"from": "ayu@example.com", **hostile})
    (message,) = await wait_for_inbound(database, company.test)
    assert (message["client_number"], message["subject"]) == ("ayu@example.com", "Pesanan Bcc: all@example.com")
    assert message["body"] == "Apa\nkabar? ☕"


async def test_a_late_reply_comes_when_the_clock_is_moved(sandbox: httpx.AsyncClient) -> None:
    id = (await send(sandbox, "+12015550108")).json()["data"]["messageId2"]
    await settled(sandbox, id, ALL)
    assert (await get_message(sandbox, id))["repliedAt"] is None
    await advance(sandbox, 30)
    await settled(sandbox, id, {"repliedAt"})


async def test_mail_bounces_is_delayed_and_is_answered(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    put_off = await send(sandbox, "tempfail@simulator.test", "MAIL")
    assert (put_off.status_code, put_off.json()["data"]["ack"]) == (202, 0)
    assert (await send(sandbox, "unknown@simulator.test", "MAIL")).status_code == 502
    sent = {
        name: (await send(sandbox, f"{name}@simulator.test", "MAIL", subject="Pesanan")).json()["data"]["messageId2"]
        for name in ("bounce", "ooo", "reply")
    }
    bounced = await settled(sandbox, sent["bounce"], {"failedAt"})
    assert (bounced["status"], bounced["error"]["code"]) == ("failed", "5.1.1")
    await settled(sandbox, sent["reply"], {"repliedAt"})

    by_sender = {each["client_number"]: each for each in await wait_for_inbound(database, company.test, 2)}
    assert "out of the office" in by_sender["ooo@simulator.test"]["body"]
    assert by_sender["reply@simulator.test"]["body"] == "OK"
    assert (await get_message(sandbox, sent["ooo"]))["repliedAt"] is None


@pytest.mark.parametrize("source", ["SOCIAL_NETWORK", "PHOTO_SOCIAL", "SHORT_VIDEO"])
async def test_a_closed_window_and_an_unknown_person_elsewhere(sandbox: httpx.AsyncClient, source: str) -> None:
    closed = await send(sandbox, "sim_window_closed", source)
    assert (closed.status_code, closed.json()["error"]["code"]) == (409, "WINDOW_CLOSED")
    assert (await send(sandbox, "sim_window_closed", "WIDGET")).status_code == 200
    unknown = await send(sandbox, "sim_unknown", source)
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (502, "SEND_FAILED")


async def test_a_window_has_a_quota_of_ten_messages(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """Even for concurrent sends, until the customer writes again. Refused messages do not count."""
    assert (await send(sandbox, "sim_quota_10", "SHORT_VIDEO")).json()["error"]["code"] == "WINDOW_CLOSED"
    await simulate_inbound(sandbox, source="SHORT_VIDEO", text="Halo", **{"from": "sim_quota_10"})
    await simulate_inbound(sandbox, source="SHORT_VIDEO", text="Halo", **{"from": "sim_unknown"})
    await wait_for_inbound(database, company.test, 2)
    answers = await asyncio.gather(*(send(sandbox, "sim_quota_10", "SHORT_VIDEO") for _ in range(20)))
    assert Counter(answer.status_code for answer in answers) == {200: 10, 409: 10}
    assert {answer.json()["error"]["code"] for answer in answers if answer.is_error} == {"WINDOW_CLOSED"}
    refused = [await send(sandbox, "sim_unknown", "SHORT_VIDEO") for _ in range(11)]
    assert {answer.json()["error"]["code"] for answer in refused} == {"SEND_FAILED"}

    await simulate_inbound(sandbox, source="SHORT_VIDEO", text="Lagi", **{"from": "sim_quota_10"})
    await wait_for_inbound(database, company.test, 3)
    assert (await send(sandbox, "sim_quota_10", "SHORT_VIDEO")).status_code == 200


async def test_the_window_closes_when_the_clock_moves_past_it(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await simulate_inbound(sandbox, source="MSGAPP_CLOUD", text="Halo", **{"from": "+6281234567890"})
    await wait_for_inbound(database, company.test)
    assert (await send(sandbox, "+6281234567890")).status_code == 200
    assert (await send(sandbox, "+6281234567892")).status_code == 200
    moved = await advance(sandbox, 86_400 + 60)
    assert moved["aheadSeconds"] == 86_460
    for number in ("+6281234567890", "+6281234567892"):
        assert (await send(sandbox, number)).json()["error"]["code"] == "WINDOW_CLOSED"
    assert (await send(sandbox, "+6281234567891")).status_code == 200
    await simulate_inbound(sandbox, source="MSGAPP_CLOUD", text="Halo", **{"from": "+6281234567892"})
    await wait_for_inbound(database, company.test, 2)
    assert (await send(sandbox, "+6281234567892")).status_code == 200


async def test_the_outbox_shows_what_the_channel_would_have_got(sandbox: httpx.AsyncClient) -> None:
    sent = (await send(sandbox, "+12015550100", message="Kopi ☕")).json()["data"]
    await send(sandbox, "sim_happy", "SHORT_VIDEO")
    newest, first = await read_outbox(sandbox)
    assert (newest["source"], newest["path"]) == (
        "SHORT_VIDEO", "/sandbox/tiktok/open_api/v1.3/business/message/send/",
    )  # fmt: skip
    body = json.loads(first["body"])
    assert (body["to"], body["text"]["body"]) == ("12015550100", "Kopi ☕")
    assert body["biz_opaque_callback_data"] == sent["messageId2"]
    assert json.loads(first["answer"])["messages"][0]["id"] == sent["messageId"]
    assert "sbx_" not in json.dumps(first["headers"])
    page = (await sandbox.get("/sandbox/outbox", params={"page": 2, "limit": 1})).json()
    assert ([each["id"] for each in page["data"]], page["meta"]["total"]) == ([first["id"]], 2)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/sandbox/inbound", {"source": "MSGAPP_CLOUD", "from": "+12015550100", "text": "Halo"}),
        ("POST", "/sandbox/clock/advance", {"seconds": 60}),
        ("GET", "/sandbox/outbox", None),
    ],
)
async def test_a_live_key_is_refused(live: httpx.AsyncClient, method: str, path: str, body: Json | None) -> None:
    answer = await live.request(method, path, json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "TEST_KEY_REQUIRED")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"source": "MSGAPP_CLOUD", "from": "+12015550100"}, "text"),
        ({"source": "PIGEON", "from": "+12015550100", "text": "Halo"}, "source"),
        ({"source": "MSGAPP_CLOUD", "from": "somebody", "text": "Halo"}, "from"),
        ({"source": "WIDGET", "from": "sim_happy", "media": "image"}, "media"),
        ({"source": "SHORT_VIDEO", "from": "sim_happy", "media": "video"}, "media"),
        ({"source": "SHORT_VIDEO", "from": "sim_happy", "media": "image", "text": "Halo"}, "text"),
        ({"source": "MAIL", "from": "ayu@simulator.test", "text": "Halo", "echo": True}, "echo"),
    ],
)
async def test_an_impossible_inbound_message_is_refused(sandbox: httpx.AsyncClient, body: Json, field: str) -> None:
    answer = await sandbox.post("/sandbox/inbound", json=body)
    assert answer.status_code == 400
    assert [detail["field"] for detail in answer.json()["error"]["details"]] == [field]
