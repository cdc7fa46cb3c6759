"""Endpoints that send messages."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Routes
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted
from sapa.messaging.history import actions as history
from sapa.messaging.messages.types import Message
from sapa.messaging.sending import actions
from sapa.messaging.sending.types import (
    ActiveTicket,
    InteractiveMessageIn,
    MediaMessageIn,
    MessageIn,
    TemplateMessageIn,
)
from sapa.messaging.templates.types import TemplateNotApproved, TemplateNotFound, TemplateParamsMismatch

routes = Routes(
    "/messages",
    base=Base.MESSAGING,
    tag="Messages",
    about="Sending on every channel, sent and received messages, their files, and the history of requests.",
)

SENDING = (ActiveTicket, *actions.REFUSALS)
WITH_TEMPLATE = (TemplateNotFound, TemplateNotApproved, TemplateParamsMismatch, *SENDING)


@routes.post("/send", scope=Scope.MESSAGES_WRITE, status=200, raises=SENDING, recorder=history.record_refusal)
async def send_message(call: OutboundCall, body: MessageIn) -> Message | Accepted[Message]:
    """Send a plain message.

    On channels with a reply window, use it for customers who wrote recently, and send a template to the others. 202
    means that the channel did not answer in time: the message stays pending until the channel reports on it, and is not
    sent again automatically.
    """
    return await actions.send(call, body)


@routes.post(
    "/send-template", scope=Scope.MESSAGES_WRITE, status=200, raises=WITH_TEMPLATE, recorder=history.record_refusal
)
async def send_message_template(call: OutboundCall, body: TemplateMessageIn) -> Message | Accepted[Message]:
    """Send a template.

    Channels that approve templates send it as approved, at any time. The others send it as text.
    """
    return await actions.send(call, body)


@routes.post("/send-media", scope=Scope.MESSAGES_WRITE, status=200, raises=SENDING, recorder=history.record_refusal)
async def send_message_media(call: OutboundCall, body: MediaMessageIn) -> Message | Accepted[Message]:
    """Send an image, a video, an audio file or a document."""
    return await actions.send(call, body)


@routes.post(
    "/send-interactive", scope=Scope.MESSAGES_WRITE, status=200, raises=SENDING, recorder=history.record_refusal
)
async def send_message_interactive(call: OutboundCall, body: InteractiveMessageIn) -> Message | Accepted[Message]:
    """Send buttons, a list of choices or a link.

    Channels without them send text with numbered choices.
    """
    return await actions.send(call, body)
