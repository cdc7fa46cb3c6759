"""Builds notices: what channels report besides messages and their status."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from sapa.messaging.channels.interface import (
    ChannelNotice,
    Identity,
    Item,
    MarketingPreference,
    NoticeKind,
)
from sapa.messaging.channels.received_parts import keep_raw
from sapa.values.json import encode_document

MAX_NAME_LENGTH = 100


def build_notice(
    kind: NoticeKind,
    name: str,
    data: Any,
    at: datetime | None = None,
    *,
    sender: Sequence[Identity] = (),
    sender_name: str | None = None,
    preference: MarketingPreference | None = None,
) -> ChannelNotice:
    """Without a time it is identified by its callback, and counts as reported now."""
    content = encode_document(keep_raw(data))
    people = ",".join(identity.value for identity in sender)
    identified = [kind, name, people, "" if at is None else at.isoformat(), content.decode()]
    return ChannelNotice(
        kind=kind,
        name=name[:MAX_NAME_LENGTH],
        data=content,
        at=datetime.now(UTC) if at is None else at,
        key="" if at is None else sha256(encode_document(identified)).hexdigest(),
        sender=sender,
        sender_name=sender_name,
        preference=preference,
    )


def assign_keys(items: Iterable[Item], body: bytes) -> Sequence[Item]:
    """Notices without a key get one from the callback and their place in it."""
    callback = sha256(body).hexdigest()
    return [
        replace(item, key=f"{callback}/{place}") if isinstance(item, ChannelNotice) and not item.key else item
        for place, item in enumerate(items)
    ]
