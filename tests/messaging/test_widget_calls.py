"""What pages call: who is let in, what is taken, and that nobody sees anybody else's conversation."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import pytest

from sapa.db.pool import Database, open_database
from sapa.messaging.channels.interface import Inbound, StatusReport, Unsigned
from sapa.messaging.channels.widget import calls
from sapa.messaging.channels.widget.adapter import Widget
from sapa.messaging.channels.widget.calls import PlayedMessage, PlayedStatus
from sapa.messaging.widget.inbound import LONGEST_TEXT
from sapa.messaging.widget.jobs import forget_old
from sapa.messaging.widget.limits import MOST_BY_VISITOR
from sapa.messaging.widget.pages import MOST_BYTES, read_script
from sapa.messaging.widget.visits import SESSION_DAYS
from tests.cli.command import sapa
from tests.conftest import Installation, start_installation, stop_installation
from tests.factories import Environments, make_company
from tests.http.wire import eventually
from tests.messaging.site import Browser, Chat, build_chat, new_id


@pytest.fixture
def chat(installation: Installation, database: Database, company: Environments) -> Chat:
    return build_chat(installation, database, company.test)


@pytest.fixture
async def client(installation: Installation) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=installation.address, timeout=30) as opened:
        yield opened


@pytest.fixture
def page(client: httpx.AsyncClient, chat: Chat) -> Browser:
    return Browser(client, chat)


@pytest.fixture
def shop(sandbox: httpx.AsyncClient) -> httpx.AsyncClient:
    """The company's own side: the messaging API with a test key."""
    return sandbox


async def send(shop: httpx.AsyncClient, to: str, kind: str = "send", **fields: Any) -> dict[str, Any]:
    answer = await shop.post(f"/messages/{kind}", json={"to": to, "sources": "WIDGET", **fields})
    assert answer.status_code == 200, answer.text
    message: dict[str, Any] = answer.json()["data"]
    return message


async def list_events(database: Database, company_id: int, kind: str) -> list[dict[str, Any]]:
    async with database.connection() as db:
        rows = await db.fetch(
            "SELECT body FROM events WHERE company_id = $1 AND kind = $2 ORDER BY number", company_id, kind
        )
    return [msgspec.json.decode(row[0]) for row in rows]


