"""TikTok's callbacks: one event each, with its content as JSON in a string."""

import hmac
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256

from sapa.messaging.channels.identities import OPAQUE_ID, build_parser
from sapa.messaging.channels.interface import (
    Identity,
    IdentityKind,
    InboundMedia,
    Item,
    ReceivedItem,
    StatusReport,
)
from sapa.messaging.channels.reading import Node, get, milliseconds, nodes, parse_json, text
from sapa.values.provider_accounts import BadSignature

CONVERSATION = IdentityKind(
    "tt_conv", build_parser(OPAQUE_ID, "must be the id of a conversation that the customer began")
)
TOLERANCE_SECONDS = 300
"""TikTok retries deliveries for days, and signs each one again."""

_parse_signature = re.compile(r"t=(?P<at>[0-9]{1,12}),\s*s=(?P<mark>[0-9a-f]{64})", re.ASCII).fullmatch


def sign(secret: str, at: int | str, body: bytes) -> str:
    return hmac.new(secret.encode(), f"{at}.".encode() + body, sha256).hexdigest()


def check_signature(secret: str, headers: Mapping[str, str], body: bytes, now: float | None = None) -> None:
    signature = _parse_signature(headers.get("tiktok-signature") or "")
    if signature is None or not secret:
        raise BadSignature
    if not hmac.compare_digest(sign(secret, signature["at"], body), signature["mark"]):
        raise BadSignature
    if abs((time.time() if now is None else now) - int(signature["at"])) > TOLERANCE_SECONDS:
        raise BadSignature


def parse_callback(account: Mapping[str, str], body: bytes) -> Sequence[Item]:
    return [item for event in nodes({"": parse_json(body)}, "") for item in _read_event(account, event)]


def _read_event(account: Mapping[str, str], event: Node) -> Iterator[Item]:
    content = get(event, "content")
    inner = parse_json(content.encode("utf-8", "surrogatepass")) if isinstance(content, str) else content
    read = _EVENTS.get(text(event, "event") or "")
    conversation = text(inner, "conversation_id")
    if read is not None and conversation is not None and _is_ours(account, event):
        yield from read(inner, Identity(CONVERSATION.name, conversation))


def _is_ours(account: Mapping[str, str], event: Node) -> bool:
    """Whether the event is for this account: one app may have several."""
    return text(event, "user_openid") in {None, account.get("business_id")}


def _read_received(content: Node, customer: Identity) -> Iterator[Item]:
    yield from _read_message(content, customer, is_echo=False)


def _read_sent(content: Node, customer: Identity) -> Iterator[Item]:
    yield from _read_message(content, customer, is_echo=True)


def _read_message(content: Node, customer: Identity, is_echo: bool) -> Iterator[Item]:
    id = text(content, "message_id")
    if id is None:
        return
    media = _list_media(content)
    type = text(content, "type") or ""
    yield ReceivedItem(
        message_id=id,
        sender=[customer],
        at=milliseconds(content, "timestamp"),
        type=type if type in {"text", "image", "share_post", "sticker"} else "unsupported",
        body=text(content, "text", "body") or text(content, "share_post", "embed_url"),
        sender_name=None if is_echo else text(content, "from"),
        media=media,
        quoted=text(content, "referenced_message_info", "referenced_message_id"),
        is_echo=is_echo,
    )


def _list_media(content: Node) -> Sequence[InboundMedia]:
    """Fetching a file takes the conversation, the message and the media id, so the stored id holds all three."""
    id = text(content, "image", "media_id")
    whole = f"{text(content, 'conversation_id')} {text(content, 'message_id')} {id}"
    return [InboundMedia(type="image", media_id=whole)] if id else []


def _read_read(content: Node, customer: Identity) -> Iterator[Item]:
    if get(content, "read", "last_read_timestamp") is not None:
        watermark = milliseconds(content, "read", "last_read_timestamp")
        yield StatusReport("read", watermark, watermark=watermark, recipient=customer)


_EVENTS: Mapping[str, Callable[[Node, Identity], Iterator[Item]]] = {
    "im_receive_msg": _read_received,
    "im_send_msg": _read_sent,
    "im_mark_read_msg": _read_read,
}
