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
    MessageAmendment,
    ReceivedItem,
    StatusReport,
)
from sapa.messaging.channels.notices import assign_keys, build_notice
from sapa.messaging.channels.reading import (
    Node,
    find_milliseconds,
    find_seconds,
    get,
    milliseconds,
    nodes,
    parse_json,
    text,
)
from sapa.messaging.channels.received_parts import (
    NO_PARTS,
    MessageParts,
    SharedContent,
    UnsupportedContent,
    encode_parts,
    keep_raw,
)
from sapa.values.provider_accounts import BadSignature

CONVERSATION = IdentityKind(
    "tt_conv", build_parser(OPAQUE_ID, "must be the id of a conversation that the customer began")
)
TOLERANCE_SECONDS = 300
"""TikTok retries deliveries for days, and signs each one again."""

_TYPES = frozenset({"text", "image", "share_post", "sticker"})
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
    events = nodes({"": parse_json(body)}, "")
    if not events:
        raise ValueError("the callback is not a JSON object")
    return assign_keys([item for event in events for item in _read_event(account, event)], body)


def _read_event(account: Mapping[str, str], event: Node) -> Iterator[Item]:
    if not _is_ours(account, event):
        return
    content = get(event, "content")
    inner = parse_json(content.encode("utf-8", "surrogatepass")) if isinstance(content, str) else content
    name, conversation = text(event, "event") or "event", text(inner, "conversation_id")
    customer = Identity(CONVERSATION.name, conversation) if conversation else None
    read = _EVENTS.get(name)
    if read is not None and customer is not None:
        yield from read(inner, customer)
    else:
        at = find_milliseconds(inner, "timestamp") or find_seconds(event, "create_time")
        yield build_notice("unknown", name, event, at, sender=[customer] if customer else [])


def _is_ours(account: Mapping[str, str], event: Node) -> bool:
    """Whether the event is for this account: one app may have several."""
    return text(event, "user_openid") in {None, account.get("business_id")}


def _read_received(content: Node, customer: Identity) -> Iterator[Item]:
    yield from _read_message(content, customer, is_echo=False)


def _read_sent(content: Node, customer: Identity) -> Iterator[Item]:
    yield from _read_message(content, customer, is_echo=True)


def _read_message(content: Node, customer: Identity, is_echo: bool) -> Iterator[Item]:
    id, type = text(content, "message_id"), text(content, "type") or ""
    if type == "reaction" and nodes(content, "reaction"):
        yield from _read_reactions(content, customer, is_echo)
        return
    if id is None:
        at = find_milliseconds(content, "timestamp")
        yield build_notice("unknown", type or "message", content, at, sender=[customer])
        return
    yield ReceivedItem(
        message_id=id,
        sender=[customer],
        at=milliseconds(content, "timestamp"),
        type=type if type in _TYPES else "unsupported",
        body=text(content, "text", "body") or text(content, "share_post", "embed_url"),
        sender_name=None if is_echo else text(content, "from"),
        media=_list_media(content),
        quoted=text(content, "referenced_message_info", "referenced_message_id"),
        is_echo=is_echo,
        parts=encode_parts(_read_parts(content, type)),
    )


def _read_parts(content: Node, type: str) -> MessageParts:
    if type not in _TYPES:
        return MessageParts(unsupported=UnsupportedContent(type=type or None, raw=keep_raw(content)))
    if url := text(content, "share_post", "embed_url"):
        id = text(content, "share_post", "item_id")
        return MessageParts(shares=[SharedContent(type="post", id=id, url=url)])
    if url := text(content, "sticker", "url"):
        return MessageParts(shares=[SharedContent(type="sticker", url=url)])
    return NO_PARTS


def _read_reactions(content: Node, customer: Identity, is_echo: bool) -> Iterator[Item]:
    """One message may have several. Emojis that are pictures have an address instead."""
    at = milliseconds(content, "timestamp")
    for reaction in nodes(content, "reaction"):
        if id := text(reaction, "original_msg_id"):
            emoji = text(reaction, "emoji") or text(reaction, "ai_emoji_url")
            is_added = text(reaction, "operation") in {None, "ADD"}
            yield MessageAmendment("reaction", id, at, emoji if is_added else None, customer, is_echo)


def _read_referral(content: Node, customer: Identity) -> Iterator[Item]:
    """Somebody came by an ad or a link, and has not written yet."""
    source = text(content, "referral", "source") or "referral"
    at = find_milliseconds(content, "timestamp")
    yield build_notice("referral", source, content, at, sender=[customer], sender_name=text(content, "from"))


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
    "im_referral_msg": _read_referral,
}
