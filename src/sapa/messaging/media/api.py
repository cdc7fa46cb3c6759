"""Endpoint for the files of messages."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.messaging.media import pages
from sapa.messaging.media.pages import MessageFiles
from sapa.messaging.messages.types import MessageId2

routes = Routes("/messages", base=Base.MESSAGING, tag="Messages")


@routes.get("/{messageId2}/media", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_message_media(call: Call, message_id2: MessageId2) -> MessageFiles:
    """Get the files that came with a message.

    Each has an address at which it can be fetched without a key for a quarter of an hour. A file that has just come in
    is `waiting` until it was fetched from the channel.
    """
    return await pages.describe(call.context, call.db, call.company, message_id2)
