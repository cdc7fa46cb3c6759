"""What channels think of accounts: called back, read, stored and announced."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from sapa.access.actions import get_company, read_clock
from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.messaging.channel_status import actions
from sapa.messaging.channels.account_reports import AccountReport, AccountWarning
from sapa.messaging.channels.interface import Source
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.connections.environment import get_environment
from tests.cli.command import sapa
from tests.conftest import Installation
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.conversation_steps import advance, list_events

Json = dict[str, Any]
KIND = "channel.status.updated"
FIELDS = ("quality", "messagingLimit", "isUnlimited", "throughput")


async def change(client: httpx.AsyncClient, **fields: Any) -> Json:
    answer = await client.post("/sandbox/channel-status", json={"source": "MSGAPP_CLOUD", **fields})
    assert answer.status_code == 200, answer.text
    made: Json = answer.json()["data"]
    return made


async def list_statuses(client: httpx.AsyncClient) -> list[Json]:
    answer = await client.get("/channel-statuses")
    assert answer.status_code == 200, answer.text
    found: list[Json] = answer.json()["data"]
    return found


async def wait_for_status(client: httpx.AsyncClient, **expected: Any) -> Json:
    async def look() -> Json | None:
        found = await list_statuses(client)
        return next((status for status in found if expected.items() <= status.items()), None)

    return await eventually(look)


async def test_a_change_at_the_channel_is_stored_and_announced(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    assert await list_statuses(sandbox) == []
    made = await change(sandbox, quality="RED", messagingLimit=250)
    assert [name in body for name, body in zip(("FLAGGED", "business_capability"), made["callbacks"], strict=True)]
    status = await wait_for_status(sandbox, quality="RED")
    assert [status[name] for name in FIELDS] == ["RED", 250, False, "STANDARD"]
    assert (status["source"], status["connectedNumber"], status["warnings"]) == ("MSGAPP_CLOUD", "+12025550140", [])
    assert status["checkedAt"] is not None
    events = await list_events(database, company.test, KIND)
    assert {name for event in events for name in event["changes"]} == {"quality", "messagingLimit", "throughput"}
    latest = {name: value for name, value in events[-1].items() if name not in {"changes", "updatedAt", "checkedAt"}}
    assert latest.items() <= status.items()
    await change(sandbox, isUnlimited=True, throughput="HIGH", quality="GREEN")
    status = await wait_for_status(sandbox, quality="GREEN", isUnlimited=True, throughput="HIGH")
    assert status["messagingLimit"] is None
    assert len({event["id"] for event in await list_events(database, company.test, KIND)}) == 1


async def test_the_same_change_again_is_not_announced(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await change(sandbox, messagingLimit=2000)
    await wait_for_status(sandbox, messagingLimit=2000, quality="GREEN")
    before = len(await list_events(database, company.test, KIND))
    assert (await change(sandbox, messagingLimit=2000))["callbacks"] == []
    await change(sandbox, warning="ACCOUNT_VIOLATION")

    async def look() -> list[Json] | None:
        events = await list_events(database, company.test, KIND)
        return events[before:] or None

    assert [event["changes"] for event in await eventually(look)] == [["warnings"]]


async def test_warnings_begin_expire_and_end(sandbox: httpx.AsyncClient) -> None:
    await change(sandbox, warning="ACCOUNT_RESTRICTION")
    await change(sandbox, warning="DISABLED_UPDATE")

    async def look(*codes: str) -> Json | None:
        found = await list_statuses(sandbox)
        return found[0] if found and {one["code"] for one in found[0]["warnings"]} == set(codes) else None

    status = await eventually(lambda: look("RESTRICTED_BIZ_INITIATED_MESSAGING", "DISABLED_UPDATE"))
    restriction, banned = sorted(status["warnings"], key=lambda one: str(one["code"]), reverse=True)
    assert (restriction["severity"], banned["severity"]) == ("critical", "critical")
    assert banned["message"].startswith("DISABLE, ")
    assert restriction["expiresAt"] is not None
    assert banned["expiresAt"] is None
    await advance(sandbox, 8 * 86_400)
    await eventually(lambda: look("DISABLED_UPDATE"))
    await change(sandbox, warning="REINSTATE")
    await eventually(look)


async def test_only_some_channels_rate_accounts(sandbox: httpx.AsyncClient, live: httpx.AsyncClient) -> None:
    refused = await sandbox.post("/sandbox/channel-status", json={"source": "MAIL", "quality": "RED"})
    assert refused.status_code == 400
    assert refused.json()["error"]["details"][0]["field"] == "source"
    both = {"source": "MSGAPP_CLOUD", "messagingLimit": 250, "isUnlimited": True}
    assert (await sandbox.post("/sandbox/channel-status", json=both)).status_code == 400
    assert (await live.post("/sandbox/channel-status", json=both)).status_code == 403
    unusual = await sandbox.post("/sandbox/channel-status", json={"source": "MSGAPP_CLOUD", "messagingLimit": 7})
    assert unusual.json()["error"]["details"][0]["message"] == "must be one of 250, 2000, 10000, 100000"


@pytest.fixture
async def connected(context: AppContext, database: Database, company: Environments) -> ConnectedChannel:
    async with database.connection() as db:
        owner = await get_company(db, company.test)
        found = await get_environment(owner).accounts.find_by_source(context, db, owner, Source.MSGAPP_COEX)
    assert found is not None
    return found


async def test_a_late_report_does_not_replace_a_newer_one(
    database: Database, company: Environments, connected: ConnectedChannel
) -> None:
    now = datetime.now(UTC)
    warning = AccountWarning("ACCOUNT_VIOLATION", "warning", "SPAM")
    reports = [
        AccountReport(now - timedelta(hours=1), quality="RED", messaging_limit=250, warnings=[warning]),
        AccountReport(now - timedelta(hours=3), quality="GREEN", messaging_limit=2_000, throughput="HIGH"),
        AccountReport(now + timedelta(days=9), throughput="HIGH"),
        AccountReport(now - timedelta(hours=1), quality="RED", messaging_limit=250, warnings=[warning]),
    ]
    async with database.transaction() as tx:  # one, because the channel is asked as soon as it is committed
        clock = await read_clock(tx, company.test)
        for report in reports:
            await actions.receive(tx, connected.connection.company, connected, report, clock.now)
    events = await list_events(database, company.test, KIND)
    assert [event["changes"] for event in events[:2]] == [["quality", "messagingLimit", "warnings"], ["throughput"]]
    assert [event["quality"] for event in events[:2]] == ["RED", "RED"]


async def test_a_test_of_the_channel_reads_its_rating(
    installation: Installation, sandbox: httpx.AsyncClient, company: Environments
) -> None:
    assert await list_statuses(sandbox) == []
    tested = sapa(installation.data, "channel", "test", "--company", str(company.test), "--source", "MSGAPP_COEX")
    assert tested.code == 0, tested.err
    (status,) = await list_statuses(sandbox)
    assert [status[name] for name in FIELDS] == ["GREEN", 100_000, False, "STANDARD"]
    assert status["source"] == "MSGAPP_COEX"
