"""Agents and support settings."""

from collections.abc import Coroutine
from typing import Any

import pytest

from sapa.access.actions import get_company
from sapa.db.pool import Database
from sapa.support.agents import actions as agents
from sapa.support.types import AgentPatch
from tests.cli.command import sapa
from tests.conftest import Installation
from tests.db.blocked_calls import start_behind
from tests.factories import Environments, make_company, make_key
from tests.messaging.conftest import connect_messaging
from tests.support.ticket_steps import Desk

USER = """
    WITH made AS (
        INSERT INTO users (email, email_key, name) VALUES ($2, $2, 'Sari') RETURNING id
    )
    INSERT INTO memberships (organisation_id, user_id, role)
    SELECT c.organisation_id, made.id, 'agent' FROM made, companies c WHERE c.company_id = $1
    RETURNING user_id"""


async def make_user(database: Database, company: Environments) -> int:
    async with database.transaction() as tx:
        return int(await tx.fetchval(USER, company.test, f"sari-{company.test}@example.com"))


async def test_an_agent_s_life(desk: Desk, database: Database, company: Environments) -> None:
    user = await make_user(database, company)
    created = await desk.post("/agents", 201, name="  Sari  Dewi ", userId=user)
    assert (created["name"], created["type"], created["active"], created["userId"]) == (
        "Sari Dewi",
        "human",
        True,
        user,
    )
    assert isinstance(created["id"], int)
    taken = await desk.post("/agents", 409, name="Sari", userId=user)
    assert taken["code"] == "AGENT_EXISTS"
    changed = await desk.client.put(f"/agents/{created['id']}", json={"active": False, "userId": None})
    assert changed.json()["data"] == {
        **created,
        "active": False,
        "userId": None,
        "updatedAt": changed.json()["data"]["updatedAt"],
    }
    robot = await desk.post("/agents", 201, name="Robo_1%", type="ai")
    assert await desk.get("/agents") == [robot, changed.json()["data"]]
    assert await desk.get("/agents", type="ai", active="true") == [robot]
    assert await desk.get("/agents", active="false") == [changed.json()["data"]]
    for text, found in {"o_1%": 1, "SARI": 1, "%": 1, "x": 0}.items():
        answer = await desk.client.get("/agents", params={"search": text})
        assert (len(answer.json()["data"]), answer.json()["meta"]["total"]) == (found, found), text
    assert await desk.get(f"/agents/{robot['id']}") == robot


@pytest.mark.parametrize(
    "body",
    [
        {}, {"name": ""}, {"name": "  "}, {"name": "x" * 101}, {"name": "Sari", "type": "robot"},
        {"name": "Sari", "userId": 10**12}, {"name": "Robo", "type": "ai", "userId": 1}, {"name": "Sari", "id": 5},
    ],
)  # fmt: skip
async def test_an_invalid_agent_is_refused(desk: Desk, body: dict[str, Any]) -> None:
    answer = await desk.client.post("/agents", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "VALIDATION_ERROR")


async def test_agents_are_their_company_s_own(
    installation: Installation, database: Database, company: Environments, desk: Desk
) -> None:
    """Agents of another company or environment are refused like unknown ones."""
    ticket = await desk.receive()
    to = {"to": ticket["clientNumber"], "sources": "MSGAPP_CLOUD"}
    for company_id in ((await make_company(database)).test, company.live):
        key = await make_key(database, company_id)
        async with connect_messaging(installation, key.raw) as theirs:
            foreign = (await theirs.post("/agents", json={"name": "Budi"})).json()["data"]["id"]
        for number in (foreign, 999_999_999):
            words = {"body": "Halo"}
            bodies = {"assign": {}, "replies": words, "notes": words, "handover": {}, "resolve": {}}
            refused = [await desk.act(ticket, path, 400, agentId=number, **body) for path, body in bodies.items()]
            refused.append(await desk.post("/messages/send", 400, **to, message="Halo", agentId=number))
            message = f"agentId: must be the id of an agent; {number} is not. GET /agents lists them"
            assert {(one["code"], one["message"]) for one in refused} == {("VALIDATION_ERROR", message)}
            refused = [await desk.act(ticket, "handover", 400, fromAgentId=number)]
            assert refused[0]["details"][0]["field"] == "fromAgentId"
        assert (await desk.client.get(f"/agents/{foreign}")).status_code == 404
        assert (await desk.client.put(f"/agents/{foreign}", json={"name": "Sari"})).status_code == 404
    assert (await desk.look(ticket))["status"] == "open"


async def test_an_agent_whose_user_left_the_console_can_be_changed(
    desk: Desk, database: Database, company: Environments
) -> None:
    user = await make_user(database, company)
    sari = await desk.create_agent(userId=user)
    async with database.transaction() as tx:
        await tx.execute("DELETE FROM memberships WHERE user_id = $1", user)
    changed = await desk.client.put(f"/agents/{sari}", json={"active": False})
    assert (changed.status_code, changed.json()["data"]["userId"]) == (200, user)
    await desk.client.put(f"/agents/{sari}", json={"userId": None})
    again = await desk.client.put(f"/agents/{sari}", json={"userId": user})
    assert (again.status_code, again.json()["error"]["details"][0]["field"]) == (400, "userId")


