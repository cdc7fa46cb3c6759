"""The callbacks of Messenger and Instagram: messages, reports, and events without a message."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from sapa.messaging.channels.interface import (
    Identity,
    InboundMedia,
    Interaction,
    Item,
    MarketingPreference,
    MessageAmendment,
    ReceivedItem,
    StatusReport,
)
from sapa.messaging.channels.notices import assign_keys, build_notice
from sapa.messaging.channels.reading import (
    Node,
    find_milliseconds,
    get,
    milliseconds,
    node,
    nodes,
    number,
    parse_object,
    text,
    texts,
)
from sapa.messaging.channels.received_parts import (
    MessageContext,
    MessageParts,
    ReceivedLocation,
    Referral,
    SharedContent,
    Story,
    UnsupportedContent,
    build_location,
    describe_location,
    encode_parts,
    keep_raw,
)

CAPTION = "caption of "
"""Stands before our reference in the metadata of a caption that follows its file."""

_OUR_TYPES = {"file": "document"}
_FILE_KINDS = {"image", "video", "audio", "file"}
_SHARES = {
    "share": "post",
    "ig_post": "post",
    "post": "post",
    "ig_reel": "reel",
    "reel": "reel",
    "ig_story": "story",
    "story_mention": "story_mention",
    "fallback": "link",
}
"""The attachments that are somewhere else, and our words for them."""
_SOURCES = {"ADS": "ad", "SHORTLINK": "link"}
_PREFERENCES = {"STOP_NOTIFICATIONS": "stop", "RESUME_NOTIFICATIONS": "resume"}
_ENVELOPE = {"sender", "recipient", "timestamp", "message"}
_is_reference = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


class EventParty(Struct, frozen=True):
    """The customer of an event, and whether the company caused it."""

    customer: Identity
    is_echo: bool


def parse_callback(account_id: str, kind: str, body: bytes) -> Sequence[Item]:
    """One app may have several pages with one callback address: only this account's events are read."""
    items = [
        item
        for entry in nodes(parse_object(body), "entry")
        if text(entry, "id") in {None, account_id}
        for item in _read_entry(entry, account_id, kind)
    ]
    return assign_keys(items, body)


def _read_entry(entry: Node, account_id: str, kind: str) -> Iterator[Item]:
    """Includes events of conversations that another app controls, and test events from the dashboard."""
    for event in (*nodes(entry, "messaging"), *nodes(entry, "standby")):
        yield from _read_event(event, account_id, kind)
    for change in nodes(entry, "changes"):
        field, value = text(change, "field") or "change", node(change, "value")
        if field == "messages":
            yield from _read_event(value, account_id, kind)
        else:
            yield build_notice("unknown", field, value)


def _read_event(event: Node, account_id: str, kind: str) -> Iterator[Item]:
    message, sender = node(event, "message"), text(event, "sender", "id")
    is_echo = message.get("is_echo") is True or sender == account_id
    person = text(event, "recipient", "id") if is_echo else sender
    if person is None:
        yield build_notice("unknown", "event", event, find_milliseconds(event, "timestamp"))
        return
    party = EventParty(Identity(kind, person), is_echo)
    if message:
        yield from _read_message(event, message, party)
    for name in [name for name in event if name not in _ENVELOPE]:
        part = node(event, name)
        if part and not (name == "referral" and message):
            yield from _READERS.get(name, _read_unknown(name))(event, part, party)


def _read_message(event: Node, message: Node, party: EventParty) -> Iterator[Item]:
    id, at = text(message, "mid"), milliseconds(event, "timestamp")
    if id is None:
        yield build_notice("unknown", "message", event, find_milliseconds(event, "timestamp"))
        return
    if message.get("is_deleted") is True:
        yield MessageAmendment("revoke", id, at, None, party.customer, party.is_echo)
        return
    metadata = (text(message, "metadata") or "") if party.is_echo else ""
    if metadata.startswith(CAPTION):
        return
    media, interaction, parts = _list_media(message), _find_quick_reply(message), _read_parts(event, message)
    type = _choose_type(message, media, interaction, parts)
    if type == "unsupported":
        parts = MessageParts(
            context=parts.context,
            referral=parts.referral,
            unsupported=UnsupportedContent(type=_name_kind(message), raw=keep_raw(message)),
        )
    yield ReceivedItem(
        message_id=id,
        sender=[party.customer],
        at=at,
        type=type,
        body=text(message, "text") or _describe(parts),
        media=media,
        interaction=interaction,
        quoted=text(message, "reply_to", "mid"),
        is_echo=party.is_echo,
        reference=metadata if _is_reference(metadata) else None,
        parts=encode_parts(parts),
    )


