"""The parts shared by Messenger and Instagram: the Send API, its errors and its callbacks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import aiohttp
import msgspec
from msgspec.structs import replace

from sapa.messaging.channels.interface import (
    UNKNOWN_ERROR,
    Buttons,
    ChannelAccount,
    Choices,
    Content,
    ErrorMeaning,
    Identity,
    InboundMedia,
    Interaction,
    Item,
    Media,
    MediaType,
    MessageAmendment,
    OutgoingFile,
    OutgoingMessage,
    ReceivedItem,
    SendReceipt,
    SendRefusal,
    StatusReport,
)
from sapa.messaging.channels.meta import (
    GraphError,
    post,
    read_refusal,
    upload,
)
from sapa.messaging.channels.reading import Node, get, milliseconds, node, nodes, parse_json, text, texts
from sapa.messaging.channels.render import list_rows, render, render_without_choices
from sapa.outbound.client import NotSent, ProviderResponse, Unclear
from sapa.outbound.file_payload import FilePayload

SCOPED_ID = r"[0-9]{5,25}"
"""The form of the ids that a page or an account has for people."""
MAX_QUICK_REPLIES = 13
MAX_TITLE_LENGTH = 20
MB = 1_048_576
UPLOAD_SECONDS = 89 * 86_400.0
"""An id of an uploaded file is valid for 90 days."""

_FILE_TYPES = {"document": "file"}
_OUR_TYPES = {"file": "document"}
_FILE_KINDS = {"image", "video", "audio", "file"}
_WINDOW = 2018278
_NO_USER = 2018001
_CAPTION = "caption of "
_is_reference = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


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
    body = build_message(replace(message, reference=_CAPTION + message.reference), {"text": caption})
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
    form = aiohttp.FormData()
    if platform is not None:
        form.add_field("platform", platform)
    attachment = {"type": _FILE_TYPES.get(type, type), "payload": {"is_reusable": True}}
    form.add_field("message", msgspec.json.encode({"attachment": attachment}).decode())
    name = file.filename.encode("ascii", "replace").decode().replace("?", "_")
    form.add_field("filedata", FilePayload(file.read(), file.size, file.media_type), filename=name)
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


def parse_callback(account_id: str, kind: str, body: bytes) -> Sequence[Item]:
    """One app may have several pages with one callback address: only this account's events are read."""
    return [
        item
        for entry in nodes(parse_json(body), "entry")
        if text(entry, "id") in {None, account_id}
        for event in _list_events(entry)
        for item in _read_event(event, kind)
    ]


def _list_events(entry: Node) -> Sequence[Node]:
    """Includes events of conversations that another app controls, and test events from the dashboard."""
    changes = [node(change, "value") for change in nodes(entry, "changes") if text(change, "field") == "messages"]
    return [*nodes(entry, "messaging"), *nodes(entry, "standby"), *changes]


def _read_event(event: Node, kind: str) -> Iterator[Item]:
    person = text(event, "sender", "id")
    message = node(event, "message")
    if message.get("is_echo") is True:
        person = text(event, "recipient", "id")
    if person is None:
        return
    customer = Identity(kind, person)
    if message:
        yield from _read_message(event, message, customer)
    for name, read in _READERS.items():
        if part := node(event, name):
            yield from read(event, part, customer)


def _read_message(event: Node, message: Node, customer: Identity) -> Iterator[Item]:
    id, at = text(message, "mid"), milliseconds(event, "timestamp")
    if id is None:
        return
    if message.get("is_deleted") is True:
        yield MessageAmendment("revoke", id, at, None, customer)
        return
    is_echo = message.get("is_echo") is True
    metadata = (text(message, "metadata") or "") if is_echo else ""
    if metadata.startswith(_CAPTION):
        return
    reference = metadata if _is_reference(metadata) else None
    media = _list_media(message)
    interaction = _find_quick_reply(message)
    yield ReceivedItem(
        message_id=id,
        sender=[customer],
        at=at,
        type=_choose_type(message, media, interaction),
        body=text(message, "text"),
        media=media,
        interaction=interaction,
        quoted=text(message, "reply_to", "mid"),
        is_echo=is_echo,
        reference=reference,
    )


def _choose_type(message: Node, media: Sequence[InboundMedia], interaction: Interaction | None) -> str:
    if interaction is not None:
        return "button"
    if media:
        return media[0].type
    return "text" if text(message, "text") else "unsupported"


def _list_media(message: Node) -> Sequence[InboundMedia]:
    return [
        InboundMedia(type=_OUR_TYPES.get(type, type), url=url)
        for attachment in nodes(message, "attachments")
        if (type := text(attachment, "type") or "") in _FILE_KINDS and (url := text(attachment, "payload", "url"))
    ]


def _find_quick_reply(message: Node) -> Interaction | None:
    payload = text(message, "quick_reply", "payload")
    return Interaction("button", payload, text(message, "text") or "") if payload else None


def _read_postback(event: Node, postback: Node, customer: Identity) -> Iterator[Item]:
    at = milliseconds(event, "timestamp")
    payload, title = text(postback, "payload") or "", text(postback, "title") or ""
    # Older events have no id: sender and timestamp identify them.
    id = text(postback, "mid") or f"postback:{customer.value}:{text(event, 'timestamp')}"
    chosen = Interaction("button", payload or title, title)
    yield ReceivedItem(id, [customer], at, "button", body=title or None, interaction=chosen)


def _read_delivery(event: Node, delivery: Node, customer: Identity) -> Iterator[Item]:
    """By message ids, which may be missing, and by a watermark."""
    has_watermark = get(delivery, "watermark") is not None
    at = milliseconds(delivery, "watermark") if has_watermark else milliseconds(event, "timestamp")
    for id in texts(delivery, "mids"):
        yield StatusReport("delivered", at, message_id=id, recipient=customer)
    if has_watermark:
        yield StatusReport("delivered", at, watermark=at, recipient=customer)


def _read_read(event: Node, read: Node, customer: Identity) -> Iterator[Item]:
    if id := text(read, "mid"):
        yield StatusReport("read", milliseconds(event, "timestamp"), message_id=id, recipient=customer)
    elif get(read, "watermark") is not None:
        watermark = milliseconds(read, "watermark")
        yield StatusReport("read", watermark, watermark=watermark, recipient=customer)


def _read_reaction(event: Node, reaction: Node, customer: Identity) -> Iterator[Item]:
    if id := text(reaction, "mid"):
        is_back = text(reaction, "action") == "unreact"
        emoji = None if is_back else text(reaction, "emoji") or text(reaction, "reaction")
        yield MessageAmendment("reaction", id, milliseconds(event, "timestamp"), emoji, customer)


def _read_edit(event: Node, edit: Node, customer: Identity) -> Iterator[Item]:
    if id := text(edit, "mid"):
        yield MessageAmendment("edit", id, milliseconds(event, "timestamp"), text(edit, "text"), customer)


_READERS = {
    "postback": _read_postback,
    "delivery": _read_delivery,
    "read": _read_read,
    "reaction": _read_reaction,
    "message_edit": _read_edit,
}
