"""Endpoints for scheduled replies."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.messaging.tickets import AgentInactive
from sapa.support import replies
from sapa.support.scheduled_replies import actions
from sapa.support.scheduled_replies.types import (
    ReplyBeingSent,
    ScheduledReply,
    ScheduledReplyId,
    ScheduledReplyIn,
    TooManyScheduledReplies,
)
from sapa.support.types import TicketId

ticket_routes = Routes("/tickets", base=Base.MESSAGING, tag="Tickets", resource="scheduled_replies")
routes = Routes("/scheduled-replies", base=Base.MESSAGING, tag="Tickets", resource="scheduled_replies")


@ticket_routes.get("/{id}/scheduled-replies", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def list_scheduled_replies(call: Call, id: TicketId) -> list[ScheduledReply]:
    """List a ticket's scheduled replies, the next one first.

    Those that could not be sent are in the list with the reason, until you delete them.
    """
    await replies.require_ticket(call.db, call.company, id)
    return await actions.list_of_ticket(call.db, call.company, id)


@ticket_routes.post(
    "/{id}/scheduled-replies",
    scope=Scope.MESSAGES_WRITE,
    raises=[NotFound, AgentInactive, TooManyScheduledReplies],
)
async def create_scheduled_reply(call: Call, id: TicketId, body: ScheduledReplyIn) -> ScheduledReply:
    """Send a reply later.

    At `sendAt` it is sent like any other reply of the agent, whatever was written meanwhile. It fails if the channel
    does not take it then, for example because its reply window has closed. A ticket has at most 20 of them.
    """
    return await actions.schedule(call.db, call.company, id, body)


@routes.delete("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound, ReplyBeingSent])
async def delete_scheduled_reply(call: Call, id: ScheduledReplyId) -> None:
    """Delete a scheduled reply: it is not sent."""
    await actions.delete(call.db, call.company, id)
