"""The states of a ticket: its owner, and when it is opened, resolved and reopened."""

import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.support import queries
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_company, make_key
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.conversation_steps import simulate_inbound, wait_for_inbound
from tests.messaging.inbound.test_actions import SENDERS
from tests.messaging.whatsapp_account import build_change, build_text, connect_whatsapp
from tests.support.ticket_steps import NUMBER, Desk, Json

EVENTS = "SELECT kind, body FROM events WHERE company_id = $1 AND kind LIKE 'ticket.%' ORDER BY created_at, id"
RECEIVED = "SELECT body FROM events WHERE company_id = $1 AND kind = 'message.received'"
HOUR = 3600


async def list_events(database: Database, company_id: int) -> list[str]:
    async with database.connection() as db:
        return [row["kind"] for row in await db.fetch(EVENTS, company_id)]


async def test_events_stand_in_the_document_of_messaging(installation: Installation) -> None:
    async with httpx.AsyncClient(base_url=f"{installation.address}/messaging/v1", verify=TLS, timeout=120) as client:
        document = (await client.get("/openapi.json")).json()
    assert {"ticket.opened", "ticket.updated", "ticket.resolved"} <= document["webhooks"].keys()


@pytest.mark.smoke
async def test_a_ticket_s_life(desk: Desk, database: Database, company: Environments) -> None:
    sari, budi = await desk.create_agent(), await desk.create_agent("Budi")
    ticket = await desk.receive("Masih ada?")
    assert (ticket["status"], ticket["agentId"], ticket["cycle"], ticket["source"]) == ("open", None, 1, "MSGAPP_CLOUD")
    assert (ticket["lastMessage"], ticket["clientNumber"]) == ("Masih ada?", NUMBER)
    async with database.connection() as db:
        assert f'"ticketId":"{ticket["id"]}"'.encode() in await db.fetchval(RECEIVED, company.test)
    assert (await desk.receive("Halo?"))["id"] == ticket["id"]
    assigned = await desk.act(ticket, "assign", agentId=sari)
    assert (assigned["status"], assigned["agentId"], assigned["aiPaused"]) == ("assigned", sari, True)
    assert await desk.act(ticket, "assign", agentId=sari) == assigned
    assert (await desk.act(ticket, "handover", agentId=budi))["agentId"] == budi
    note = await desk.act(ticket, "notes", 201, agentId=sari, body="Pelanggan VIP")
    assert (await desk.act(ticket, "handover"))["status"] == "open"
    await desk.reply(ticket, sari)
    resolved = await desk.act(ticket, "resolve", agentId=sari)
    assert (resolved["status"], resolved["resolvedReason"], resolved["agentId"]) == ("resolved", "manual", sari)
    assert await desk.act(ticket, "resolve") == resolved
    assert (await desk.act(ticket, "assign", 409, agentId=budi))["code"] == "TICKET_RESOLVED"
    await desk.reply(ticket, sari, "Terima kasih!")
    assert (await desk.look(ticket))["status"] == "resolved"
    reopened = await desk.act(ticket, "reopen")
    assert (reopened["status"], reopened["cycle"], reopened["resolvedAt"]) == ("assigned", 2, None)
    seen = await desk.look(ticket)
    assert seen["notes"] == [note]
    assert [event["kind"] for event in seen["events"]] == [
        "opened", "assigned", "handover", "handover", "assigned", "resolved", "reopened",
    ]  # fmt: skip
    assert [message["body"] for message in seen["messages"]] == ["Masih ada?", "Halo?", "Masih.", "Terima kasih!"]
    assert {message["ticketId"] for message in seen["messages"]} == {ticket["id"]}
    assert seen["agent"]["name"] == "Sari"
    assert await list_events(database, company.test) == [
        "ticket.opened", *["ticket.updated"] * 4, "ticket.resolved", "ticket.updated",
    ]  # fmt: skip
    assert await desk.list_timeline(seen["customerId"]) == [
        "ticket_opened", *["ticket_assigned"] * 4, "ticket_answered", "ticket_resolved", "ticket_reopened",
    ]  # fmt: skip


