"""Endpoint for single messages."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.messaging.messages import queries
from sapa.messaging.messages.types import MessageId2, MessageWithEvents

routes = Routes("/messages", base=Base.MESSAGING, tag="Messages")


@routes.get("/{messageId2}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_message(call: Call, message_id2: MessageId2) -> MessageWithEvents:
    """Get one message with its events."""
    message = await queries.get_message(call.db, call.company.id, message_id2)
    events = await queries.list_events(call.db, call.company.id, message_id2)
    return MessageWithEvents(
        **{name: getattr(message, name) for name in message.__struct_fields__} | {"events": events}
    )
