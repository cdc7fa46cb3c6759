"""What an agent's user hears of, over the API: the same settings that the profile at the console shows."""

import httpx

from sapa.access.actions import get_company
from sapa.db.pool import Database
from sapa.support.notification_settings.actions import change_settings
from sapa.support.notification_settings.types import AgentNotificationSettingsPatch
from tests.conftest import Installation
from tests.console.people import make_person, open_browser
from tests.db.blocked_calls import start_behind
from tests.factories import Environments, make_key
from tests.messaging.conftest import connect_messaging


async def test_an_agents_settings_are_the_users_own(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with open_browser(installation, await make_person(database, company)) as owner:
        async with connect_messaging(installation, (await make_key(database, company.live)).raw) as api:
            user = await _find_user(database, company)
            agent = (await api.post("/agents", json={"name": "Sari", "userId": user})).json()["data"]
            path = f"/agents/{agent['id']}/notification-settings"
            before = (await api.get(path)).json()["data"]
            kinds = ["assigned", "unassigned", "mentioned"]
            assert before == {"kinds": kinds, "sound": True, "desktop": False, "mail": True}
            changed = await api.put(path, json={"kinds": ["order", "order", "shipment"], "mail": False})
            assert changed.json()["data"] == before | {"kinds": ["order", "shipment"], "mail": False}
            assert (await api.get(path)).json()["data"] == changed.json()["data"]
            assert (await api.put(path, json={"kinds": ["moon"]})).status_code == 400
            await _check_others(api)
        shown = (await owner.get("/profile")).text
    assert 'value="shipment" checked' in shown
    assert 'value="assigned" checked' not in shown


async def test_concurrent_changes_of_different_settings_both_arrive(
    installation: Installation, database: Database, company: Environments
) -> None:
    await make_person(database, company)
    async with connect_messaging(installation, (await make_key(database, company.live)).raw) as api:
        user = await _find_user(database, company)
        agent = (await api.post("/agents", json={"name": "Sari", "userId": user})).json()["data"]
        path = f"/agents/{agent['id']}/notification-settings"
        async with database.transaction() as tx:
            patch = AgentNotificationSettingsPatch(sound=False)
            await change_settings(tx, await get_company(tx, company.live), agent["id"], patch)
            calling = await start_behind(tx, database, api.put(path, json={"mail": False}))
        assert (await calling).status_code == 200
        seen = (await api.get(path)).json()["data"]
    assert (seen["sound"], seen["mail"]) == (False, False)


async def _check_others(api: httpx.AsyncClient) -> None:
    robot = (await api.post("/agents", json={"name": "Robot", "type": "ai"})).json()["data"]
    refused = await api.get(f"/agents/{robot['id']}/notification-settings")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "AGENT_WITHOUT_USER")
    assert (await api.get("/agents/999999999/notification-settings")).status_code == 404


async def _find_user(database: Database, company: Environments) -> int:
    async with database.connection() as db:
        found: int = await db.fetchval(
            "SELECT user_id FROM memberships WHERE organisation_id ="
            " (SELECT organisation_id FROM companies WHERE company_id = $1)",
            company.live,
        )
    return found
