"""Labels, priority, teams and snooze: what tickets are filed under, and how lists find them by it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sapa.db.pool import Database
from tests.factories import Environments
from tests.http.wire import eventually
from tests.support.test_tickets import list_events
from tests.support.ticket_steps import Desk

Json = dict[str, Any]


def build_instant(**later: int) -> str:
    return (datetime.now(UTC) + timedelta(**later)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def put(desk: Desk, path: str, status: int = 200, **body: Any) -> Any:
    answer = await desk.client.put(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()["data"] if status < 300 else answer.json()["error"]


async def list_ids(desk: Desk, **params: Any) -> list[str]:
    return [ticket["id"] for ticket in await desk.get("/tickets", **params)]


@pytest.mark.smoke
async def test_labels_are_changed_and_deleted(desk: Desk) -> None:
    label = await desk.post("/labels", 201, name="  Keluhan   besar ")
    assert (label["name"], label["color"]) == ("Keluhan besar", "#4b5c57")
    assert (await desk.post("/labels", 409, name="keluhan BESAR"))["code"] == "LABEL_EXISTS"
    renamed = await put(desk, f"/labels/{label['id']}", name="Retur", color="#b3261e")
    assert renamed == label | {"name": "Retur", "color": "#b3261e", "updatedAt": renamed["updatedAt"]}
    assert await desk.get("/labels") == [renamed]
    ticket = await desk.receive()
    await put(desk, f"/tickets/{ticket['id']}", labelIds=[label["id"]])
    assert (await desk.client.delete(f"/labels/{label['id']}")).status_code == 204
    assert (await desk.look(ticket))["labelIds"] == []
    for wrong in ({"name": " "}, {"name": "x", "color": "red"}, {"name": "x\0"}):
        assert (await desk.client.post("/labels", json=wrong)).status_code == 400


async def test_teams_have_agents(desk: Desk) -> None:
    sari, budi = await desk.create_agent(), await desk.create_agent("Budi")
    team = await desk.post("/teams", 201, name="Gudang", agentIds=[sari, budi, sari])
    assert team["agentIds"] == [sari, budi]
    assert (await desk.post("/teams", 409, name="gudang"))["code"] == "TEAM_EXISTS"
    assert (await put(desk, f"/teams/{team['id']}", name="Gudang", agentIds=[budi]))["agentIds"] == [budi]
    refused = await desk.post("/teams", 400, name="Toko", agentIds=[10**12])
    assert refused["details"][0]["field"] == "agentIds"
    ticket = await desk.receive()
    await put(desk, f"/tickets/{ticket['id']}", teamId=team["id"])
    assert (await desk.client.delete(f"/teams/{team['id']}")).status_code == 204
    assert (await desk.look(ticket))["teamId"] is None


FILED = """
    INSERT INTO tickets (company_id, id, source, connection_id, contact_id, identity, client_number, connected_number,
                         status, last_message_at, silent_since, resolved_at, created_at, updated_at, label_ids, team_id)
    SELECT $1, 'tkt_' || n, 'MSGAPP_CLOUD', 'none', 'none', '', '', '', 'resolved', now(), now(), now(), now(), now(),
           ARRAY[$2, 'lab_other'], $3
      FROM generate_series(1, 1200) AS n"""


async def test_many_tickets_lose_a_deleted_label_and_team_in_several_transactions(
    desk: Desk, database: Database, company: Environments
) -> None:
    label, team = await desk.post("/labels", 201, name="Retur"), await desk.post("/teams", 201, name="Gudang")
    async with database.transaction() as tx:
        await tx.execute(FILED, company.test, label["id"], team["id"])
    for path, column, left in ((f"/labels/{label['id']}", "label_ids", ["lab_other"]),
                               (f"/teams/{team['id']}", "team_id", None)):  # fmt: skip
        assert (await desk.client.delete(path)).status_code == 204
        assert (await desk.client.delete(path)).status_code == 404
        async with database.connection() as db:
            found = await db.fetch(f"SELECT {column}, xmin::text FROM tickets WHERE company_id = $1", company.test)
        assert [one for one, _ in found] == [left] * 1200
        assert len({transaction for _, transaction in found}) > 1, "no ticket is locked until all are changed"


async def test_a_ticket_is_filed(desk: Desk, database: Database, company: Environments) -> None:
    sari = await desk.create_agent()
    label, team = await desk.post("/labels", 201, name="Retur"), await desk.post("/teams", 201, name="Gudang")
    ticket = await desk.receive()
    assert (ticket["labelIds"], ticket["priority"], ticket["teamId"], ticket["snoozedUntil"]) == (
        [],
        "normal",
        None,
        None,
    )
    until = build_instant(hours=2)
    body = {"labelIds": [label["id"]], "priority": "urgent", "teamId": team["id"], "snoozedUntil": until}
    filed = await put(desk, f"/tickets/{ticket['id']}", **body, actorId=sari)
    assert {name: filed[name] for name in body} == body
    assert await put(desk, f"/tickets/{ticket['id']}", **body) == filed
    events = (await desk.look(ticket))["events"][1:]
    expected = [("labels", label["id"]), ("priority", "urgent"), ("team", team["id"]), ("snoozed", until)]
    assert [(event["kind"], event["reason"]) for event in events] == expected
    assert {event["actorId"] for event in events} == {sari}
    assert await list_events(database, company.test) == ["ticket.opened", "ticket.updated"]


async def test_what_a_ticket_cannot_be_filed_under(desk: Desk) -> None:
    ticket = await desk.receive()
    unknown = {"labelIds": ["lab_01jc9y3q5me8w92v7x4t6r0n1k"], "teamId": "team_01jc9y3q5me8w92v7x4t6r0n1k"}
    wrong = unknown | {"snoozedUntil": build_instant(hours=-1), "priority": "highest", "actorId": 10**12}
    for field, value in wrong.items():
        refused = await put(desk, f"/tickets/{ticket['id']}", 400, **{field: value})
        assert refused["details"][0]["field"].partition("[")[0] == field
    far = await put(desk, f"/tickets/{ticket['id']}", 400, snoozedUntil=build_instant(days=400))
    assert far["details"][0]["field"] == "snoozedUntil"
    await desk.act(ticket, "resolve")
    refused = await put(desk, f"/tickets/{ticket['id']}", 409, snoozedUntil=build_instant(hours=1))
    assert refused["code"] == "TICKET_RESOLVED"
    assert (await put(desk, f"/tickets/{ticket['id']}", priority="low"))["priority"] == "low"


async def test_a_snoozed_ticket_wakes_by_time_and_by_a_message(desk: Desk) -> None:
    ticket = await desk.receive()
    path = f"/tickets/{ticket['id']}"
    await put(desk, path, snoozedUntil=build_instant(hours=2))
    await desk.pass_time(2 * 3600)

    async def look() -> Json | None:
        seen = await desk.look(ticket)
        return seen if seen["snoozedUntil"] is None else None

    awake = await eventually(look)
    assert (awake["events"][-1]["kind"], awake["events"][-1]["reason"]) == ("woken", "time")
    await put(desk, path, snoozedUntil=build_instant(hours=5))
    again = await desk.receive("Halo?")
    assert (again["id"], again["snoozedUntil"]) == (ticket["id"], None)
    assert (again["events"][-1]["kind"], again["events"][-1]["reason"]) == ("woken", "message")
    await put(desk, path, snoozedUntil=build_instant(hours=5))
    assert (await put(desk, path, snoozedUntil=None))["snoozedUntil"] is None
    await put(desk, path, snoozedUntil=build_instant(hours=5))
    assert (await desk.act(ticket, "resolve"))["snoozedUntil"] is None


async def test_lists_and_counts_by_what_tickets_are_filed_under(desk: Desk) -> None:
    sari = await desk.create_agent()
    label, team = await desk.post("/labels", 201, name="Retur"), await desk.post("/teams", 201, name="Gudang")
    first = (await desk.receive(sender="+628111111111"))["id"]
    second = (await desk.receive(sender="+628111111112"))["id"]
    third = (await desk.receive(sender="+628111111113"))["id"]
    await put(desk, f"/tickets/{first}", labelIds=[label["id"]], priority="high")
    await put(
        desk, f"/tickets/{second}", labelIds=[label["id"]], teamId=team["id"], snoozedUntil=build_instant(hours=9)
    )
    await desk.reply({"id": third}, sari)
    cases: list[tuple[Json, list[str]]] = [
        ({"labelId": label["id"]}, [second, first]),
        ({"labelId": label["id"], "status": "open", "priority": "high"}, [first]),
        ({"priority": "normal"}, [third, second]),
        ({"teamId": team["id"]}, [second]),
        ({"snoozed": "true"}, [second]),
        ({"snoozed": "false"}, [third, first]),
        ({"waiting": "true"}, [second, first]),
        ({"waiting": "false"}, [third]),
        ({"sort": "waitingSince:asc"}, [first, second, third]),
        ({"sort": "waitingSince:asc", "status": "open"}, [first, second]),
        ({"sort": "waitingSince:asc", "waiting": "true", "limit": 1, "page": 2}, [second]),
    ]
    for params, expected in cases:
        assert await list_ids(desk, **params) == expected, params
    assert await desk.get("/tickets/counts", agentId=sari) == {
        "mine": 1, "unassigned": 1, "all": 2, "snoozed": 1, "mineWaiting": 0, "unassignedWaiting": 1,
    }  # fmt: skip
    assert (await desk.get("/tickets/counts"))["mine"] == 0
    await desk.act({"id": third}, "resolve")
    assert await list_ids(desk, status="active") == [second, first]