async def test_messages_are_paged_backwards(desk: Desk) -> None:
    sari = await desk.create_agent()
    ticket = await desk.receive("0")
    for n in range(1, 5):
        await desk.reply(ticket, sari, str(n))
    newest = await desk.get(f"/tickets/{ticket['id']}", limit=2)
    assert [message["body"] for message in newest["messages"]] == ["3", "4"]
    rest = await desk.get(f"/tickets/{ticket['id']}", limit=3, before=newest["earlier"])
    assert ([message["body"] for message in rest["messages"]], rest["earlier"]) == (["0", "1", "2"], None)
    for wrong in ("x", "0199a1f0-7c3e-7d52-9b1a-4e6f2c8d0a35"):
        answer = await desk.client.get(f"/tickets/{ticket['id']}", params={"before": wrong})
        assert answer.json()["error"]["details"][0]["field"] == "before"


async def test_lists(desk: Desk) -> None:
    sari = await desk.create_agent()
    chat = await desk.receive(sender="+628111111111")
    mail = await desk.receive(sender="ayu@example.com", source="MAIL")
    phone = await desk.receive(sender="+628111111111", source="MSGAPP_COEX")
    await desk.reply(mail, sari)
    await desk.act(phone, "resolve")
    cases: list[tuple[dict[str, Any], list[Any]]] = [
        ({}, [phone, mail, chat]),
        ({"status": "open"}, [chat]),
        ({"status": "resolved", "channel": "msgapp"}, [phone]),
        ({"channel": "msgapp"}, [phone, chat]),
        ({"channel": "msgapp_cloud_api"}, [chat]),
        ({"channel": "MSGAPP_CLOUD"}, [chat]),
        ({"channel": "mail", "agentId": sari}, [mail]),
        ({"agentId": sari}, [mail]),
        ({"agentId": sari, "status": "open"}, []),
        ({"customerId": chat["customerId"]}, [phone, chat]),
        ({"sort": "createdAt:asc", "limit": 1}, [chat]),
    ]
    for params, expected in cases:
        answer = (await desk.client.get("/tickets", params=params)).json()
        assert [ticket["id"] for ticket in answer["data"]] == [ticket["id"] for ticket in expected], params
        total = 3 if "limit" in params else len(expected)
        assert answer["meta"]["total"] == total, params
    for wrong in ({"channel": "fax"}, {"status": "closed"}, {"agentId": "x"}, {"sort": "id"}):
        assert (await desk.client.get("/tickets", params=wrong)).status_code == 400


async def test_every_channel_takes_replies(desk: Desk) -> None:
    sari = await desk.create_agent()
    for source, sender in SENDERS.items():
        ticket = await desk.receive(sender=sender, source=source)
        sent = await desk.reply(ticket, sari)
        assert (sent["source"], sent["ticketId"], sent["featureSource"]) == (source, ticket["id"], "INBOX")
    assert (await desk.client.get("/messages/requests")).json()["meta"]["total"] == 0


async def test_a_text_that_the_channel_cannot_carry_is_an_error_of_body(desk: Desk) -> None:
    sari = await desk.create_agent()
    ticket = await desk.receive()
    for body in ("  ", "x" * 4097):
        refused = await desk.reply(ticket, sari, body, 400)
        assert [error["field"] for error in refused["details"]] == ["body"]
    assert (await desk.look(ticket))["status"] == "open"


