"""Reads and changes what an agent's user wants to hear of. The settings belong to the user."""

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict, replace

from sapa.db.pool import Connection, Tx
from sapa.people import actions as people
from sapa.people.profile import actions as profile
from sapa.people.profile.types import AlertSettings
from sapa.support.agents import actions as agents
from sapa.support.notification_settings.types import (
    AgentNotificationSettings,
    AgentNotificationSettingsPatch,
    AgentWithoutUser,
)
from sapa.values.company import Company


async def get_settings(db: Connection, company: Company, agent_id: int) -> AgentNotificationSettings:
    organisation_id, user_id = await _get_member(db, company, agent_id)
    return _build(await profile.get_alerts(db, organisation_id, user_id))


async def change_settings(
    tx: Tx, company: Company, agent_id: int, patch: AgentNotificationSettingsPatch
) -> AgentNotificationSettings:
    organisation_id, user_id = await _get_member(tx, company, agent_id)
    changes = {name: value for name, value in asdict(patch).items() if value is not UNSET}
    if "kinds" in changes:
        changes["kinds"] = tuple(dict.fromkeys(changes["kinds"]))
    alerts = replace(await profile.lock_alerts(tx, organisation_id, user_id), **changes)
    await profile.save_alerts(tx, organisation_id, user_id, alerts)
    return _build(alerts)


async def _get_member(db: Connection, company: Company, agent_id: int) -> tuple[int, int]:
    """The organisation and the user."""
    agent = await agents.get_agent(db, company, agent_id)
    if agent.user_id is None:
        raise AgentWithoutUser
    return await people.get_organisation(db, company.id), agent.user_id


def _build(alerts: AlertSettings) -> AgentNotificationSettings:
    return msgspec.convert(asdict(alerts), AgentNotificationSettings)