def _choose_type(
    message: Node, media: Sequence[InboundMedia], interaction: Interaction | None, parts: MessageParts
) -> str:
    if interaction is not None:
        return "button"
    if media:
        return media[0].type
    if parts.location is not None:
        return "location"
    if parts.shares:
        return "share"
    return "text" if text(message, "text") else "unsupported"


def _name_kind(message: Node) -> str | None:
    return next((text(attachment, "type") for attachment in nodes(message, "attachments")), None)


def _list_media(message: Node) -> Sequence[InboundMedia]:
    return [
        InboundMedia(type=_OUR_TYPES.get(type, type), url=url)
        for attachment in nodes(message, "attachments")
        if (type := text(attachment, "type") or "") in _FILE_KINDS and (url := text(attachment, "payload", "url"))
    ]


def _read_parts(event: Node, message: Node) -> MessageParts:
    attachments = nodes(message, "attachments")
    found = [share for attachment in attachments for share in _list_shares(attachment)]
    # Instagram sends a post twice for some time: as `share` and as `ig_post`.
    shares = list({(share.type, share.url): share for share in found}.values())
    referral = node(message, "referral") or node(event, "referral")
    return MessageParts(
        context=_read_context(message),
        referral=_build_referral(referral) if referral else None,
        location=next(filter(None, map(_find_location, attachments)), None),
        shares=shares or None,
    )


def _read_context(message: Node) -> MessageContext | None:
    story = node(message, "reply_to", "story")
    return MessageContext(story=Story(text(story, "id"), text(story, "url"))) if story else None


def _list_shares(attachment: Node) -> Sequence[SharedContent]:
    payload, type = node(attachment, "payload"), text(attachment, "type") or ""
    if (shown := _SHARES.get(type)) is not None:
        names = ("reel_video_id", "ig_post_media_id", "story_id", "id")
        return [
            SharedContent(
                type=shown,
                id=next((id for name in names if (id := text(payload, name))), None),
                url=text(payload, "url") or text(attachment, "url"),
                title=text(payload, "title") or text(attachment, "title"),
            )
        ]
    return [
        SharedContent(
            type="product",
            id=text(product, "retailer_id") or text(product, "id"),
            url=text(product, "image_url"),
            title=text(product, "title"),
        )
        for product in nodes(payload, "product", "elements")
    ]


def _find_location(attachment: Node) -> ReceivedLocation | None:
    place = node(attachment, "payload", "coordinates")
    return build_location(
        number(place, "lat"),
        number(place, "long"),
        name=text(attachment, "title"),
        url=text(attachment, "url") or text(attachment, "payload", "url"),
    )


def _describe(parts: MessageParts) -> str | None:
    """The text of a message without one: what was shared."""
    if parts.location is not None:
        return describe_location(parts.location)
    lines = [share.title or share.url for share in parts.shares or ()]
    return "\n".join(filter(None, lines)) or None


def _build_referral(found: Node) -> Referral:
    source, ad = text(found, "source") or "", node(found, "ads_context_data")
    return Referral(
        source_type=_SOURCES.get(source, source.lower() or None),
        source_id=text(found, "ad_id"),
        source_url=text(found, "referer_uri"),
        headline=text(ad, "ad_title"),
        image_url=text(ad, "photo_url"),
        video_url=text(ad, "video_url"),
        ref=text(found, "ref"),
        post_id=text(ad, "post_id"),
        product_id=text(ad, "product_id") or text(found, "product", "id"),
    )