@pytest.mark.parametrize(
    ("settings", "hours", "same"),
    [
        ({}, 23, True), ({}, 25, False), ({"reopenWindowHours": 0}, 0, False),
        ({"reopenWindowHours": 100, "reopenAssignee": "queue"}, 99, True),
    ],
)  # fmt: skip
async def test_reopening(desk: Desk, settings: dict[str, Any], hours: int, same: bool) -> None:
    sari = await desk.create_agent()
    await desk.client.put("/support/settings", json=settings)
    ticket = await desk.receive()
    await desk.reply(ticket, sari)
    await desk.act(ticket, "resolve")
    await desk.pass_time(hours * HOUR or 1)
    again = await desk.receive("Lagi")
    assert (again["id"] == ticket["id"], again["cycle"]) == (same, 2 if same else 1)
    kept = same and settings.get("reopenAssignee") != "queue"
    assert (again["status"], again["agentId"]) == (("assigned", sari) if kept else ("open", None))
    if not same:
        assert (await desk.act(ticket, "reopen", 409))["code"] == "ANOTHER_TICKET_ACTIVE"
        assert (await desk.act(ticket, "replies", 409, agentId=sari, body="x"))["code"] == "ANOTHER_TICKET_ACTIVE"


async def test_silent_tickets_without_a_wait_are_resolved(desk: Desk) -> None:
    sari = await desk.create_agent()
    await desk.client.put("/support/settings", json={"autoResolveHours": 2})
    answered = await desk.receive()
    waiting = await desk.receive(sender="+628222222222")
    await desk.reply(answered, sari)
    await desk.pass_time(1 * HOUR)
    await desk.reply(answered, sari, "Masih di sana?")
    await desk.pass_time(HOUR)
    assert (await desk.look(answered))["status"] == "assigned"
    await desk.pass_time(HOUR)

    async def is_resolved() -> Any:
        seen = await desk.look(answered)
        return seen if seen["status"] == "resolved" else None

    seen = await eventually(is_resolved)
    assert seen["resolvedReason"] == "inactivity"
    assert (await desk.look(waiting))["status"] == "open"
    desk.check((await desk.measured(sari))["resolution"], 3 * HOUR)


async def test_a_snoozed_ticket_is_resolved_only_when_it_has_been_back_for_as_long(desk: Desk) -> None:
    sari = await desk.create_agent()
    await desk.client.put("/support/settings", json={"autoResolveHours": 2})
    snoozed = await desk.receive()
    replied = await desk.reply(snoozed, sari)
    until = datetime.fromtimestamp(replied["timestamp"], UTC) + timedelta(hours=4)
    await desk.client.put(f"/tickets/{snoozed['id']}", json={"snoozedUntil": until.isoformat()})

    async def is_resolved(ticket: Json) -> bool:
        seen = await desk.look(ticket)
        return bool(seen["status"] == "resolved")

    async def is_awake() -> bool:
        seen = await desk.look(snoozed)
        return seen["snoozedUntil"] is None

    for sender in ("+628222222222", "+628333333333"):
        other = await desk.receive(sender=sender)
        await desk.reply(other, sari)
        await desk.pass_time(2 * HOUR)
        await eventually(partial(is_resolved, other))
        assert not await is_resolved(snoozed)
    await eventually(is_awake)
    await desk.pass_time(2 * HOUR - 60)
    assert not await is_resolved(snoozed)
    await desk.pass_time(60)
    await eventually(partial(is_resolved, snoozed))


async def test_companies_take_turns_in_being_resolved(
    installation: Installation, desk: Desk, database: Database, company: Environments
) -> None:
    """However long one company's tickets have been silent. While they are locked, the worker can resolve none of
    them."""
    another = await make_company(database)
    key = await make_key(database, another.test)
    async with connect_messaging(installation, key.raw) as client:
        other = Desk(client)
        for one, senders in ((desk, range(3)), (other, range(1))):
            for n in senders:
                ticket = await one.receive(sender=f"+62811111111{n}")
                await one.act(ticket, "resolve")
                await one.act(ticket, "reopen")
        companies = [company.test, another.test]
        async with database.transaction() as tx:
            await tx.fetch("SELECT FROM tickets WHERE company_id = ANY($1) FOR UPDATE", companies)
            for one in (desk, other):
                await one.pass_time(73 * HOUR)
            async with database.connection() as db:
                due = [one.company_id for one in await queries.list_silent(db, 1000) if one.company_id in companies]
    assert due == [company.test, another.test, company.test, company.test]


