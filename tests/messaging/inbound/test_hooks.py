"""Callbacks of channels: admitted by their signature, stored raw, processed once."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.messaging.inbound import hooks as callbacks
from sapa.messaging.inbound.jobs import CallbackProcessor
from sapa.messaging.inbound.queries import CallbackLane
from sapa.settings import read_settings
from sapa.startup import build_context
from tests.cli.command import sapa
from tests.conftest import TLS, Installation
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.conversation_steps import get_message, list_inbound, wait_for_inbound
from tests.messaging.whatsapp_account import (
    WORD,
    WhatsAppHook,
    build_body,
    build_change,
    build_text,
    connect_whatsapp,
    sign,
)

COUNT = "SELECT count(*) FROM channel_callbacks WHERE company_id = $1"
STATUSES = "SELECT status, position, tries, error FROM channel_callbacks WHERE company_id = $1 ORDER BY id"
AGE = """
    UPDATE channel_callbacks SET received_at = now() - make_interval(days => $3) WHERE company_id = $1 AND id = $2"""
IDS = "SELECT id FROM channel_callbacks WHERE company_id = $1 ORDER BY id"
EVENTS = "SELECT count(*) FROM events WHERE company_id = $1 AND kind = 'message.received'"


@pytest.fixture
def hook(installation: Installation, company: Environments) -> WhatsAppHook:
    return connect_whatsapp(installation, company.live)


async def count(database: Database, statement: str, company: Environments) -> int:
    async with database.connection() as db:
        number: int = await db.fetchval(statement, company.live)
        return number


async def wait_until_processed(database: Database, company: Environments, callbacks: int) -> list[Any]:
    """The callbacks, once all of them are processed."""

    async def look() -> list[Any] | None:
        async with database.connection() as db:
            rows = await db.fetch(STATUSES, company.live)
        return rows if len(rows) == callbacks and all(row["status"] != "waiting" for row in rows) else None

    return await eventually(look)


async def test_the_channel_gets_its_challenge(hook: WhatsAppHook) -> None:
    query = {"hub.mode": "subscribe", "hub.verify_token": WORD, "hub.challenge": "1158201444"}
    async with httpx.AsyncClient(verify=TLS, timeout=120) as client:
        answer = await client.get(hook.address, params=query)
        assert (answer.status_code, answer.text) == (200, "1158201444")
        assert answer.headers["content-type"].startswith("text/plain")
        wrong = await client.get(hook.address, params={**query, "hub.verify_token": "guess"})
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (403, "INVALID_VERIFY_TOKEN")


@pytest.mark.parametrize("signature", ["", "sha256=", "sha256=" + "0" * 64, sign(b"another body")])
async def test_a_wrong_signature_is_refused_and_changes_nothing(
    hook: WhatsAppHook, database: Database, company: Environments, signature: str
) -> None:
    answer = await hook.post(build_body(build_change(build_text("628123456789"))), signature)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "INVALID_SIGNATURE")
    assert await count(database, COUNT, company) == 0


async def test_a_guessed_address_is_not_found(hook: WhatsAppHook, company: Environments) -> None:
    body = build_body(build_change(build_text("628123456789")))
    for token in ("x", f"hook_{company.live}_" + "A" * 43, f"sbx_{company.test}_" + "0" * 32):
        elsewhere = WhatsAppHook(hook.address.rpartition("/")[0] + "/" + token, "")
        assert (await elsewhere.post(body)).status_code == 404


@pytest.mark.parametrize(
    ("method", "status", "code"),
    [
        ("OPTIONS", 405, "METHOD_NOT_ALLOWED"),
        ("DELETE", 405, "METHOD_NOT_ALLOWED"),
        ("GET", 403, "INVALID_VERIFY_TOKEN"),
    ],
)
async def test_what_is_no_callback_gets_an_error_with_the_id_of_its_request(
    hook: WhatsAppHook, method: str, status: int, code: str
) -> None:
    async with httpx.AsyncClient(verify=TLS, timeout=120) as client:
        answer = await client.request(method, hook.address)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert answer.headers["x-request-id"].startswith("req_")
        assert answer.headers["content-type"] == "application/json"
        assert ("POST" in answer.headers.get("allow", "")) == (status == 405)
        head = await client.head(hook.address)
        assert (head.status_code, head.content) == (405, b"")


async def test_a_callback_is_stored_and_answered_before_it_is_processed(
    hook: WhatsAppHook, database: Database, company: Environments
) -> None:
    body = build_body(build_change(build_text("628123456789", "Halo ☕")))
    assert (await hook.post(body)).status_code == 200
    async with database.connection() as db:
        assert await db.fetchval("SELECT body FROM channel_callbacks WHERE company_id = $1", company.live) == body
    (message,) = await wait_for_inbound(database, company.live)
    assert (message["body"], message["client_number"]) == ("Halo ☕", "+628123456789")


async def test_a_callback_does_not_wait_for_those_before_it_to_be_processed(
    hook: WhatsAppHook, database: Database, company: Environments
) -> None:
    first, second = (build_body(build_change(build_text("628123456789", f"wamid.{n}"))) for n in "ab")
    assert (await hook.post(first)).status_code == 200
    await wait_until_processed(database, company, 1)
    async with database.transaction() as tx:  # as a worker's
        await tx.execute("UPDATE channel_lanes SET leased_until = now() WHERE company_id = $1", company.live)
        assert (await asyncio.wait_for(hook.post(second), 60)).status_code == 200
    await wait_until_processed(database, company, 2)


async def test_every_item_of_every_array_is_processed(
    hook: WhatsAppHook, database: Database, company: Environments
) -> None:
    people = [f"6281234567{number:02d}" for number in range(12)]
    values = [build_change(*(build_text(number) for number in people[start : start + 3])) for start in range(0, 12, 3)]
    await hook.send_change(*values)
    messages = await wait_for_inbound(database, company.live, 12)
    assert {message["client_number"] for message in messages} == {f"+{number}" for number in people}


async def test_a_long_history_is_processed_in_parts_without_events(
    installation: Installation, database: Database, company: Environments
) -> None:
    phone = connect_whatsapp(installation, company.live, "MSGAPP_COEX")
    messages = [build_text("628123456789", str(number), at=1_700_000_000 + number) for number in range(250)]
    history = {"history": [{"metadata": {"phase": 0}, "threads": [{"id": "628123456789", "messages": messages}]}]}
    await phone.send_change(history, field="history")
    found = await wait_for_inbound(database, company.live, 250)
    assert [message["body"] for message in found] == [str(number) for number in range(250)]
    assert {message["feature_source"] for message in found} == {"IMPORT"}
    assert await count(database, EVENTS, company) == 0
    (row,) = await wait_until_processed(database, company, 1)
    assert (row["status"], row["position"]) == ("done", 250)
    assert row["tries"] == 1, "it is parsed once, however many transactions it takes"


async def test_the_same_callback_again_changes_nothing(
    hook: WhatsAppHook, database: Database, company: Environments
) -> None:
    message = build_text("628123456789")
    body = build_body(build_change(message))
    for _ in range(3):
        assert (await hook.post(body)).status_code == 200
    await hook.send_change(build_change(message, build_text("628123456789", "Kedua")))
    await wait_until_processed(database, company, 2)
    assert [each["body"] for each in await list_inbound(database, company.live)] == ["Halo", "Kedua"]
    assert await count(database, EVENTS, company) == 2


async def test_two_workers_process_each_item_once_and_in_order(
    installation: Installation, hook: WhatsAppHook, database: Database, company: Environments
) -> None:
    """Three more workers that poll constantly, besides the installation's own."""
    contexts = [open_context(installation, database) for _ in range(3)]
    lane = CallbackLane(company.live, hook.connection_id)
    is_over = asyncio.Event()

    async def hurry(context: AppContext) -> None:
        processor = CallbackProcessor(context)
        while not is_over.is_set():
            await processor.advance(lane)
            await asyncio.sleep(0.005)
        await processor.close()

    rush = asyncio.gather(*map(hurry, contexts))
    try:
        for number in range(20):
            await hook.send_change(build_change(build_text("628123456789", str(number), at=1_700_000_000 + number)))
        await wait_until_processed(database, company, 20)
    finally:
        is_over.set()
        await rush
        for context in contexts:
            await context.close()
    assert [each["body"] for each in await list_inbound(database, company.live)] == [str(n) for n in range(20)]
    assert await count(database, EVENTS, company) == 20
    async with database.connection() as db:
        order = "SELECT body FROM events WHERE company_id = $1 AND kind = 'message.received' ORDER BY created_at, id"
        bodies = [json.loads(row["body"])["body"] for row in await db.fetch(order, company.live)]
    assert bodies == [str(n) for n in range(20)]


