"""Applies edits, deletions and reactions to a message, in whatever order they arrive. Pure: no database."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from sapa.messaging.channels.interface import MessageAmendment
from sapa.messaging.messages.types import AmendableMessage, MessageParty, MessageReaction
from sapa.values.instants import format_instant
from sapa.values.json import encode

AMENDMENT_EVENTS: Mapping[str, Literal["edited", "revoked", "reacted"]] = {
    "edit": "edited",
    "revoke": "revoked",
    "reaction": "reacted",
}

_parse_reactions = msgspec.json.Decoder(list[MessageReaction]).decode


def apply_amendment(
    stored: AmendableMessage, amendment: MessageAmendment, party: MessageParty, at: datetime
) -> AmendableMessage:
    """The newest edit and the newest reaction of each side count; a deletion counts from the first report."""
    match amendment.kind:
        case "edit":
            if stored.edited_at is not None and at < stored.edited_at:
                return stored
            return replace(stored, body=amendment.body, edited_at=at)
        case "revoke":
            return replace(stored, revoked_at=at if stored.revoked_at is None else min(at, stored.revoked_at))
        case "reaction":
            return replace(
                stored, reactions=_react(stored.reactions, MessageReaction(party, amendment.body, format_instant(at)))
            )


def _react(stored: Raw | None, reaction: MessageReaction) -> Raw:
    """Timestamps have one format, so they can be compared as text."""
    by_party = {one.by: one for one in _parse_reactions(stored)} if stored else {}
    existing = by_party.get(reaction.by)
    if existing is None or existing.at <= reaction.at:
        by_party[reaction.by] = reaction
    return Raw(encode([by_party[party] for party in sorted(by_party)]))
