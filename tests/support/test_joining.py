"""Bulk actions, merged tickets, and contacts that are linked to customers."""

import asyncio
from typing import Any

import pytest

from sapa.access.actions import get_company
from sapa.db.pool import Database
from sapa.support import tickets as tickets_actions
from tests.db.blocked_calls import start_behind
from tests.factories import Environments
from tests.http.samples import root_of
from tests.messaging.inbound.test_actions import SENDERS
from tests.support.test_filing import put
from tests.support.test_scheduled_replies import list_scheduled, schedule
from tests.support.ticket_steps import Desk

Json = dict[str, Any]

UNKNOWN: dict[str, Json] = {
    "actions.addLabelIds": {"actions": {"addLabelIds": ["lab_01jc9y3q5me8w92v7x4t6r0n1k"]}},
    "actions.teamId": {"actions": {"teamId": "team_01jc9y3q5me8w92v7x4t6r0n1k"}},
    "actions.assignTo": {"actions": {"assignTo": 99_999_999}},
}
"""Actions with ids that do not exist, by the field that a refusal names."""


@pytest.mark.smoke
async def test_many_tickets_change_at_once(desk: Desk) -> None:
    sari = await desk.create_agent()
    label, other = await desk.post("/labels", 201, name="Retur"), await desk.post("/labels", 201, name="Lama")
    first = await desk.receive(sender="+628111111121")
    second = await desk.receive(sender="+628111111122")
    await put(desk, f"/tickets/{first['id']}", labelIds=[other["id"]])
    await desk.act(second, "resolve")
    unknown = "tkt_01jc9y3q5me8w92v7x4t6r0n1k"
    actions = {"addLabelIds": [label["id"]], "removeLabelIds": [other["id"]], "priority": "urgent", "assignTo": sari}
    ids = [second["id"], first["id"], unknown]
    outcomes = await desk.post("/tickets/bulk", ids=ids, actions=actions, actorId=sari)
    assert [outcome["id"] for outcome in outcomes] == ids
    assert [(outcome["error"] or {}).get("code") for outcome in outcomes] == ["TICKET_RESOLVED", None, "NOT_FOUND"]
    changed = outcomes[1]["ticket"]
    assert (changed["labelIds"], changed["priority"], changed["agentId"]) == ([label["id"]], "urgent", sari)
    assert (await desk.look(second))["labelIds"] == []  # all or nothing
    snoozed = await desk.post("/tickets/bulk", ids=[first["id"]], actions={"snoozeMinutes": 60, "unassign": True})
    assert snoozed[0]["ticket"]["snoozedUntil"] is not None
    assert snoozed[0]["ticket"]["status"] == "open"
    for field, wrong in UNKNOWN.items():
        (outcome,) = await desk.post("/tickets/bulk", ids=[first["id"]], **wrong)
        assert outcome["error"]["details"][0]["field"] == field
    resolved = await desk.post("/tickets/bulk", ids=[first["id"]], actions={"resolve": True})
    assert resolved[0]["ticket"]["status"] == "resolved"
    for wrong in ({"assignTo": sari, "unassign": True}, {"resolve": True, "snoozeMinutes": 5}, {"x": 1}):
        answer = await desk.client.post("/tickets/bulk", json={"ids": ids, "actions": wrong})
        assert answer.status_code == 400
    too_many = {"ids": [unknown] * 101, "actions": {}}
    assert (await desk.client.post("/tickets/bulk", json=too_many)).status_code == 400


async def test_bulk_actions_wait_for_a_ticket_without_a_deadlock(
    desk: Desk, database: Database, company: Environments
) -> None:
    """Tickets share the figures of their agent: a call that has one ticket must not wait for the figures that a bulk
    action has while it waits for the ticket."""
    sari = await desk.create_agent()
    tickets = [await desk.receive(sender=f"+62811111114{n}") for n in range(2)]
    for ticket in tickets:
        await desk.reply(ticket, sari)
    first, last = sorted(ticket["id"] for ticket in tickets)
    async with database.transaction() as tx:
        shop = await get_company(tx, company.test)
        await tickets_actions.assign(tx, shop, last, None)
        resolving = desk.post("/tickets/bulk", ids=[first, last], actions={"resolve": True}, actorId=sari)
        calling = await start_behind(tx, database, resolving)
        await tx.execute("SET LOCAL lock_timeout = '500ms'")
        await tickets_actions.resolve(tx, shop, last, sari)
    assert [outcome["error"] for outcome in await calling] == [None, None]


async def test_bulk_actions_at_once_end_in_one_state(desk: Desk) -> None:
    agents = [await desk.create_agent(f"Agent {n}") for n in range(4)]
    ids = [(await desk.receive(sender=f"+62811111113{n}"))["id"] for n in range(4)]
    calls = [
        desk.client.post("/tickets/bulk", json={"ids": ids[n:] + ids[:n], "actions": {"assignTo": agent}})
        for n, agent in enumerate(agents)
    ]
    assert {answer.status_code for answer in await asyncio.gather(*calls)} == {200}
    assert len({(await desk.look({"id": id}))["agentId"] for id in ids}) == 1