async def read_lines(page: Browser, client: httpx.AsyncClient, after: int, many: int) -> list[dict[str, Any]]:
    """So many lines of the stream after a number."""
    headers = {"x-widget-key": page.key, "authorization": f"Bearer {page.token}", "last-event-id": str(after)}
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(20), client.stream("GET", "/widget/v1/events", headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for text in answer.aiter_lines():
            if text.startswith("data: "):
                found.append(msgspec.json.decode(text[6:]))
            if len(found) == many:
                return found
    raise AssertionError("the stream ended")


async def test_a_visitors_words_arrive_as_message_received(
    page: Browser, database: Database, company: Environments
) -> None:
    session = await page.join()
    answer = await page.say("Halo, apakah kopi Gayo masih ada?")
    assert answer.status_code == 200, answer.text
    (received,) = await list_events(database, company.test, "message.received")
    assert (received["source"], received["direction"], received["body"]) == (
        "WIDGET", "in", "Halo, apakah kopi Gayo masih ada?",
    )  # fmt: skip
    assert received["clientNumber"] == session["visitorId"]
    assert received["customerId"] is None


async def test_a_message_that_is_sent_again_is_taken_once(
    page: Browser, database: Database, company: Environments
) -> None:
    await page.join()
    id = new_id()
    answers = await asyncio.gather(*(page.say("Halo", id) for _ in range(4)))
    assert [answer.status_code for answer in answers] == [200] * 4
    assert {answer.json()["data"]["number"] for answer in answers} == {1}
    assert len(await list_events(database, company.test, "message.received")) == 1


async def test_a_reply_reaches_the_page_and_is_delivered_and_read_when_the_page_says_so(
    page: Browser, client: httpx.AsyncClient, shop: httpx.AsyncClient
) -> None:
    session = await page.join()
    await page.say("Halo")
    message = await send(shop, session["visitorId"], message="Masih ada, kak.")
    assert (message["ack"], message["status"]) == (1, "sent")
    ((number, content),) = [(line["number"], line["content"]) for line in await read_lines(page, client, 1, 1)]
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


async def test_an_acknowledgement_counts_once_and_only_for_ones_own_lines(
    page: Browser, client: httpx.AsyncClient, shop: httpx.AsyncClient, chat: Chat, database: Database,
    company: Environments,
) -> None:  # fmt: skip
    session, other = await page.join(), Browser(client, chat)
    await other.join()
    await other.say("Halo")
    await page.say("Halo")
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


async def test_a_page_that_comes_back_gets_what_it_missed_and_nothing_twice(
    page: Browser, client: httpx.AsyncClient, shop: httpx.AsyncClient
) -> None:
    session = await page.join()
    for number in range(3):
        await send(shop, session["visitorId"], message=f"Kabar {number}")
    lines = await read_lines(page, client, 1, 2)
    assert [line["content"]["text"] for line in lines] == ["Kabar 1", "Kabar 2"]
    waiting = asyncio.create_task(read_lines(page, client, 3, 1))
    await asyncio.sleep(0.2)
    await send(shop, session["visitorId"], message="Kabar 3")
    assert [line["number"] for line in await waiting] == [4]
    again = await page.join()
    assert [line["number"] for line in again["messages"]] == [1, 2, 3, 4]


async def test_what_a_message_offers_can_be_chosen_and_nothing_else(
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


async def test_a_key_of_nobody_is_404_and_a_session_of_another_company_401(
    page: Browser, client: httpx.AsyncClient, installation: Installation, database: Database
) -> None:
    await page.join()
    elsewhere = Browser(client, build_chat(installation, database, (await make_company(database)).test))
    theirs = await elsewhere.join()
    page.key, own_key = elsewhere.key, page.key
    for method, path, body in [
        ("POST", "messages", {"id": new_id(), "text": "Halo"}),
        ("GET", "messages", None),
        ("POST", "acks", {"read": [1]}),
        ("GET", "events", None),
        ("DELETE", "sessions", None),
    ]:
        answer = await page.call(method, path, body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "INVALID_SESSION")
    joined = await page.join()
    assert joined["visitorId"] != theirs["visitorId"]
    for key in ["", "hook_1_" + "a" * 43, own_key[:-1] + "x", "x" * 5000, "sbx_1_" + "0" * 32]:
        page.key = key
        for method, path in [("POST", "sessions"), ("POST", "messages"), ("GET", "events")]:
            answer = await page.call(method, path, {} if method == "POST" else None)
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("token", [None, "x", "a" * 43, "é" * 3, "x" * 10_000])
async def test_a_token_of_nobody_opens_nothing(page: Browser, token: str | None) -> None:
    headers = {} if token is None else {"authorization": f"Bearer {token}".encode()}
    answer = await page.call("GET", "messages", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "INVALID_SESSION")


async def test_an_ended_session_is_over(page: Browser) -> None:
    await page.join()
    assert (await page.call("DELETE", "sessions")).status_code == 204
    assert (await page.say("Halo")).status_code == 401


async def test_tokens_are_long_random_and_kept_as_hashes_only(
    page: Browser, client: httpx.AsyncClient, chat: Chat, database: Database, company: Environments
) -> None:
    await page.join()
    other = Browser(client, chat)
    await other.join()
    assert page.token is not None
    assert len({page.token, other.token}) == 2
    assert len(page.token) >= 43
    async with database.connection() as db:
        rows = await db.fetch("SELECT s::text FROM widget_sessions s WHERE company_id = $1", company.test)
    assert len(rows) == 2
    assert all(page.token not in row[0] for row in rows)


async def test_somebody_signed_in_is_the_same_on_every_device(
    page: Browser, client: httpx.AsyncClient, chat: Chat, database: Database, company: Environments
) -> None:
    email = f"ayu-{uuid4().hex[:8]}@example.com"
    ayu = {
        "id": "user-7", "name": "Ayu Lestari", "hash": chat.prove("user-7"),
        "email": email, "emailHash": chat.prove("user-7", email),
    }  # fmt: skip
    before = await page.join()
    await page.say("Sebelum masuk")
    anonymous = page.token
    session = await page.join(**ayu)
    assert (session["isIdentified"], session["visitorId"]) == (True, before["visitorId"])
    assert page.token != anonymous
    page.token, own = anonymous, page.token
    assert (await page.say("Dengan kunci lama")).status_code == 401
    page.token = own
    telephone = Browser(client, chat)
    assert (await telephone.join(**ayu))["visitorId"] == session["visitorId"]
    await telephone.say("Dari telepon")
    lines = (await page.join(**ayu))["messages"]
    assert [line["content"]["text"] for line in lines] == ["Sebelum masuk", "Dari telepon"]
    received = (await list_events(database, company.test, "message.received"))[-1]
    assert received["customerId"].startswith("cust_")


async def test_an_address_that_the_site_did_not_vouch_for_makes_nobody_a_customer(
    page: Browser, chat: Chat, database: Database, company: Environments
) -> None:
    await page.join(id="user-8", hash=chat.prove("user-8"), email="director@example.com")
    await page.say("Saya direktur")
    (received,) = await list_events(database, company.test, "message.received")
    assert received["customerId"] is None


@pytest.mark.parametrize("case", ["wrong", "of another", "of another secret", "empty", "address"])
async def test_a_visitor_with_a_wrong_hash_is_refused(page: Browser, chat: Chat, case: str) -> None:
    right, email = chat.prove("user-1"), "ayu@example.com"
    forged = Chat(chat.server, chat.key, "guessed")
    visitor = {
        "wrong": {"id": "user-1", "hash": "0" * 64},
        "of another": {"id": "user-2", "hash": right},
        "of another secret": {"id": "user-1", "hash": forged.prove("user-1")},
        "empty": {"id": "user-1", "hash": ""},
        "address": {"id": "user-1", "hash": right, "email": email, "emailHash": right},
    }[case]
    answer = await page.call("POST", "sessions", {"visitor": visitor})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "INVALID_HASH")


async def test_somebody_else_who_signs_in_gets_another_conversation(page: Browser, chat: Chat) -> None:
    first = await page.join(id="user-1", hash=chat.prove("user-1"))
    await page.say("Rahasia")
    second = await page.join(id="user-2", hash=chat.prove("user-2"))
    assert second["visitorId"] != first["visitorId"]
    assert second["messages"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"id": "p_" + "a" * 32}, 400),
        ({"id": "p_" + "a" * 32, "text": "   \n"}, 400),
        ({"id": "p_" + "a" * 32, "text": "a\0b"}, 400),
        ({"id": "p_" + "a" * 32, "text": "x" * (LONGEST_TEXT + 1)}, 400),
        ({"id": "short", "text": "Halo"}, 400),
        ({"id": str(uuid4()), "text": "Halo"}, 400),
        ({"id": "p_" + "a" * 32, "text": "Halo", "sender": "vis_x"}, 400),
        ({"id": "p_" + "a" * 32, "choice": {"number": 0, "id": "x"}}, 400),
        ({"id": "p_" + "a" * 32, "choice": {"number": 2**63, "id": "x"}}, 400),
        ({"id": "p_" + "a" * 32, "text": "x" * MOST_BYTES}, 413),
        ({"id": "p_" + "a" * 32, "text": "x" * LONGEST_TEXT}, 200),
        ({"id": "p_" + "a" * 32, "text": "👩‍🚀" * 500}, 200),
    ],
)
async def test_what_cannot_be_taken_is_refused_and_changes_nothing(
    page: Browser, database: Database, company: Environments, body: dict[str, Any], status: int
) -> None:
    await page.join()
    answer = await page.call("POST", "messages", body)
    assert answer.status_code == status, answer.text
    assert len(await list_events(database, company.test, "message.received")) == (status == 200)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b'{"id": "\\ud800"}', b"[" * 5000])
