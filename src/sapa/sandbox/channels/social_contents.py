"""Simulated contents of Messenger's and Instagram's callbacks."""

from collections.abc import Mapping
from typing import Any

from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels.inbound import SimulatedInbound
from sapa.sandbox.inbound_contents import SimulatedReferral, SimulatedShare

Json = dict[str, Any]

CONTENTS: Mapping[Source, frozenset[str]] = {
    Source.SOCIAL_NETWORK: frozenset({"location", "share", "edit", "reaction", "preference", "referral", "unknown"}),
    Source.PHOTO_SOCIAL: frozenset({"share", "story", "edit", "revocation", "reaction", "referral", "unknown"}),
}

_SHARES: Mapping[Source, Mapping[str, str]] = {
    Source.SOCIAL_NETWORK: {"post": "post", "reel": "reel", "story_mention": "story_mention", "link": "fallback"},
    Source.PHOTO_SOCIAL: {"post": "ig_post", "reel": "ig_reel", "story_mention": "story_mention", "link": "share"},
}
_IDS = {"ig_post": "ig_post_media_id", "ig_reel": "reel_video_id", "reel": "reel_video_id"}


def build_event(inbound: SimulatedInbound) -> Json | None:
    """An event that is not a message; None for messages."""
    contents = inbound.contents
    if contents.edit is not None:
        return {"message_edit": {"mid": contents.edit.message_id, "text": contents.edit.text, "num_edit": 1}}
    if contents.revocation is not None:
        return {"message": {"mid": contents.revocation.message_id, "is_deleted": True}}
    if contents.reaction is not None:
        emoji = contents.reaction.emoji
        action = {"action": "react", "reaction": "other", "emoji": emoji} if emoji else {"action": "unreact"}
        return {"reaction": {"mid": contents.reaction.message_id, **action}}
    if contents.preference is not None:
        words = {"stop": "STOP_NOTIFICATIONS", "resume": "RESUME_NOTIFICATIONS"}
        status = {"notification_messages_status": words[contents.preference]} if contents.preference in words else {}
        return {"optin": {"type": "notification_messages", "title": "News", **status}}
    is_message = inbound.text is not None or inbound.choice is not None or inbound.media is not None
    if contents.referral is not None and not is_message and contents.share is None and contents.location is None:
        return {"referral": build_referral(contents.referral)}
    return None


def list_attachments(source: Source, inbound: SimulatedInbound) -> list[Json]:
    contents = inbound.contents
    if contents.location is not None:
        place = {"lat": contents.location.latitude, "long": contents.location.longitude}
        title = {"title": contents.location.name} if contents.location.name else {}
        return [{"type": "location", **title, "payload": {"coordinates": place}}]
    if contents.share is not None:
        return [_build_share(source, contents.share)]
    if contents.unknown is not None:
        return [{"type": contents.unknown.type, "payload": contents.unknown.content}]
    return []


def build_referral(referral: SimulatedReferral) -> Json:
    ad = {"ad_title": referral.headline, "photo_url": referral.image_url}
    found = {
        "ref": referral.ref,
        "ad_id": referral.source_id,
        "source": "ADS",
        "type": "OPEN_THREAD",
        "referer_uri": referral.source_url,
        "ads_context_data": {name: value for name, value in ad.items() if value},
    }
    return {name: value for name, value in found.items() if value}


def _build_share(source: Source, share: SimulatedShare) -> Json:
    type = _SHARES[source][share.type]
    payload = {"url": share.url, "title": share.title, _IDS.get(type, "id"): share.id}
    return {"type": type, "payload": {name: value for name, value in payload.items() if value}}