def open_context(installation: Installation, database: Database) -> AppContext:
    return build_context(read_settings({"SAPA_SECRET_KEY": installation.server.secret_key}), database)


async def test_a_replay_changes_nothing_more(
    installation: Installation, hook: WhatsAppHook, database: Database, company: Environments
) -> None:
    await hook.send_change(build_change(build_text("628123456789")))
    await wait_until_processed(database, company, 1)
    before = await list_inbound(database, company.live)
    where = ["--company", str(company.live), "--source", "MSGAPP_CLOUD"]
    outcome = sapa(installation.data, "channel", "replay", *where, "--json")
    assert outcome.json() == {"source": "MSGAPP_CLOUD", "replayed": 1}
    await wait_until_processed(database, company, 1)
    assert await list_inbound(database, company.live) == before
    assert await count(database, EVENTS, company) == 1


async def test_callbacks_are_purged_after_a_month_and_never_before_they_are_processed(
    hook: WhatsAppHook, database: Database, company: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A postponed callback does not block others."""
    monkeypatch.setattr(callbacks, "_BATCH", 1)
    for body in ("waiting", "old", "young"):
        await hook.send_change(build_change(build_text("628123456789", body)))
    await wait_until_processed(database, company, 3)
    async with database.connection() as db:
        ids = [row[0] for row in await db.fetch(IDS, company.live)]
        for id, days in zip(ids, (40, 31, 29), strict=True):
            await db.execute(AGE, company.live, id, days)
        await db.execute(
            "UPDATE channel_callbacks SET status = 'waiting', due_at = now() + interval '1 day' WHERE id = $1", ids[0]
        )
    await callbacks.purge_old(database)
    async with database.connection() as db:
        assert [row[0] for row in await db.fetch(IDS, company.live)] == [ids[0], ids[2]]


async def test_an_unsupported_message_is_stored(hook: WhatsAppHook, database: Database, company: Environments) -> None:
    await hook.send_change({"new_things": [{"id": "1"}]}, field="things_of_tomorrow")
    (row,) = await wait_until_processed(database, company, 1)
    assert (row["status"], row["error"]) == ("done", None)
    unknown = build_text("628123456789", type="hologram", hologram={"depth": 3})
    await hook.send_change(build_change(unknown))
    (message,) = await wait_for_inbound(database, company.live)
    assert message["type"] == "unsupported"


async def test_a_report_that_comes_before_its_message_waits_for_it(
    hook: WhatsAppHook, live: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """The channel is faster than our own call: the message's id is stored only afterwards."""
    echo = build_text("622150001234", "Dari telepon", id="wamid.early", at=1_700_000_000, to="628123456789")
    status = {"id": "wamid.early", "status": "read", "timestamp": "1700000005", "recipient_id": "628123456789"}
    await hook.send_change({"statuses": [status]})
    await hook.send_change({"message_echoes": [echo]}, field="smb_message_echoes")
    (message,) = await wait_for_inbound(database, company.live)

    async def look() -> bool | None:
        return (await get_message(live, message["id"]))["status"] == "read" or None

    await eventually(look)


async def test_a_report_of_an_unknown_message_is_dropped_in_the_end(
    hook: WhatsAppHook, database: Database, company: Environments
) -> None:
    """It does not block others meanwhile."""
    await hook.send_change({"statuses": [{"id": "wamid.theirs", "status": "sent", "timestamp": "1700000000"}]})
    await hook.send_change(build_change(build_text("628123456789")))
    assert await wait_for_inbound(database, company.live)
