"""Sessions, verified visitors, and access to one's own conversation only."""

import asyncio
from uuid import uuid4

import httpx
import pytest

from sapa.db.pool import Database
from sapa.messaging.widget.jobs import purge_old
from sapa.messaging.widget.visits import SESSION_DAYS
from tests.conftest import Installation
from tests.db.scratch import connect
from tests.factories import Environments, make_company
from tests.http.wire import eventually
from tests.messaging.conversation_steps import list_events
from tests.messaging.shop_site import (
    Browser,
    Chat,
    build_chat,
    new_id,
)


async def test_an_unknown_key_is_404_and_a_session_of_another_company_401(
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
async def test_an_unknown_token_is_refused(page: Browser, token: str | None) -> None:
    headers = {} if token is None else {"authorization": f"Bearer {token}".encode()}
    answer = await page.call("GET", "messages", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "INVALID_SESSION")


async def test_an_ended_session_is_over(page: Browser) -> None:
    await page.join()
    assert (await page.call("DELETE", "sessions")).status_code == 204
    assert (await page.send("Halo")).status_code == 401


async def test_tokens_are_long_random_and_stored_as_hashes_only(
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


async def test_a_verified_visitor_is_the_same_on_every_device(
    page: Browser, client: httpx.AsyncClient, chat: Chat, database: Database, company: Environments
) -> None:
    email = f"ayu-{uuid4().hex[:8]}@example.com"
    ayu = {
        "id": "user-7", "name": "Ayu Lestari", "hash": chat.prove("user-7"),
        "email": email, "emailHash": chat.prove("user-7", email),
    }  # fmt: skip
    before = await page.join()
    await page.send("Sebelum masuk")
    anonymous = page.token
    session = await page.join(**ayu)
    assert (session["isIdentified"], session["visitorId"]) == (True, before["visitorId"])
    assert page.token != anonymous
    page.token, own = anonymous, page.token
    assert (await page.send("Dengan kunci lama")).status_code == 401
    page.token = own
    telephone = Browser(client, chat)
    assert (await telephone.join(**ayu))["visitorId"] == session["visitorId"]
    await telephone.send("Dari telepon")
    lines = (await page.join(**ayu))["messages"]
    assert [line["content"]["text"] for line in lines] == ["Sebelum masuk", "Dari telepon"]
    received = (await list_events(database, company.test, "message.received"))[-1]
    assert received["customerId"].startswith("cust_")


@pytest.mark.one_server("looks for waiting locks, which are on the machine that has the rows")
async def test_pages_of_a_new_visitor_that_sign_in_at_once_get_one_conversation(
    client: httpx.AsyncClient, chat: Chat, installation: Installation, database: Database
) -> None:
    """Each page has a session of its own. All of them look the visitor up before any creates it."""
    pages = [Browser(client, chat) for _ in range(3)]
    for page in pages:
        await page.join()
    async with connect(installation.server.owner_url) as owner:
        async with owner.transaction():
            await owner.execute("LOCK TABLE widget_visitors IN SHARE MODE")
            calls = [asyncio.create_task(page.join(id="user-9", hash=chat.prove("user-9"))) for page in pages]
            await eventually(lambda: are_waiting(database, len(pages)))
        sessions = await asyncio.gather(*calls)
    assert len({session["visitorId"] for session in sessions}) == 1


async def are_waiting(database: Database, many: int) -> bool | None:
    async with database.connection() as db:
        waiting = await db.fetchval(
            "SELECT count(*) FROM pg_locks WHERE relation = 'widget_visitors'::regclass AND NOT granted"
        )
    return waiting >= many or None


async def test_an_unverified_address_creates_no_customer(
    page: Browser, chat: Chat, database: Database, company: Environments
) -> None:
    await page.join(id="user-8", hash=chat.prove("user-8"), email="director@example.com")
    await page.send("Saya direktur")
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


async def test_another_visitor_who_signs_in_gets_another_conversation(page: Browser, chat: Chat) -> None:
    first = await page.join(id="user-1", hash=chat.prove("user-1"))
    await page.send("Rahasia")
    second = await page.join(id="user-2", hash=chat.prove("user-2"))
    assert second["visitorId"] != first["visitorId"]
    assert second["messages"] == []


async def test_unused_visitors_are_purged_but_no_conversation_is(
    page: Browser, client: httpx.AsyncClient, chat: Chat, database: Database, company: Environments
) -> None:
    silent = Browser(client, chat)
    await silent.join()
    await page.join()
    await page.send("Halo")

    async def count() -> list[int]:
        async with database.connection() as db:
            return [
                await db.fetchval(f"SELECT count(*) FROM {table} WHERE company_id = $1", company.test)
                for table in ("widget_sessions", "widget_visitors", "widget_lines")
            ]

    await purge_old(database)
    assert await count() == [2, 2, 1]
    async with database.transaction() as tx:
        for table, column in (("widget_sessions", "used_at"), ("widget_visitors", "seen_at")):
            await tx.execute(
                f"UPDATE {table} SET {column} = now() - make_interval(days => $2) WHERE company_id = $1",
                company.test, SESSION_DAYS,
            )  # fmt: skip
    assert (await page.send("Halo?")).status_code == 401
    await purge_old(database)
    assert await count() == [0, 1, 1]
