"""A process that dies between the channel's response and our commit: reports settle the message, and nothing is sent
twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import httpx
import psutil
import pytest

from sapa.db.due import add_interval
from sapa.db.pool import Database, open_database
from sapa.http.idempotency import LONGEST_OUTBOUND_CALL_SECONDS
from tests.conftest import Installation
from tests.db.scratch import connect
from tests.factories import Environments, make_company, make_key
from tests.faults.traffic import api_processes
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.send_steps import (
    await_message,
    build_message,
    list_records,
    magic,
)


@pytest.fixture
async def database(victim: Installation) -> AsyncIterator[Database]:
    async with open_database(victim.server.app_url, size=3, application="onlooker") as opened:
        yield opened


@pytest.fixture
async def company(database: Database) -> Environments:
    return await make_company(database)


@pytest.mark.long
@pytest.mark.one_server("looks for waiting locks, which are on the machine that has the rows")
async def test_a_report_settles_the_message_of_a_killed_process(
    victim: Installation, database: Database, company: Environments
) -> None:
    key = (await make_key(database, company.test)).raw
    once = {"idempotency-key": uuid4().hex}
    body = build_message(to=magic(100))
    async with connect_messaging(victim, key) as client:
        async with connect(victim.server.owner_url) as owner, owner.transaction():
            # Only the outcome writes here: it waits for our lock, with the channel's response in hand.
            await owner.execute("LOCK TABLE message_events IN EXCLUSIVE MODE")
            call = asyncio.create_task(client.post("/messages/send", json=body, headers=once))
            await eventually(lambda: is_answered_and_waiting(database, company.test))
            for process in api_processes(victim):
                with suppress(psutil.NoSuchProcess):  # one that ended with another
                    process.kill()
            with suppress(httpx.TransportError):
                await call
        (record,) = (await eventually(lambda: records_again(client)))["data"]
        assert record["messageId2"]
        settled = await await_message(client, record["messageId2"], lambda message: message["readAt"])
        assert (settled["ack"], settled["messageId"] is not None) == (3, True)
        (record,) = (await list_records(client))["data"]
        assert (record["readAt"], record["response"]["data"]["ack"]) == (settled["readAt"], 0)
        await let_time_pass(database, company.test)
        again = await client.post("/messages/send", json=body, headers=once)
        assert (again.status_code, again.headers["idempotency-replayed"]) == (202, "true")
        assert again.json()["data"]["messageId2"] == record["messageId2"]
        assert (await client.get("/sandbox/outbox")).json()["meta"]["total"] == 1


async def is_answered_and_waiting(database: Database, company_id: int) -> bool | None:
    """The simulator accepted the message, and the outcome waits to be stored."""
    async with database.connection() as db:
        asked = await db.fetchval("SELECT count(*) FROM sandbox_outbox WHERE company_id = $1", company_id)
        waiting = await db.fetchval(
            "SELECT count(*) FROM pg_locks WHERE relation = 'message_events'::regclass AND NOT granted"
        )
    return (asked == 1 and waiting >= 1) or None


async def records_again(client: httpx.AsyncClient) -> dict[str, Any] | None:
    """As soon as a new process serves them."""
    with suppress(httpx.TransportError, AssertionError):
        return await list_records(client)
    return None


async def let_time_pass(database: Database, company_id: int) -> None:
    """Until the dead call no longer counts as in flight."""
    async with database.transaction() as tx:
        await tx.execute(
            f"UPDATE idempotency_records SET created_at = {add_interval('created_at', 'make_interval(secs => $2)')}"
            " WHERE company_id = $1",
            company_id,
            -LONGEST_OUTBOUND_CALL_SECONDS,
        )