async def test_an_inactive_agent_gets_no_tickets(desk: Desk) -> None:
    sari = await desk.create_agent()
    ticket = await desk.receive()
    await desk.reply(ticket, sari)
    await desk.act(ticket, "resolve")
    await desk.client.put(f"/agents/{sari}", json={"active": False})
    again = await desk.receive("Lagi")
    assert (again["cycle"], again["status"], again["agentId"]) == (2, "open", None)
    for path, body in {"assign": {}, "replies": {"body": "Halo"}, "resolve": {}}.items():
        assert (await desk.act(ticket, path, 409, agentId=sari, **body))["code"] == "AGENT_INACTIVE"


async def test_the_tickets_of_an_agent_who_is_deactivated_go_back_to_the_queue(
    desk: Desk, installation: Installation, company: Environments
) -> None:
    sari, robo = await desk.create_agent(), await desk.create_agent("Robo", type="ai")
    tickets = [await desk.receive(sender=f"+62812345670{number}") for number in range(3)]
    for ticket, agent in zip(tickets, (sari, sari, robo), strict=True):
        await desk.act(ticket, "assign", agentId=agent)
    await desk.act(tickets[1], "resolve")
    renamed = await desk.client.put(f"/agents/{sari}", json={"name": "Sari Dewi"})
    assert renamed.json()["data"]["active"] is True
    assert (await desk.look(tickets[0]))["agentId"] == sari
    await desk.client.put(f"/agents/{sari}", json={"active": False})
    sapa(installation.data, "agent", "update", str(robo), "--no-active", "--company", str(company.test))
    found = [await desk.look(ticket) for ticket in tickets]
    assert [(ticket["status"], ticket["agentId"]) for ticket in found] == [
        ("open", None), ("resolved", sari), ("open", None),
    ]  # fmt: skip


async def test_a_key_that_may_read_may_not_write(
    installation: Installation, database: Database, company: Environments, desk: Desk
) -> None:
    ticket = await desk.receive()
    reader = await make_key(database, company.test, scopes=["messages:READ"])
    async with connect_messaging(installation, reader.raw) as client:
        assert (await client.get("/agents")).status_code == 200
        assert (await client.get(f"/tickets/{ticket['id']}")).status_code == 200
        for answer in [
            await client.post("/agents", json={"name": "Sari"}),
            await client.post(f"/tickets/{ticket['id']}/resolve"),
            await client.put("/support/settings", json={}),
        ]:
            assert answer.json()["error"]["code"] == "INSUFFICIENT_SCOPE"


async def test_the_command(installation: Installation, company: Environments, desk: Desk) -> None:
    of = ("--company", str(company.test), "--json")
    created = sapa(installation.data, "agent", "create", "--name", "Robo", "--ai", *of).json()
    changed = sapa(installation.data, "agent", "update", str(created["id"]), "--no-active", *of).json()
    assert (changed["type"], changed["active"]) == ("ai", False)
    assert sapa(installation.data, "agent", "list", *of).json() == await desk.get("/agents") == [changed]


async def test_settings(desk: Desk) -> None:
    usual = {"reopenWindowHours": 24, "autoResolveHours": 72, "reopenAssignee": "previous"} | {
        "askRating": False,
        "autoAssign": False,
    }
    assert await desk.get("/support/settings") == usual
    changed = await desk.client.put("/support/settings", json={"reopenWindowHours": 0, "reopenAssignee": "queue"})
    assert changed.json()["data"] == await desk.get("/support/settings")
    assert changed.json()["data"] == {**usual, "reopenWindowHours": 0, "reopenAssignee": "queue"}
    refused = await desk.client.put("/support/settings", json={"autoResolveHours": -1})
    assert refused.status_code == 400


async def deactivate_during(
    database: Database, company: Environments, agent: int, call: Coroutine[Any, Any, object]
) -> None:
    """The call begins before the agent's deactivation is committed."""
    async with database.transaction() as tx:
        await agents.update(tx, await get_company(tx, company.test), agent, AgentPatch(active=False))
        calling = await start_behind(tx, database, call)
    await calling


@pytest.mark.parametrize(("verb", "body"), [("assign", {}), ("replies", {"body": "Halo"})])
async def test_no_ticket_goes_to_an_agent_who_is_just_deactivated(
    desk: Desk, database: Database, company: Environments, verb: str, body: dict[str, str]
) -> None:
    agent, ticket = await desk.create_agent(), await desk.receive()
    await deactivate_during(database, company, agent, desk.act(ticket, verb, 409, agentId=agent, **body))
    assert (await desk.look(ticket))["agentId"] is None


async def test_no_reopened_ticket_goes_back_to_an_agent_who_is_just_deactivated(
    desk: Desk, database: Database, company: Environments
) -> None:
    agent, ticket = await desk.create_agent(), await desk.receive()
    await desk.reply(ticket, agent)
    await desk.act(ticket, "resolve")
    await deactivate_during(database, company, agent, desk.act(ticket, "reopen"))
    seen = await desk.look(ticket)
    assert (seen["status"], seen["agentId"]) == ("open", None)
