"""Races around a send in flight: nothing is lost, nothing is duplicated."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import pytest

from sapa.access.actions import get_company, read_clock
from sapa.context import AppContext
from sapa.customers import actions as customers
from sapa.customers.types import CustomerIn
from sapa.db.pool import Database
from sapa.messaging.channels.interface import Identity, SendReceipt, Source
from sapa.messaging.connections import actions as connections
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.messages import actions as messages
from sapa.messaging.messages.queries import insert_message
from sapa.messaging.messages.types import MESSAGE_ID, NewMessage
from sapa.messaging.sending.pacing import reserve_slot
from sapa.sandbox.channels import social, tiktok
from sapa.sandbox.channels.accounts import SandboxAccount, build_account
from sapa.sandbox.channels.scripts import ScriptStep
from sapa.sandbox.channels.simulator import AcceptedMessage, Post
from sapa.settings import read_settings
from sapa.startup import build_context
from tests.conftest import TLS, Installation
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.conversation_steps import (
    list_events,
    list_inbound,
    read_outbox,
    wait_for_inbound,
)
from tests.messaging.provider import NUMBER_SENT, open_live
from tests.messaging.send_steps import (
    BUTTONS,
    await_message,
    build_message,
    send,
)
from tests.messaging.whatsapp_account import OURS, build_change, build_text, connect_whatsapp

SILENT = "sim_broken"
"""A recipient without reports, except those that a test sends."""
WAIT_SECONDS = 5.0


@pytest.fixture
async def context(installation: Installation, database: Database) -> AsyncIterator[AppContext]:
    created = build_context(read_settings({"SAPA_SECRET_KEY": installation.server.secret_key}), database)
    yield created
    await created.close()


async def call_back(installation: Installation, account: SandboxAccount, post: Post | None) -> None:
    assert post is not None
    async with httpx.AsyncClient(verify=TLS, timeout=120) as client:
        answer = await client.post(installation.address + account.hook, content=post.body, headers=post.headers)
    assert answer.status_code == 200, answer.text


async def test_a_watermark_that_comes_before_our_call_is_answered_is_not_lost(
    installation: Installation,
    context: AppContext,
    sandbox: httpx.AsyncClient,
    database: Database,
    company: Environments,
) -> None:
    sent = await send(sandbox, 202, to=SILENT, sources="SOCIAL_NETWORK")
    account, at = build_account(context, company.test, Source.SOCIAL_NETWORK), datetime.now(UTC) + timedelta(seconds=1)
    await call_back(
        installation,
        account,
        social.build_callback(AcceptedMessage(account, SILENT, "", at), ScriptStep(0, "read"), at, {}),
    )

    async def is_put_off() -> bool | None:
        async with database.connection() as db:
            times = await db.fetchval(
                "SELECT max(postponements) FROM channel_callbacks WHERE company_id = $1", company.test
            )
        return bool(times) or None

    await eventually(is_put_off)
    async with database.transaction() as tx:
        owner = await get_company(tx, company.test)
        now = (await read_clock(tx, owner.id)).now
        await messages.accept(tx, owner, Source.SOCIAL_NETWORK, sent["messageId2"], SendReceipt("m_1"), now)
    seen = await await_message(sandbox, sent["messageId2"], lambda message: message["readAt"])
    assert (seen["status"], seen["messageId"]) == ("read", "m_1")


async def test_an_echo_settles_buttons_that_went_out_as_text(
    installation: Installation,
    context: AppContext,
    sandbox: httpx.AsyncClient,
    database: Database,
    company: Environments,
) -> None:
    """The channel returns no reference of ours: the text identifies the message."""
    body = {"to": SILENT, "sources": "SHORT_VIDEO", "interactive": BUTTONS}
    answer = await sandbox.post("/messages/send-interactive", json=body)
    assert answer.status_code == 202, answer.text
    text = json.loads((await read_outbox(sandbox))[0]["body"])["text"]
    assert text["body"] != BUTTONS["body"]
    account, at = build_account(context, company.test, Source.SHORT_VIDEO), datetime.now(UTC)
    taken, content = AcceptedMessage(account, SILENT, "t_1", at), {"type": "text", "text": text}
    await call_back(installation, account, tiktok.build_callback(taken, ScriptStep(0, "sent"), at, content))
    id = answer.json()["data"]["messageId2"]
    message = await await_message(sandbox, id, lambda message: message["sentAt"])
    assert (message["status"], message["messageId"], message["error"]) == ("sent", "t_1", None)
    assert await list_inbound(database, company.test) == []


async def test_nothing_is_sent_over_a_channel_that_is_disconnected_while_it_waits_for_its_turn(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with open_live(installation, database, company.live) as live:
        await live.hook.send_change(build_change(build_text("628123456789", at=int(time.time()))))
        await wait_for_inbound(database, company.live)
        async with database.connection() as db:
            owner = await get_company(db, company.live)
            await reserve_slot(db, company.live, live.hook.connection_id, WAIT_SECONDS)
        before = await find_free_place(database, company)
        call = asyncio.create_task(live.post("/messages/send", **build_message()))

        async def is_waiting() -> bool | None:
            return await find_free_place(database, company) != before or None

        await eventually(is_waiting)
        async with database.transaction() as tx:
            await connections.disconnect(tx, owner, Source.MSGAPP_CLOUD)
        answer = await call
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "CHANNEL_NOT_CONNECTED"), answer.text
        assert live.peer.requests == []


async def test_a_recipient_who_becomes_a_customer_while_a_message_waits_for_its_turn_is_named(
    installation: Installation, database: Database, company: Environments
) -> None:
    recipient = "+628123456789"
    async with open_live(installation, database, company.live) as live:
        live.peer.answers = [(200, NUMBER_SENT)]
        async with database.transaction() as tx:
            owner, now = await get_company(tx, company.live), (await read_clock(tx, company.live)).now
            contact = await contacts.find_or_create_contact(tx, owner, [Identity("phone", recipient)], "Budi")
            await contacts.record_inbound(tx, owner, live.hook.connection_id, contact.id, now, MESSAGE_ID.new())
            await reserve_slot(tx, company.live, live.hook.connection_id, WAIT_SECONDS)
        before = await find_free_place(database, company)
        call = asyncio.create_task(live.post("/messages/send", **build_message(to=recipient)))

        async def is_waiting() -> bool:
            return bool(await find_free_place(database, company) != before)

        await eventually(is_waiting)
        async with database.transaction() as tx:
            customer = await customers.find_or_create(tx, owner, CustomerIn(first_name="Budi", phone_number=recipient))
        sent = (await call).json()["data"]
        assert sent["customerId"] == customer.id


async def test_an_upgraded_number_sends_faster(
    installation: Installation, database: Database, company: Environments
) -> None:
    """The distance to the next message is read while the first one waits: then it does not depend on the clock."""
    async with open_live(installation, database, company.live) as live:
        live.peer.answers = [(200, NUMBER_SENT)]
        await live.hook.send_change(build_change(build_text("628123456789", at=int(time.time()))))
        await wait_for_inbound(database, company.live)

        async def measure_gap() -> float:
            free_at = "SELECT extract(epoch FROM free_at) FROM channel_paces WHERE company_id = $1"
            async with database.connection() as db:
                await reserve_slot(db, company.live, live.hook.connection_id, 1.0)
                before = await db.fetchval(free_at, company.live)
            sent = await live.post("/messages/send", **build_message())
            assert sent.json()["data"]["status"] == "sent", sent.text
            async with database.connection() as db:
                return float(await db.fetchval(free_at, company.live) - before)

        assert await measure_gap() == 1 / 80
        upgrade = {"display_phone_number": OURS, "event": "THROUGHPUT_UPGRADE"}
        await live.hook.send_change(upgrade, field="phone_number_quality_update")

        async def is_upgraded() -> bool:
            async with database.connection() as db:
                statuses = await db.fetch("SELECT throughput FROM channel_statuses WHERE company_id = $1", company.live)
            return [status["throughput"] for status in statuses] == ["HIGH"]

        await eventually(is_upgraded)
        assert await measure_gap() == 1 / 1_000


@pytest.mark.one_server("looks for waiting locks, which are on the machine that has the rows")
async def test_an_echo_that_is_stored_at_the_same_time_does_no_harm(
    installation: Installation, database: Database, company: Environments
) -> None:
    """The channel's id of the message is stored for another message before our outcome is."""
    async with open_live(installation, database, company.live) as live:
        live.peer.answers = [(200, NUMBER_SENT)]
        await live.hook.send_change(build_change(build_text("628123456789", at=int(time.time()))))
        await wait_for_inbound(database, company.live)
        echo = NewMessage(
            id=MESSAGE_ID.new(), direction="out", source="MSGAPP_CLOUD", connection_id=live.hook.connection_id,
            identity_kind="phone", identity="+628123456789", client_number="+628123456789", connected_number="+62",
            provider_id=NUMBER_SENT["messages"][0]["id"], type="text", body="Lain", feature_source="BUSINESS_APP",
            status="delivered", created_at=datetime.now(UTC),
        )  # fmt: skip
        async with database.transaction() as tx:
            await insert_message(tx, company.live, echo)
            call = asyncio.create_task(live.post("/messages/send", **build_message()))
            await eventually(partial(is_in_the_way, database, await tx.fetchval("SELECT pg_backend_pid()")))
        answer = await call
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "sent"), answer.text
        assert len(live.peer.requests) == 1


async def is_in_the_way(database: Database, pid: int) -> bool | None:
    """Whether another session waits for a lock of this connection."""
    blocked = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid)))"
    async with database.connection() as db:
        return await db.fetchval(blocked, pid) or None


async def find_free_place(database: Database, company: Environments) -> Any:
    async with database.connection() as db:
        return await db.fetchval("SELECT free_at FROM channel_paces WHERE company_id = $1", company.live)


async def test_a_message_that_comes_in_late_closes_no_window(
    installation: Installation, database: Database, company: Environments
) -> None:
    hook, now = connect_whatsapp(installation, company.live), int(time.time())
    await hook.send_change(build_change(build_text("628123456789", at=now)))
    await wait_for_inbound(database, company.live)
    await hook.send_change(build_change(build_text("628123456789", "Terlambat", at=now - 7200)))
    await wait_for_inbound(database, company.live, 2)
    received = await list_events(database, company.live, "message.received")
    assert [message["body"] for message in received] == ["Halo", "Terlambat"]
    closes = datetime.fromtimestamp(now, UTC) + timedelta(hours=24)
    assert [datetime.fromisoformat(message["window"]["closesAt"]) for message in received] == [closes, closes]
