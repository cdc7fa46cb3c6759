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
    """Get the files of a message.

    Each has a URL that needs no key and expires after 15 minutes. A new file is `waiting` until it is fetched from the
    channel.
    """
    return await pages.describe(call.context, call.db, call.company, message_id2)