@pytest.mark.parametrize("path", ["sessions", "messages", "acks"])
async def test_broken_bodies_are_a_400(page: Browser, path: str, content: bytes) -> None:
    await page.join()
    headers = {"content-type": "application/json"}
    answer = await page.call("POST", path, headers=headers, content=content)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "VALIDATION_ERROR")


async def test_forms_are_refused_so_that_no_page_can_write_without_asking(page: Browser) -> None:
    await page.join()
    answer = await page.call("POST", "messages", headers={"content-type": "text/plain"}, content=b"{}")
    assert answer.status_code == 415


async def test_whoever_writes_too_fast_has_to_wait(page: Browser, client: httpx.AsyncClient, chat: Chat) -> None:
    await page.join()
    most = MOST_BY_VISITOR["message"]
    answers = await asyncio.gather(*(page.say(f"Halo {number}") for number in range(2 * most + 1)))
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {200, 429}
    assert most <= statuses.count(200) <= 2 * most  # the minute may turn meanwhile
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert int(refused.headers["retry-after"]) > 0
    assert refused.headers["access-control-allow-origin"] == "*"
    other = Browser(client, chat)
    await other.join()
    assert (await other.say("Saya orang lain")).status_code == 200


async def test_a_page_of_any_site_may_ask(page: Browser, client: httpx.AsyncClient) -> None:
    wanted = "authorization,content-type,last-event-id,x-widget-key"
    asked = {"origin": "https://shop.example", "access-control-request-method": "POST"}
    answer = await client.options("/widget/v1/messages", headers={**asked, "access-control-request-headers": wanted})
    allowed = answer.headers["access-control-allow-headers"]
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == "*"
    assert set(wanted.split(",")) <= set(allowed.split(", "))
    assert "access-control-allow-credentials" not in answer.headers
    joined = await page.call("POST", "sessions", {})
    assert joined.headers["access-control-allow-origin"] == "*"
    assert joined.headers["cache-control"] == "no-store"


