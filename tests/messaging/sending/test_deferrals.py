"""A mail server that asks to try later: the message is pending, and sent again until it is accepted or 13 hours are
over."""

from datetime import timedelta
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.messaging.sending import queries
from sapa.messaging.sending.deferrals import SCHEDULE
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.consents.steps import find_link, make_promo, post_link, read_mails, send_promo
from tests.messaging.conversation_steps import get_message, send, settled

ABANDON = """
    UPDATE deferred_messages SET claimed_at = now() - make_interval(secs => $2 + 1)
     WHERE company_id = $1"""
COUNT = "SELECT count(*) FROM deferred_messages WHERE company_id = $1"


async def advance(sandbox: httpx.AsyncClient, by: timedelta) -> None:
    answer = await sandbox.post("/sandbox/clock/advance", json={"seconds": int(by.total_seconds())})
    assert answer.status_code == 200, answer.text


async def count_sent(sandbox: httpx.AsyncClient) -> int:
    total: int = (await sandbox.get("/sandbox/outbox")).json()["meta"]["total"]
    return total


async def wait_for_tries(sandbox: httpx.AsyncClient, id: str, tries: int) -> dict[str, Any]:
    """The message, once this many tries are recorded."""

    async def look() -> dict[str, Any] | None:
        message = await get_message(sandbox, id)
        kinds = [event["kind"] for event in message["events"]]
        return message if kinds.count("deferred") + kinds.count("failed") >= tries else None

    return await eventually(look)


def test_the_schedule_is_the_promised_one() -> None:
    minutes = [after // timedelta(minutes=1) for after in SCHEDULE]
    assert minutes == [1, 5, 15, 60, *range(120, 781, 60)]


async def test_a_deferred_mail_is_sent_again_until_it_is_accepted(sandbox: httpx.AsyncClient) -> None:
    answer = await send(sandbox, "rate@simulator.test", "MAIL", subject="Pesanan")
    deferred = answer.json()["data"]
    assert (answer.status_code, deferred["ack"], deferred["error"]["code"]) == (202, 0, "451")
    id = deferred["messageId2"]
    await advance(sandbox, timedelta(minutes=1))
    waiting = await wait_for_tries(sandbox, id, 2)
    assert (waiting["status"], await count_sent(sandbox)) == ("pending", 2)
    await advance(sandbox, timedelta(minutes=4))
    accepted = await settled(sandbox, id, {"sentAt"})
    assert (accepted["status"], accepted["ack"], accepted["error"]) == ("sent", 1, None)
    assert accepted["messageId"] is not None
    await advance(sandbox, timedelta(hours=2))
    assert await count_sent(sandbox) == 3


@pytest.mark.long
async def test_a_mail_that_is_deferred_for_too_long_fails(sandbox: httpx.AsyncClient) -> None:
    id = (await send(sandbox, "tempfail@simulator.test", "MAIL", subject="Pesanan")).json()["data"]["messageId2"]
    passed = timedelta()
    for tries, after in enumerate(SCHEDULE, 2):
        await advance(sandbox, after - passed)
        passed = after
        message = await wait_for_tries(sandbox, id, tries)
    assert (message["status"], message["ack"], message["error"]["code"]) == ("failed", -1, "451")
    assert await count_sent(sandbox) == 1 + len(SCHEDULE)


async def test_a_mail_whose_worker_died_is_not_sent_again(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    id = (await send(sandbox, "tempfail@simulator.test", "MAIL", subject="Pesanan")).json()["data"]["messageId2"]
    async with database.connection() as db:
        await db.execute(ABANDON, company.test, queries.ABANDONED_SECONDS)

    async def look() -> dict[str, Any] | None:
        message = await get_message(sandbox, id)
        return message if message["events"][-1]["kind"] == "unclear" else None

    message = await eventually(look)
    assert (message["status"], message["error"]["code"]) == ("pending", "UNCLEAR")
    await advance(sandbox, timedelta(hours=1))
    assert await count_sent(sandbox) == 1
    async with database.connection() as db:
        assert await db.fetchval(COUNT, company.test) == 0


async def test_a_deferred_promotion_is_not_sent_after_a_stop(sandbox: httpx.AsyncClient) -> None:
    await make_promo(sandbox)
    answer = await send_promo(sandbox, "rate@simulator.test", "MAIL")
    assert answer.status_code == 202, answer.text
    (mail,), sent = await read_mails(sandbox), await count_sent(sandbox)
    assert (await post_link(find_link(mail))).status_code == 200
    await advance(sandbox, timedelta(minutes=1))
    message = await wait_for_tries(sandbox, answer.json()["data"]["messageId2"], 2)
    assert (message["status"], message["error"]["code"]) == ("failed", "CONSENT_MISSING")
    assert await count_sent(sandbox) == sent


@pytest.mark.parametrize("name", ["unknown", "tempfail"])
async def test_the_record_of_the_call_shows_the_outcome(sandbox: httpx.AsyncClient, name: str) -> None:
    answer = await send(sandbox, f"{name}@simulator.test", "MAIL", subject="Pesanan")
    [record] = (await sandbox.get("/messages/requests")).json()["data"]
    assert answer.status_code == (502 if name == "unknown" else 202)
    assert ("error" in record["response"]) == (name == "unknown")
