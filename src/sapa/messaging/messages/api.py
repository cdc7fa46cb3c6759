"""Endpoint for single messages."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.messaging.messages import actions
from sapa.messaging.messages.types import MessageId2, MessageWithEvents

routes = Routes("/messages", base=Base.MESSAGING, tag="Messages")


@routes.get("/{messageId2}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_message(call: Call, message_id2: MessageId2) -> MessageWithEvents:
    """Get one message with its events."""
    return await actions.get_with_events(call.db, call.company, message_id2)
