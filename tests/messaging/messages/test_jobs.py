"""Messages without any report: after a day they fail, once, and the change is announced."""

import httpx

from sapa.db.pool import Database
from sapa.messaging.messages.actions import STATUS_TIMEOUT
from sapa.messaging.messages.jobs import expire_unsettled
from sapa.messaging.messages.types import NO_WORD
from tests.factories import Environments
from tests.messaging.conversation_steps import advance, list_events
from tests.messaging.send_steps import (
    await_message,
    get_message,
    get_record,
    magic,
    send,
)


async def test_a_message_without_reports_fails_after_a_day(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    unclear = (await send(sandbox, 202, to=magic(117)))["messageId2"]
    sent = (await send(sandbox, to=magic(102)))["messageId2"]
    await advance(sandbox, int(STATUS_TIMEOUT.total_seconds()) - 600)
    await expire_unsettled(database)
    assert (await get_message(sandbox, unclear))["status"] == "pending"
    late = (await send(sandbox, 202, to=magic(117)))["messageId2"]

    await advance(sandbox, 1200)
    failed = await await_message(sandbox, unclear, lambda message: message["status"] != "pending")
    assert (failed["status"], failed["ack"], failed["error"]["code"], failed["sentAt"]) == ("failed", -1, NO_WORD, None)
    assert [event["kind"] for event in failed["events"]] == ["unclear", "failed"]
    record = await get_record(sandbox, unclear)
    assert record["failedAt"] == failed["failedAt"]
    assert record["response"] == {"error": {"code": "SEND_FAILED", "message": failed["error"]["message"]}}

    await expire_unsettled(database)
    assert (await get_message(sandbox, unclear)) == failed
    assert [(await get_message(sandbox, id))["status"] for id in (sent, late)] == ["sent", "pending"]
    updates = await list_events(database, company.test, "message.status.updated")
    changes = [(update["previousStatus"], update["status"]) for update in updates if update["messageId2"] == unclear]
    assert changes == [("pending", "failed")]