async def test_a_wrong_method_is_a_405(page: Browser) -> None:
    answer = await page.call("PUT", "messages", {})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST, GET")


async def test_the_script_is_small_and_may_be_kept_for_a_while(client: httpx.AsyncClient) -> None:
    answer = await client.get("/widget/v1/widget.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert len(answer.content) <= 30 * 1024
    assert answer.content == read_script()[0]
    again = await client.get("/widget/v1/widget.js", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_nobody_is_written_to_who_was_never_there(shop: httpx.AsyncClient) -> None:
    body = {"to": "vis_01jc9y3q5me8w92v7x4t6r0n1k", "sources": "WIDGET", "message": "Halo"}
    answer = await shop.post("/messages/send", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "SEND_FAILED")


async def test_a_visitor_who_is_played_receives_reads_and_answers(shop: httpx.AsyncClient) -> None:
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


async def test_every_kind_of_send_is_shown_as_what_it_is(page: Browser, shop: httpx.AsyncClient) -> None:
    session = await page.join()
    visitor_id = session["visitorId"]
    name = f"promo_{uuid4().hex[:8]}"
    template = {
        "name": name, "language": "id", "source": "CRM", "category": "UTILITY",
        "body": "Halo {{1}}, pesanan {{2}} dikirim.",
    }  # fmt: skip
    made = await shop.post("/templates", json=template)
    assert made.status_code == 201, made.text
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


async def test_a_live_chat_is_connected_with_one_command_and_gone_with_another(
    installation: Installation, client: httpx.AsyncClient, company: Environments, chat: Chat, live: httpx.AsyncClient
) -> None:
    arguments = ["--company", str(company.live), "--source", "WIDGET", "--json"]
    site = "https://shop.example"
    made = sapa(installation.data, "channel", "connect", *arguments, "--set", f"origins={site}").json()
    key = made["snippet"].partition('data-key="')[2].partition('"')[0]
    secret = made["generated"]["secret"]
    assert secret not in sapa(installation.data, "channel", "list", "--company", str(company.live), "--json").out
    page = Browser(client, Chat(chat.server, key, secret))
    session = await page.join(id="user-1", hash=Chat(chat.server, key, secret).prove("user-1"))
    assert (await page.say("Halo")).status_code == 200
    reply = {"to": session["visitorId"], "sources": "WIDGET", "message": "Halo juga"}
    answer = await live.post("/messages/send", json=reply)
    assert (answer.status_code, answer.json()["data"]["status"]) == (200, "sent")
    assert [line["direction"] for line in (await page.join())["messages"]] == ["in", "out"]
    page.origin = "https://elsewhere.example"
    refused = await page.say("Dari situs lain")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "ORIGIN_NOT_ALLOWED")
    page.origin = site
    sapa(installation.data, "channel", "disconnect", *arguments).json()
    assert (await page.say("Halo?")).status_code == 404


async def test_the_snippet_of_a_test_environment_can_be_asked_for(
    installation: Installation, company: Environments, chat: Chat
) -> None:
    shown = sapa(installation.data, "channel", "snippet", "--company", str(company.test), "--json").json()
    assert (shown["key"], shown["secret"]) == (chat.key, chat.secret)
    assert f'data-key="{chat.key}"' in shown["snippet"]
    refused = sapa(installation.data, "channel", "snippet", "--company", str(company.live), "--json")
    assert "shown when the channel is connected" in refused.sentence()


NOW = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)
PLAYED: list[PlayedStatus | PlayedMessage] = [
    PlayedStatus("read", "sim_happy.1", NOW, "0199a1f0-7c3e-7d52-9b1a-4e6f2c8d0a35"),
    PlayedMessage("sim_happy.2", "sim_happy", NOW, "Halo"),
]


