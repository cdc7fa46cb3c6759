"""What channels report besides messages: stored once, listed, announced, purged."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from sapa import ports
from sapa.access.actions import get_company
from sapa.context import AppContext
from sapa.db.pool import Database, Tx
from sapa.messaging.channel_events import actions as channel_events
from sapa.messaging.channel_events.types import PreferenceReceived
from sapa.messaging.channels.interface import Identity, MarketingPreference, Source
from sapa.messaging.channels.notices import build_notice
from sapa.values.company import Company
from tests.conftest import Installation
from tests.db.scratch import connect
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.conversation_steps import list_events, simulate_inbound
from tests.messaging.whatsapp_account import WhatsAppHook, connect_whatsapp

Json = dict[str, Any]

AYU = "+628123456789"
STOP = {"wa_id": "628123456789", "category": "marketing_messages", "value": "stop", "timestamp": 1_700_000_000}
REPLAY = "UPDATE channel_callbacks SET status = 'waiting', position = 0, tries = 0 WHERE company_id = $1"
TICKETS = "SELECT count(*) FROM tickets WHERE company_id = $1"
AGE = "UPDATE channel_events SET created_at = now() - interval '91 days' WHERE company_id = $1 AND kind = 'error'"


@pytest.fixture
def hook(installation: Installation, company: Environments) -> WhatsAppHook:
    return connect_whatsapp(installation, company.live)


async def list_all(client: httpx.AsyncClient, **query: Any) -> list[Json]:
    answer = await client.get("/channel-events", params=query)
    assert answer.status_code == 200, answer.text
    found: list[Json] = answer.json()["data"]
    return found


async def wait_for(client: httpx.AsyncClient, count: int, **query: Any) -> list[Json]:
    async def look() -> list[Json] | None:
        found = await list_all(client, **query)
        return found if len(found) >= count else None

    return await eventually(look)


async def test_a_preference_is_an_event_and_opens_no_ticket(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await simulate_inbound(sandbox, source="MSGAPP_CLOUD", preference="stop", **{"from": AYU})
    (event,) = await wait_for(sandbox, 1)
    assert (event["kind"], event["name"], event["source"]) == ("preference", "marketing_messages", "MSGAPP_CLOUD")
    assert (event["clientNumber"], event["data"]["value"]) == (AYU, "stop")
    assert event["contactId"] is not None
    answer = await sandbox.get(f"/channel-events/{event['id']}")
    assert answer.json()["data"] == event
    async with database.connection() as db:
        assert await db.fetchval(TICKETS, company.test) == 0
    assert await list_events(database, company.test, "message.received") == []


@pytest.mark.parametrize(
    ("source", "sender", "content", "kind", "name"),
    [
        ("MSGAPP_CLOUD", AYU, {"error": {"code": 131000, "message": "Oops"}}, "error", "131000"),
        ("SOCIAL_NETWORK", "24681357", {"preference": "resume"}, "preference", "notification_messages"),
        ("SOCIAL_NETWORK", "24681357", {"referral": {"sourceId": "1202"}}, "referral", "ADS"),
        ("SHORT_VIDEO", "conversation-7", {"referral": {"sourceId": "1202"}}, "referral", "ad"),
    ],
)
async def test_what_is_not_a_message_is_an_event(
    sandbox: httpx.AsyncClient, source: str, sender: str, content: Json, kind: str, name: str
) -> None:
    await simulate_inbound(sandbox, source=source, **{"from": sender}, **content)
    (event,) = await wait_for(sandbox, 1)
    assert (event["source"], event["kind"], event["name"]) == (source, kind, name)


async def test_events_are_stored_once_and_listed_by_source_kind_and_person(
    hook: WhatsAppHook, live: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    other = {**STOP, "wa_id": "628999999999", "value": "resume"}
    await hook.send_change({"user_preferences": [STOP]}, field="user_preferences")
    await hook.send_change({"user_preferences": [STOP, other]}, field="user_preferences")
    await hook.send_change({"things": [{"id": 1}]}, field="things_of_tomorrow")
    await hook.send_change({"errors": [{"code": 131000, "title": "Oops"}]})
    found = await wait_for(live, 4)
    assert sorted(event["kind"] for event in found) == ["error", "preference", "preference", "unknown"]
    first, second = await list_all(live, kind="preference")
    assert {first["data"]["value"], second["data"]["value"]} == {"stop", "resume"}
    assert await list_all(live, contactId=first["contactId"]) == [first]
    assert await list_all(live, kind="preference", contactId=second["contactId"]) == [second]
    assert len(await list_all(live, source="MSGAPP_CLOUD", kind="unknown")) == 1
    assert await list_all(live, source="MAIL") == []
    async with database.connection() as db:
        await db.execute(REPLAY, company.live)

    async def look() -> bool | None:
        async with database.connection() as db:
            statement = "SELECT count(*) FROM channel_callbacks WHERE company_id = $1 AND status = 'waiting'"
            return await db.fetchval(statement, company.live) == 0 or None

    await eventually(look)
    answer = (await live.get("/channel-events")).json()
    assert (len(answer["data"]), answer["meta"]["total"]) == (4, 4)


@pytest.fixture
async def owner(database: Database, company: Environments) -> Company:
    async with database.connection() as db:
        return await get_company(db, company.live)


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[PreferenceReceived]:
    """What a subscriber in `domains.py` would get."""
    found: list[PreferenceReceived] = []

    async def collect(tx: Tx, company: Company, announcement: PreferenceReceived) -> None:
        found.append(announcement)

    monkeypatch.setattr(ports, "_subscriptions", {PreferenceReceived: [collect]})
    return found


async def test_a_preference_is_announced_once(
    context: AppContext, database: Database, owner: Company, announced: list[PreferenceReceived]
) -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    people, choice = [Identity("phone", AYU)], MarketingPreference("stop", "marketing_messages", "stop it")
    notice = build_notice("preference", "marketing_messages", STOP, at, sender=people, preference=choice)
    for _ in range(3):
        async with database.transaction() as tx:
            await channel_events.record(tx, owner, Source.MSGAPP_CLOUD, "chan_1", notice)
    (announcement,) = announced
    assert (announcement.source, announcement.connection_id) == (Source.MSGAPP_CLOUD, "chan_1")
    assert (announcement.preference, announcement.at, announcement.identities) == (choice, at, people)
    assert announcement.contact_id.startswith("ctc_")


async def test_old_events_are_purged_and_the_total_follows(
    installation: Installation, hook: WhatsAppHook, live: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await hook.send_change({"errors": [{"code": 131000, "title": "Oops"}]})
    await hook.send_change({"user_preferences": [STOP]}, field="user_preferences")
    await wait_for(live, 2)
    async with connect(installation.server.owner_url) as owner:
        await owner.execute(AGE, company.live)
    await channel_events.purge_old(database)
    answer = (await live.get("/channel-events")).json()
    assert ([event["kind"] for event in answer["data"]], answer["meta"]["total"]) == (["preference"], 1)
    assert (await live.get("/channel-events", params={"kind": "error"})).json()["meta"]["total"] == 0


async def test_an_unknown_event_is_not_found(live: httpx.AsyncClient) -> None:
    answer = await live.get("/channel-events/che_01jc9y3q5me8w92v7x4t6r0n1k")
    assert answer.status_code == 404
