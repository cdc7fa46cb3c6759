"""Endpoint for how channels rate a company's accounts."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.messaging.channel_status import actions
from sapa.messaging.channel_status.types import ChannelStatus

routes = Routes(
    "/channel-statuses",
    base=Base.MESSAGING,
    tag="Channels",
    about="How channels rate your accounts: ratings, limits and warnings.",
)


@routes.get("", scope=Scope.MESSAGES_READ)
async def list_channel_statuses(call: Call) -> list[ChannelStatus]:
    """List how channels rate your accounts.

    Lists the connected accounts that a channel has reported on; only WhatsApp reports. Each change is an event
    `channel.status.updated`.
    """
    return await actions.list_statuses(call.db, call.company)