def test_a_signed_callback_is_read_whole() -> None:
    status, message = Widget().read_callback({}, {"secret": "s"}, *calls.build_callback("s", PLAYED))
    assert isinstance(status, StatusReport)
    assert (status.status, status.message_id, status.reference, status.at) == (
        "read", "sim_happy.1", "0199a1f0-7c3e-7d52-9b1a-4e6f2c8d0a35", NOW,
    )  # fmt: skip
    assert isinstance(message, Inbound)
    assert (message.body, message.sender[0].value) == ("Halo", "sim_happy")


@pytest.mark.parametrize("signature", ["", "0" * 64, "as for a visitor", "of another secret"])
async def test_a_callback_with_another_signature_is_refused(
    client: httpx.AsyncClient, chat: Chat, database: Database, company: Environments, signature: str
) -> None:
    headers, body = calls.build_callback(chat.secret, PLAYED)
    forged = {
        "as for a visitor": chat.prove(body.decode()),
        "of another secret": calls.build_signature("guessed", body),
    }.get(signature, signature)
    with pytest.raises(Unsigned):
        Widget().read_callback({}, {"secret": chat.secret}, headers | {calls.SIGNATURE: forged}, body)
    answer = await client.post(f"/hooks/channels/{chat.key}", headers=headers | {calls.SIGNATURE: forged}, content=body)
    assert answer.status_code == 401
    assert await list_events(database, company.test, "message.received") == []


async def test_who_does_not_come_back_is_forgotten_but_no_conversation_is(
    page: Browser, client: httpx.AsyncClient, chat: Chat, database: Database, company: Environments
) -> None:
    silent = Browser(client, chat)
    await silent.join()
    await page.join()
    await page.say("Halo")

    async def count() -> list[int]:
        async with database.connection() as db:
            return [
                await db.fetchval(f"SELECT count(*) FROM {table} WHERE company_id = $1", company.test)
                for table in ("widget_sessions", "widget_visitors", "widget_lines")
            ]

    await forget_old(database)
    assert await count() == [2, 2, 1]
    async with database.transaction() as tx:
        for table, column in (("widget_sessions", "used_at"), ("widget_visitors", "seen_at")):
            await tx.execute(
                f"UPDATE {table} SET {column} = now() - make_interval(days => $2) WHERE company_id = $1",
                company.test, SESSION_DAYS,
            )  # fmt: skip
    assert (await page.say("Halo?")).status_code == 401
    await forget_old(database)
    assert await count() == [0, 1, 1]


async def test_open_pages_do_not_hold_up_the_end_of_a_server(tmp_path: Path) -> None:
    installation = start_installation(tmp_path / "data")
    try:
        async with (
            open_database(installation.server.app_url) as database,
            httpx.AsyncClient(base_url=installation.address, timeout=60) as client,
        ):
            page = Browser(client, build_chat(installation, database, (await make_company(database)).test))
            await page.join()
            headers = {"x-widget-key": page.key, "authorization": f"Bearer {page.token}"}
            async with client.stream("GET", "/widget/v1/events", headers=headers) as answer:
                text = answer.aiter_text()
                assert await anext(text) == ": ready\n\n"
                stopping = asyncio.create_task(asyncio.to_thread(stop_installation, installation))
                assert [part async for part in text] == []
                assert await stopping == 0
    finally:
        if installation.process.poll() is None:
            stop_installation(installation)
    assert "refused to gracefully stop" not in installation.log.read_text()