async def test_a_ticket_is_merged_into_another_of_the_customer(desk: Desk) -> None:
    sari = await desk.create_agent()
    chat = await desk.receive("Masih ada?", sender="+628111111141")
    phone = await desk.receive("Halo lagi", sender="+628111111141", source="MSGAPP_COEX")
    stranger = await desk.receive(sender="+628111111142")
    await desk.act(phone, "notes", 201, agentId=sari, body="Dari telepon")
    await schedule(desk, phone, sari)
    assert (await desk.act(chat, "merge", 409, ticketId=stranger["id"]))["code"] == "DIFFERENT_CUSTOMERS"
    for wrong in (chat["id"], "tkt_01jc9y3q5me8w92v7x4t6r0n1k"):
        assert (await desk.act(chat, "merge", 400, ticketId=wrong))["details"][0]["field"] == "ticketId"
    await desk.reply(chat, sari)
    merged = await desk.act(chat, "merge", ticketId=phone["id"])
    assert (merged["id"], merged["waitingSince"]) == (chat["id"], phone["waitingSince"])
    seen, closed = await desk.look(chat), await desk.look(phone)
    assert sorted(message["body"] for message in seen["messages"]) == ["Halo lagi", "Masih ada?", "Masih."]
    assert [note["body"] for note in seen["notes"]] == ["Dari telepon"]
    assert [len(await list_scheduled(desk, one)) for one in (chat, phone)] == [1, 0]
    assert (closed["status"], closed["resolvedReason"], closed["messages"]) == ("resolved", "merged", [])
    assert (closed["mergedIntoId"], seen["mergedIntoId"]) == (chat["id"], None)
    assert list_merged(seen) == [phone["id"]]
    await desk.act(chat, "merge", ticketId=phone["id"])  # once more, as a form that is sent twice
    assert list_merged(await desk.look(chat)) == [phone["id"]]
    await desk.act(chat, "resolve")
    assert (await desk.act(chat, "merge", 409, ticketId=phone["id"]))["code"] == "TICKET_RESOLVED"
    again = await desk.act(phone, "reopen")
    assert (again["status"], again["mergedIntoId"]) == ("open", None)
    assert list_merged(await desk.look(phone)) == [chat["id"]]


async def test_of_two_waits_that_are_merged_the_longer_one_remains(desk: Desk) -> None:
    sari = await desk.create_agent()
    chat = await desk.receive(sender="+628111111144")
    await desk.pass_time(600)
    phone = await desk.receive("Halo?", sender="+628111111144", source="MSGAPP_COEX")
    await desk.pass_time(60)
    merged = await desk.act(phone, "merge", ticketId=chat["id"])
    assert merged["waitingSince"] == chat["waitingSince"] != phone["waitingSince"]
    await desk.reply(phone, sari)
    desk.check((await desk.measured(sari))["first_response"], 660)


async def test_a_resolved_ticket_says_where_it_was_merged_and_how_it_was_resolved(desk: Desk) -> None:
    """Also after the ticket that it was merged into was merged itself."""
    senders = {"sender": "+628111111143"}
    earlier = await desk.receive("Masih ada?", **senders)
    await desk.act(earlier, "resolve")
    await desk.client.put("/support/settings", json={"reopenWindowHours": 0})
    middle = await desk.receive("Halo?", **senders)
    last = await desk.receive("Lagi", **senders, source="MSGAPP_COEX")
    await desk.act(middle, "merge", ticketId=earlier["id"])
    await desk.act(last, "merge", ticketId=middle["id"])
    tickets = {one["id"]: (one["mergedIntoId"], one["resolvedReason"]) for one in await desk.get("/tickets")}
    assert tickets == {
        earlier["id"]: (middle["id"], "api"),
        middle["id"]: (last["id"], "merged"),
        last["id"]: (None, None),
    }
    merged = [list_merged(await desk.look(one)) for one in (earlier, middle, last)]
    assert merged == [[], [earlier["id"]], [middle["id"]]]
    assert len((await desk.look(last))["messages"]) == 3


def list_merged(ticket: Json) -> list[str]:
    """The tickets that were merged into this one."""
    return [event["reason"] for event in ticket["events"] if event["kind"] == "merged"]


async def test_a_contact_is_linked_to_a_customer(desk: Desk) -> None:
    source = "SHORT_VIDEO"
    ticket = await desk.receive(sender=SENDERS[source], source=source)
    assert ticket["customerId"] is None
    root = f"{root_of(desk.client)}/customer/v1"
    created = await desk.client.post(f"{root}/customers", json={"email": "ayu@example.com"})
    customer_id = created.json()["data"]["id"]
    assert (await put(desk, f"/tickets/{ticket['id']}/customer", customerId=customer_id))["customerId"] == customer_id
    await desk.act(ticket, "resolve")
    await desk.client.put("/support/settings", json={"reopenWindowHours": 0})
    again = await desk.receive("Lagi", sender=SENDERS[source], source=source)
    assert (again["id"] != ticket["id"], again["customerId"]) == (True, customer_id)
    refused = await put(desk, f"/tickets/{ticket['id']}/customer", 400, customerId="cust_01jc9y3q5me8w92v7x4t6r0n1k")
    assert refused["details"][0]["field"] == "customerId"


