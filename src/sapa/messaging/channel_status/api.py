"""Endpoint for what channels think of a company's accounts."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.messaging.channel_status import actions
from sapa.messaging.channel_status.types import ChannelStatus

routes = Routes(
    "/channel-statuses",
    base=Base.MESSAGING,
    tag="Channels",
    about="What channels think of your accounts: ratings, limits, warnings.",
)


@routes.get("", scope=Scope.MESSAGES_READ)
async def list_channel_statuses(call: Call) -> list[ChannelStatus]:
    """List what channels think of your accounts.

    Of the connected accounts that a channel has reported on; only WhatsApp does. A change is the event
    `channel.status.updated`.
    """
    return await actions.list_statuses(call.db, call.company)
