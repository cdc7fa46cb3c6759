"""Endpoints that send messages."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Routes, ToolTraits
from sapa.http.errors import NotFound
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted
from sapa.messaging.connections.types import ChannelNotConnected
from sapa.messaging.consents.types import ConsentMissing
from sapa.messaging.history import actions as history
from sapa.messaging.messages.types import ChannelUnsupported, Message, MessageId2, MessageWithEvents, SendFailed
from sapa.messaging.sending import actions, signals
from sapa.messaging.sending.types import (
    ActiveTicket,
    InteractiveMessageIn,
    MediaMessageIn,
    MessageIn,
    MessageNotOnChannel,
    ReactionIn,
    TemplateMessageIn,
    WindowClosed,
)
from sapa.messaging.templates.types import (
    TemplateNotApproved,
    TemplateNotFound,
    TemplateNotSendable,
    TemplateParamsMismatch,
)

routes = Routes(
    "/messages",
    base=Base.MESSAGING,
    tag="Messages",
    about="Sending on every channel, sent and received messages, their files, and the history of requests.",
)

SENDING = (ActiveTicket, *actions.REFUSALS)
WITH_TEMPLATE = (
    TemplateNotFound,
    TemplateNotApproved,
    TemplateNotSendable,
    TemplateParamsMismatch,
    ConsentMissing,
    *SENDING,
)
SIGNALLING = (NotFound, MessageNotOnChannel, ChannelUnsupported, ChannelNotConnected, SendFailed)


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

    Channels that approve templates send it as approved, at any time. The others send it as text. A MARKETING template
    is not sent to somebody who unsubscribed (CONSENT_MISSING); the other categories are.

    `params` fill the parameters of the body, then of the header, then of the buttons in their order. `components` names
    them by their places instead; cards, products, locations and the end of an offer are only there. The one-time code
    of an authentication template is one param: it goes into the text and the button. The stored message does not have
    it.
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
    """Send buttons, a list of choices, a link, a form, products, or a request for a location.

    Channels without buttons, lists and links send text with numbered choices. Forms, products and requests for a
    location need a channel that has them.
    """
    return await actions.send(call, body)


@routes.put("/{messageId2}/reaction", scope=Scope.MESSAGES_WRITE, raises=[WindowClosed, *SIGNALLING])
async def react_to_message(call: OutboundCall, message_id2: MessageId2, body: ReactionIn) -> MessageWithEvents:
    """React to a message.

    A second reaction replaces the first. It is an event `reacted` of the message.
    """
    return await signals.react(call, message_id2, body.emoji)


@routes.delete("/{messageId2}/reaction", scope=Scope.MESSAGES_WRITE, raises=[WindowClosed, *SIGNALLING])
async def remove_message_reaction(call: OutboundCall, message_id2: MessageId2) -> None:
    """Remove your reaction to a message."""
    await signals.react(call, message_id2, None)


@routes.post(
    "/{messageId2}/read",
    scope=Scope.MESSAGES_WRITE,
    status=204,
    raises=SIGNALLING,
    tool=ToolTraits(is_destructive=False),
)
async def mark_message_read(call: OutboundCall, message_id2: MessageId2) -> None:
    """Show the customer that their message was read.

    On some channels this includes all earlier ones.
    """
    await signals.mark_read(call, message_id2, is_typing=False)


@routes.post(
    "/{messageId2}/typing",
    scope=Scope.MESSAGES_WRITE,
    status=204,
    raises=SIGNALLING,
    tool=ToolTraits(is_destructive=False),
)
async def show_typing_indicator(call: OutboundCall, message_id2: MessageId2) -> None:
    """Show the customer that somebody is answering their message.

    It ends with the next message, or after some seconds. On some channels it also marks the message as read.
    """
    await signals.mark_read(call, message_id2, is_typing=True)