async def test_a_macro_applies_all_of_its_actions_or_none(desk: Desk) -> None:
    sari = await desk.create_agent()
    label = await desk.post("/labels", 201, name="Spam")
    actions = {"addLabelIds": [label["id"]], "priority": "low", "assignTo": sari}
    fields = {"actions": actions, "note": "Sudah dicek", "reply": "Halo, saya {agen}."}
    macro = await desk.post("/macros", 201, name="Spam", **fields)
    assert {name: macro[name] for name in fields} == fields
    assert (await desk.post("/macros", 409, name="spam"))["code"] == "MACRO_EXISTS"
    ticket = await desk.receive()
    path = f"/tickets/{ticket['id']}/macros/{macro['id']}"
    applied = await desk.post(path, agentId=sari)
    assert (applied["ticket"]["labelIds"], applied["ticket"]["priority"]) == ([label["id"]], "low")
    assert (applied["ticket"]["agentId"], applied["reply"]["text"]) == (sari, "Halo, saya Sari.")
    assert [note["body"] for note in (await desk.look(ticket))["notes"]] == ["Sudah dicek"]
    await desk.act(ticket, "resolve")
    await put(desk, f"/tickets/{ticket['id']}", labelIds=[])
    assert (await desk.post(path, 409, agentId=sari))["code"] == "TICKET_RESOLVED"
    seen = await desk.look(ticket)
    assert (seen["labelIds"], len(seen["notes"])) == ([], 1)
    for field, wrong in {"reply": {"reply": "{siapa}"}, "note": {"note": " "}, **UNKNOWN}.items():
        refused = await desk.post("/macros", 400, name="x", **wrong)
        assert refused["details"][0]["field"] == field
    assert (await desk.post(path, 400, agentId=99_999_999))["details"][0]["field"] == "agentId"


async def test_a_second_answer_is_refused_unless_it_is_meant(desk: Desk) -> None:
    sari, budi = await desk.create_agent(), await desk.create_agent("Budi")
    ticket = await desk.receive()
    seen = ticket["sequence"]
    both = [
        desk.client.post(
            f"/tickets/{ticket['id']}/replies", json={"agentId": agent, "body": "Ada", "seenSequence": seen}
        )
        for agent in (sari, budi)
    ]
    answers = sorted(await asyncio.gather(*both), key=lambda answer: answer.status_code)
    assert [answer.status_code for answer in answers] == [200, 409]
    assert answers[1].json()["error"]["code"] == "ANSWERED_MEANWHILE"
    first = answers[0].json()["data"]["agentId"]
    second = budi if first == sari else sari
    await desk.reply(ticket, first, "Lagi", seenSequence=seen)  # one's own messages do not count
    again = await desk.reply(ticket, first, "Lagi", 409, seenSequence=seen)
    assert again["code"] == "ANSWERED_MEANWHILE", "from another device"
    newest = (await desk.look(ticket))["sequence"]
    await desk.reply(ticket, second, "Saya lihat", seenSequence=newest)
    await desk.reply(ticket, second, "Tetap kirim")


async def test_a_conversation_starts_from_a_customer_or_an_order(desk: Desk) -> None:
    sari = await desk.create_agent()
    root = f"{root_of(desk.client)}/customer/v1"
    created = await desk.client.post(f"{root}/customers", json={"email": "dewi@example.com"})
    customer_id = created.json()["data"]["id"]
    sent = await desk.post("/tickets", agentId=sari, customerId=customer_id, source="MAIL", body="Halo Dewi")
    ticket = await desk.look({"id": sent["ticketId"]})
    assert (ticket["status"], ticket["agentId"], ticket["customerId"]) == ("assigned", sari, customer_id)
    assert [message["body"] for message in ticket["messages"]] == ["Halo Dewi"]
    line = {"title": "Kopi", "price": 75000, "quantity": 1}
    order = await desk.client.post(f"{root}/orders", json={"customerId": customer_id, "lineItems": [line]})
    again = await desk.post("/tickets", agentId=sari, orderId=order.json()["data"]["id"], source="MAIL", body="Siap")
    assert again["ticketId"] == ticket["id"]
    answered = await desk.receive("Terima kasih", sender="dewi@example.com", source="MAIL")
    assert answered["id"] == ticket["id"]
    wrong: list[Json] = [
        {"customerId": customer_id}, {"body": "x"}, {"customerId": customer_id, "body": "x", "templateName": "y"},
        {"customerId": "cust_01jc9y3q5me8w92v7x4t6r0n1k", "body": "x"}, {"orderId": "x", "body": "x"},
    ]  # fmt: skip
    for body in wrong:
        assert (await desk.client.post("/tickets", json={"agentId": sari, **body})).status_code == 400
