"""Endpoints for an agent's notification settings."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.support.notification_settings import actions
from sapa.support.notification_settings.types import (
    AgentNotificationSettings,
    AgentNotificationSettingsPatch,
    AgentWithoutUser,
)
from sapa.support.types import AgentPathId

routes = Routes("/agents", base=Base.MESSAGING, tag="Agents")


@routes.get("/{id}/notification-settings", scope=Scope.MESSAGES_READ, raises=[NotFound, AgentWithoutUser])
async def get_agent_notification_settings(call: Call, id: AgentPathId) -> AgentNotificationSettings:
    """Get which notifications an agent's user gets in the console and by mail."""
    return await actions.get_settings(call.db, call.company, int(id))


@routes.put("/{id}/notification-settings", scope=Scope.MESSAGES_WRITE, raises=[NotFound, AgentWithoutUser])
async def update_agent_notification_settings(
    call: Call, id: AgentPathId, body: AgentNotificationSettingsPatch
) -> AgentNotificationSettings:
    """Change which notifications an agent's user gets in the console and by mail.

    A field that you leave out keeps its value. People change their own under *Your profile*.
    """
    return await actions.change_settings(call.db, call.company, int(id), body)