async def test_what_opens_no_ticket(desk: Desk, database: Database, company: Environments) -> None:
    """Our own messages, an automatic reply, a message from the company's own phone."""
    await desk.post("/messages/send", to=NUMBER, message="Promo!", sources="MSGAPP_CLOUD")
    await desk.post("/messages/send", to="ooo@simulator.test", message="Promo!", sources="MAIL")
    await simulate_inbound(desk.client, source="MSGAPP_COEX", text="Dari telepon", echo=True, **{"from": NUMBER})
    await wait_for_inbound(database, company.test, 2)
    assert await desk.get("/tickets") == []
    answer = await desk.receive("Ya")
    assert [message["body"] for message in answer["messages"]] == ["Ya"]


async def test_the_companys_own_phone_answers(desk: Desk, database: Database, company: Environments) -> None:
    """As a human agent does: it takes over, and is credited as an agent of its own."""
    bot = await desk.create_agent("Robo", "ai")
    ticket = await desk.receive(source="MSGAPP_COEX")
    await desk.reply(ticket, bot)
    await desk.receive("Halo?", source="MSGAPP_COEX")
    await simulate_inbound(desk.client, source="MSGAPP_COEX", text="Dari telepon", echo=True, **{"from": NUMBER})

    async def is_taken() -> Any:
        seen = await desk.look(ticket)
        return seen if seen["agentId"] != bot else None

    seen = await eventually(is_taken)
    assert (seen["agent"]["name"], seen["agent"]["type"], seen["waitingSince"]) == ("Business app", "human", None)
    assert seen["messages"][-1]["agentId"] == seen["agentId"]
    assert (await desk.reply(ticket, bot, status=409))["code"] == "TAKEN_OVER"
    assert len((await desk.measured(seen["agentId"]))["first_response"]) == 1
    machine = await desk.client.put(f"/agents/{seen['agentId']}", json={"type": "ai"})
    assert (machine.status_code, machine.json()["error"]["code"]) == (409, "AGENT_IS_HUMAN")


async def test_two_merged_contacts_keep_one_ticket(
    installation: Installation, database: Database, company: Environments
) -> None:
    """One contact known by an id, one by a number, until one message has both. The remaining ticket takes over the
    other's wait."""
    hook, user = connect_whatsapp(installation, company.live), "ID.13491208655302741918"
    now = int(time.time())
    nameless = {"from_user_id": user, "id": "wamid.1", "type": "text", "text": {"body": "Satu"}}
    await hook.send_change({"messages": [{**nameless, "timestamp": str(now - 60)}]})
    await hook.send_change(build_change(build_text("628123456789", "Dua", at=now)))
    await wait_for_inbound(database, company.live, 2)
    key = await make_key(database, company.live)
    async with connect_messaging(installation, key.raw) as client:
        desk = Desk(client)
        staying, going = await desk.get("/tickets", sort="createdAt:desc")
        await desk.act(staying, "resolve")
        assert (await desk.act(staying, "reopen"))["waitingSince"] is None
        await hook.send_change(build_change(build_text("628123456789", "Tiga", at=now, from_user_id=user)))
        await wait_for_inbound(database, company.live, 3)
        active, merged = sorted(await desk.get("/tickets"), key=lambda ticket: str(ticket["status"]))
        assert (active["status"], merged["status"], merged["resolvedReason"]) == ("open", "resolved", "merged")
        assert (active["id"], active["waitingSince"]) == (staying["id"], going["waitingSince"])
        assert (active["mergedIntoId"], merged["mergedIntoId"]) == (None, active["id"])
        events = (await desk.look(active))["events"]
        assert [event["reason"] for event in events if event["kind"] == "merged"] == [merged["id"]]
        assert (going["customerId"], merged["customerId"]) == (None, active["customerId"])
        assert [message["body"] for message in (await desk.look(active))["messages"]] == ["Dua", "Tiga"]
        assert (await desk.act(merged, "reopen", 409))["code"] == "ANOTHER_TICKET_ACTIVE"