def _find_quick_reply(message: Node) -> Interaction | None:
    payload = text(message, "quick_reply", "payload")
    return Interaction("button", payload, text(message, "text") or "") if payload else None


def _read_postback(event: Node, postback: Node, party: EventParty) -> Iterator[Item]:
    at = milliseconds(event, "timestamp")
    payload, title = text(postback, "payload") or "", text(postback, "title") or ""
    # Older events have no id: sender and timestamp identify them.
    id = text(postback, "mid") or f"postback:{party.customer.value}:{text(event, 'timestamp')}"
    chosen = Interaction("button", payload or title, title)
    referral = node(postback, "referral")
    parts = MessageParts(referral=_build_referral(referral) if referral else None)
    yield ReceivedItem(
        id, [party.customer], at, "button", body=title or None, interaction=chosen, parts=encode_parts(parts)
    )


def _read_delivery(event: Node, delivery: Node, party: EventParty) -> Iterator[Item]:
    """By message ids, which may be missing, and by a watermark."""
    has_watermark = get(delivery, "watermark") is not None
    at = milliseconds(delivery, "watermark") if has_watermark else milliseconds(event, "timestamp")
    for id in texts(delivery, "mids"):
        yield StatusReport("delivered", at, message_id=id, recipient=party.customer)
    if has_watermark:
        yield StatusReport("delivered", at, watermark=at, recipient=party.customer)


def _read_read(event: Node, read: Node, party: EventParty) -> Iterator[Item]:
    if id := text(read, "mid"):
        yield StatusReport("read", milliseconds(event, "timestamp"), message_id=id, recipient=party.customer)
    elif get(read, "watermark") is not None:
        watermark = milliseconds(read, "watermark")
        yield StatusReport("read", watermark, watermark=watermark, recipient=party.customer)


def _read_reaction(event: Node, reaction: Node, party: EventParty) -> Iterator[Item]:
    if id := text(reaction, "mid"):
        is_back = text(reaction, "action") == "unreact"
        emoji = None if is_back else text(reaction, "emoji") or text(reaction, "reaction")
        at = milliseconds(event, "timestamp")
        yield MessageAmendment("reaction", id, at, emoji, party.customer, party.is_echo)


def _read_edit(event: Node, edit: Node, party: EventParty) -> Iterator[Item]:
    if id := text(edit, "mid"):
        at = milliseconds(event, "timestamp")
        yield MessageAmendment("edit", id, at, text(edit, "text"), party.customer, party.is_echo)


def _read_referral(event: Node, referral: Node, party: EventParty) -> Iterator[Item]:
    """Somebody came back to the conversation by a link or an ad, and has not written."""
    name, at = text(referral, "source") or "referral", find_milliseconds(event, "timestamp")
    yield build_notice("referral", name, referral, at, sender=[party.customer])


def _read_optin(event: Node, optin: Node, party: EventParty) -> Iterator[Item]:
    """A person chose whether to get marketing messages; other requests are only recorded."""
    type, at = text(optin, "type") or "optin", find_milliseconds(event, "timestamp")
    choice = _PREFERENCES.get(text(optin, "notification_messages_status") or "")
    if type != "notification_messages":
        yield build_notice("unknown", type, optin, at, sender=[party.customer])
        return
    preference = MarketingPreference(choice or "signup", type, text(optin, "title"))
    yield build_notice("preference", type, optin, at, sender=[party.customer], preference=preference)


Reader = Callable[[Node, Node, EventParty], Iterator[Item]]


def _read_unknown(name: str) -> Reader:
    def read(event: Node, part: Node, party: EventParty) -> Iterator[Item]:
        yield build_notice("unknown", name, part, find_milliseconds(event, "timestamp"), sender=[party.customer])

    return read


_READERS: Mapping[str, Reader] = {
    "postback": _read_postback,
    "delivery": _read_delivery,
    "read": _read_read,
    "reaction": _read_reaction,
    "message_edit": _read_edit,
    "referral": _read_referral,
    "optin": _read_optin,
}
