"""Presence, automatic assignment, and agents who take tickets at once."""

import asyncio
from typing import Any

import pytest

from tests.http.wire import eventually
from tests.support.test_filing import build_instant, put
from tests.support.ticket_steps import Desk

Json = dict[str, Any]

TAKERS = 20


async def set_presence(desk: Desk, agent: int, status: str, **more: int) -> Json:
    answer = await desk.client.put(f"/agents/{agent}/presence", json={"status": status, **more})
    assert answer.status_code == 200, answer.text
    data: Json = answer.json()["data"]
    return data


async def wait_for_owner(desk: Desk, ticket: Json) -> int:
    async def look() -> int | None:
        owner: int | None = (await desk.look(ticket))["agentId"]
        return owner

    return await eventually(look)


@pytest.mark.smoke
async def test_presence_is_set_and_ends(desk: Desk) -> None:
    sari, budi = await desk.create_agent(), await desk.create_agent("Budi")
    assert (await set_presence(desk, sari, "online", seconds=600))["status"] == "online"
    assert (await set_presence(desk, budi, "away"))["until"] is not None
    present = await desk.get("/agents/presence")
    assert [(each["agentId"], each["status"]) for each in present] == [(sari, "online"), (budi, "away")]
    offline = {"agentId": sari, "status": "offline", "until": None}
    assert await set_presence(desk, sari, "offline") == offline
    assert await desk.get(f"/agents/{sari}/presence") == offline
    for wrong in ({"status": "busy"}, {"status": "online", "seconds": 1}):
        assert (await desk.client.put(f"/agents/{sari}/presence", json=wrong)).status_code == 400


async def test_waiting_tickets_go_to_the_agent_who_is_there_and_has_the_fewest(desk: Desk) -> None:
    sari, budi = await desk.create_agent(), await desk.create_agent("Budi")
    away, inactive = await desk.create_agent("Away"), await desk.create_agent("Inactive", active=False)
    first = await desk.receive(sender="+628111111101")
    snoozed = await desk.receive(sender="+628111111102")
    await put(desk, f"/tickets/{snoozed['id']}", snoozedUntil=build_instant(hours=9))
    for agent, status in ((sari, "online"), (away, "away"), (inactive, "online")):
        await set_presence(desk, agent, status, seconds=3600)
    await put(desk, "/support/settings", autoAssign=True)
    assert await wait_for_owner(desk, first) == sari
    await set_presence(desk, budi, "online", seconds=3600)
    second = await desk.receive(sender="+628111111103")
    assert await wait_for_owner(desk, second) == budi
    assert (await desk.look(snoozed))["agentId"] is None
    await put(desk, f"/tickets/{snoozed['id']}", snoozedUntil=None)
    assert await wait_for_owner(desk, snoozed) in {sari, budi}


async def test_a_team_s_tickets_go_to_its_members(desk: Desk) -> None:
    sari, budi = await desk.create_agent(), await desk.create_agent("Budi")
    for agent in (sari, budi):
        await set_presence(desk, agent, "online", seconds=3600)
    team = await desk.post("/teams", 201, name="Gudang", agentIds=[budi], autoAssign=True)
    other = await desk.receive(sender="+628111111104")
    ticket = await desk.receive(sender="+628111111105")
    await put(desk, f"/tickets/{ticket['id']}", teamId=team["id"])
    assert await wait_for_owner(desk, ticket) == budi
    assert (await desk.look(other))["agentId"] is None


async def test_of_many_who_take_a_ticket_one_gets_it(desk: Desk) -> None:
    agents = [await desk.create_agent(f"Agent {n}") for n in range(TAKERS)]
    ticket = await desk.receive()
    path = f"/tickets/{ticket['id']}/take"
    answers = await asyncio.gather(*(desk.client.post(path, json={"agentId": agent}) for agent in agents))
    winners = [agent for agent, answer in zip(agents, answers, strict=True) if answer.status_code == 200]
    losers = [answer.json()["error"]["code"] for answer in answers if answer.status_code != 200]
    assert losers == ["ALREADY_ASSIGNED"] * (TAKERS - 1)
    seen = await desk.look(ticket)
    assert [seen["agentId"]] == winners
    assert [event["kind"] for event in seen["events"]] == ["opened", "assigned"]
    assert (await desk.act(ticket, "take", agentId=winners[0]))["agentId"] == winners[0]
