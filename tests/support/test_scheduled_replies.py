"""Replies that are sent later: at their time, once, or not at all."""

from asyncio import gather
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sapa.db.pool import Database, announce_due
from sapa.support.scheduled_replies.queries import QUEUE
from tests.factories import Environments
from tests.http.wire import eventually
from tests.support.ticket_steps import Desk

Json = dict[str, Any]

ROW = "SELECT to_json(r)::text FROM scheduled_replies r WHERE company_id = $1 AND id = $2"
PUT_BACK = "INSERT INTO scheduled_replies SELECT * FROM json_populate_record(NULL::scheduled_replies, $1::text::json)"


async def schedule(desk: Desk, ticket: Json, agent_id: int, status: int = 201, **fields: Any) -> Json:
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    body = {"agentId": agent_id, "body": "Sudah dikirim.", "sendAt": later} | fields
    made: Json = await desk.post(f"/tickets/{ticket['id']}/scheduled-replies", status, **body)
    return made


async def list_scheduled(desk: Desk, ticket: Json) -> list[Json]:
    found: list[Json] = await desk.get(f"/tickets/{ticket['id']}/scheduled-replies")
    return found


async def list_sent(desk: Desk, ticket: Json) -> list[str]:
    return [one["body"] for one in (await desk.look(ticket))["messages"] if one["direction"] == "out"]


async def test_a_reply_is_sent_at_its_time_and_a_deleted_one_never(desk: Desk) -> None:
    sari, ticket = await desk.create_agent(), await desk.receive()
    made = await schedule(desk, ticket, sari)
    deleted = await schedule(desk, ticket, sari, body="Tidak jadi.")
    assert [one["id"] for one in await list_scheduled(desk, ticket)] == [made["id"], deleted["id"]]
    path = f"/scheduled-replies/{deleted['id']}"
    assert [(await desk.client.delete(path)).status_code for _ in range(2)] == [204, 404]
    assert await list_sent(desk, ticket) == []
    await desk.pass_time(3_700)

    async def is_sent() -> bool | None:
        return bool(await list_sent(desk, ticket)) or None

    await eventually(is_sent)
    assert await list_sent(desk, ticket) == ["Sudah dikirim."]
    assert (await desk.look(ticket))["agentId"] == sari

    async def is_empty() -> bool | None:
        return not await list_scheduled(desk, ticket) or None

    await eventually(is_empty)


async def test_one_that_the_channel_refuses_stays_with_the_reason(desk: Desk) -> None:
    """The reply window is closed by then."""
    sari, ticket = await desk.create_agent(), await desk.receive()
    await schedule(desk, ticket, sari, sendAt=(datetime.now(UTC) + timedelta(days=3)).isoformat())
    await desk.pass_time(4 * 86_400)

    async def find_failed() -> Json | None:
        [one] = await list_scheduled(desk, ticket)
        return one if one["status"] == "failed" else None

    failed = await eventually(find_failed)
    assert failed["failureReason"]
    assert await list_sent(desk, ticket) == []


async def test_one_whose_worker_died_is_not_sent_twice(desk: Desk, database: Database, company: Environments) -> None:
    """It had stored the message, and left the row."""
    sari, ticket = await desk.create_agent(), await desk.receive()
    made = await schedule(desk, ticket, sari)

    async def find_row() -> str | None:
        async with database.connection() as db:
            found: str | None = await db.fetchval(ROW, company.test, made["id"])
            return found

    async def is_gone() -> bool | None:
        return await find_row() is None or None

    row = await find_row()
    await desk.pass_time(3_700)
    await eventually(is_gone)
    async with database.transaction() as tx:
        await tx.execute(PUT_BACK, row)
        announce_due(tx, QUEUE)
    await eventually(is_gone)
    assert await list_sent(desk, ticket) == ["Sudah dikirim."]


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"sendAt": "2020-01-01T00:00:00Z"}, "sendAt"),
     ({"sendAt": "2099-01-01T00:00:00"}, "sendAt"), ({"sendAt": "9999-12-31T23:59:59.9999Z"}, "sendAt"),
     ({"sendAt": "9999-12-31T23:00:00-10:00"}, "sendAt"), ({"body": " "}, "body")],
    ids=["past", "no zone", "rounded up", "beyond the last year", "blank"],
)  # fmt: skip
async def test_what_cannot_be_scheduled_is_refused(desk: Desk, fields: Json, field: str) -> None:
    sari, ticket = await desk.create_agent(), await desk.receive()
    refused = await schedule(desk, ticket, sari, 400, **fields)
    assert refused["details"][0]["field"] == field


async def test_a_ticket_has_twenty_at_most_however_many_come_at_once(desk: Desk) -> None:
    sari, ticket = await desk.create_agent(), await desk.receive()
    body = {"agentId": sari, "body": "Sudah dikirim.", "sendAt": "2099-01-31T02:00:00Z"}
    path = f"/tickets/{ticket['id']}/scheduled-replies"
    responses = await gather(*(desk.client.post(path, json=body) for _ in range(24)))
    assert Counter(one.status_code for one in responses) == {201: 20, 409: 4}
    assert len(await list_scheduled(desk, ticket)) == 20
