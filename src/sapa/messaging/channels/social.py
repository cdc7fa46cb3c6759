"""The parts shared by Messenger and Instagram: the Send API and its errors."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from sapa.messaging.channels.files import OutgoingFile
from sapa.messaging.channels.interface import (
    UNKNOWN_ERROR,
    Buttons,
    ChannelAccount,
    Choices,
    Content,
    ErrorMeaning,
    Identity,
    Media,
    MediaType,
    OutgoingMessage,
    SendReceipt,
    SendRefusal,
)
from sapa.messaging.channels.meta import (
    GraphError,
    post,
    read_refusal,
    upload,
)
from sapa.messaging.channels.reading import parse_json, text
from sapa.messaging.channels.render import list_rows, render, render_without_choices
from sapa.messaging.channels.social_callbacks import CAPTION
from sapa.outbound.client import AttachedFile, Form, NotSent, ProviderResponse, Unclear

SCOPED_ID = r"[0-9]{5,25}"
"""The form of the ids that a page or an account has for people."""
MAX_QUICK_REPLIES = 13
MAX_TITLE_LENGTH = 20
MB = 1_048_576
UPLOAD_SECONDS = 89 * 86_400.0
"""An id of an uploaded file is valid for 90 days."""

_FILE_TYPES = {"document": "file"}
_WINDOW = 2018278
_NO_USER = 2018001


async def send(
    connection: ChannelAccount, path: str, message: OutgoingMessage, special: Mapping[str, Any] | None = None
) -> SendReceipt | SendRefusal:
    """Files have no captions here, so the caption follows as a second message."""
    sent = parse_sent(await post(connection, path, build_message(message, special)))
    if isinstance(sent, SendReceipt) and isinstance(message.content, Media) and message.content.caption:
        return replace(sent, missing=await _send_caption(connection, path, message, message.content.caption))
    return sent


async def _send_caption(connection: ChannelAccount, path: str, message: OutgoingMessage, caption: str) -> str | None:
    """Why the caption is missing; None if it was sent. The file is sent already, whatever happens here."""
    body = build_message(replace(message, reference=CAPTION + message.reference), {"text": caption})
    try:
        outcome = parse_sent(await post(connection, path, body))
    except (NotSent, Unclear) as error:
        return f"The caption did not go out, as far as we know: {error}."
    if isinstance(outcome, SendRefusal):
        return f"The channel refused the caption: {outcome.reason} (code {outcome.code})"
    return None


async def upload_file(
    connection: ChannelAccount, path: str, type: MediaType, file: OutgoingFile, platform: str | None = None
) -> str | SendRefusal | None:
    """The Attachment Upload API. Names have to be ASCII. Meta documents it for accounts with a page; others may lack
    it."""
    attachment = {"type": _FILE_TYPES.get(type, type), "payload": {"is_reusable": True}}
    name = file.filename.encode("ascii", "replace").decode().replace("?", "_")
    form: Form = {
        **({} if platform is None else {"platform": platform}),
        "message": msgspec.json.encode({"attachment": attachment}).decode(),
        "filedata": AttachedFile(name, file.media_type, file.read(), file.size),
    }
    return await upload(connection, path, form, "attachment_id", classify, may_lack_edge=platform is not None)


def build_message(message: OutgoingMessage, special: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """`special` is the content that only one of the two channels supports. Our reference comes back in echoes."""
    return {
        "recipient": {"id": message.to.value},
        "messaging_type": "RESPONSE",
        **({"reply_to": {"mid": message.quoted}} if message.quoted else {}),
        "message": {**(special or _content(message.content)), "metadata": message.reference},
    }


async def react(
    connection: ChannelAccount, path: str, to: Identity, message_id: str, emoji: str | None
) -> SendRefusal | None:
    payload = {"message_id": message_id, **({"reaction": emoji} if emoji else {})}
    body = {"recipient": {"id": to.value}, "sender_action": "react" if emoji else "unreact", "payload": payload}
    return read_refusal(await post(connection, path, body), classify)


async def mark_read(connection: ChannelAccount, path: str, to: Identity, is_typing: bool) -> SendRefusal | None:
    """Marks the whole conversation as read."""
    body = {"recipient": {"id": to.value}, "sender_action": "typing_on" if is_typing else "mark_seen"}
    return read_refusal(await post(connection, path, body), classify)


def _content(content: Content) -> dict[str, Any]:
    if isinstance(content, Media):
        payload = {"attachment_id": content.channel_id} if content.channel_id else {"url": content.url}
        return {"attachment": {"type": _FILE_TYPES.get(content.type, content.type), "payload": payload}}
    if isinstance(content, Buttons | Choices) and len(list_rows(content)) <= MAX_QUICK_REPLIES:
        return _quick_replies(content)
    return {"text": render(content)}


def _quick_replies(content: Buttons | Choices) -> dict[str, Any]:
    replies = [{"content_type": "text", "title": _shorten(row.title), "payload": row.id} for row in list_rows(content)]
    return {"text": render_without_choices(content), "quick_replies": replies}


def _shorten(title: str) -> str:
    return title if len(title) <= MAX_TITLE_LENGTH else title[: MAX_TITLE_LENGTH - 1].rstrip() + "…"


def parse_sent(response: ProviderResponse) -> SendReceipt | SendRefusal:
    if refused := read_refusal(response, classify):
        return refused
    message_id = text(parse_json(response.body), "message_id")
    if message_id is None:
        raise Unclear("the channel accepted the message but returned no id")
    return SendReceipt(message_id)


def classify(graph_error: GraphError) -> ErrorMeaning:
    words = graph_error.message.lower()
    match graph_error.code:
        case 10 if "window" in words or graph_error.subcode == _WINDOW:
            return ErrorMeaning("window")
        case 100 if "no matching user" in words or graph_error.subcode == _NO_USER:
            return ErrorMeaning("recipient")
        case 551:
            return ErrorMeaning("recipient")
        case 4 | 613:
            return ErrorMeaning("rate", 60.0)
        case 2:
            return ErrorMeaning("temporary", 10.0)
        case 368:
            return ErrorMeaning("policy")
        case 0 | 3 | 10 | 190:
            return ErrorMeaning("auth")
        case code if 200 <= code <= 299:
            return ErrorMeaning("auth")
        case 100:
            return ErrorMeaning("validation")
    return ErrorMeaning("temporary", 10.0) if graph_error.is_transient else UNKNOWN_ERROR
