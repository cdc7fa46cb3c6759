"""Outbound messages as they are stored, built without reading them back. Pure: no database."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from sapa.messaging.channels.received_parts import MessageParts
from sapa.messaging.messages.types import Message, NewMessage
from sapa.values.instants import format_instant

_PARTS = dict(zip(MessageParts.__struct_fields__, MessageParts.__struct_encode_fields__, strict=True))
_COPIED = [
    name
    for name in Message.__struct_fields__
    if name in NewMessage.__struct_fields__ and name not in {"sent_at", "delivered_at"}
]
_JSON = {"attachments", "interactive", "interaction", "metadata", "authentication"}
_LATER = dict.fromkeys(
    [
        "error", "reactions", "edited_at", "revoked_at", "sent_at", "delivered_at", "read_at", "replied_at",
        "failed_at", "pricing",
    ]
)  # fmt: skip


def build_message(new: NewMessage) -> Message:
    """A pending message as the API shows it."""
    fields: dict[str, Any] = {name: getattr(new, name) for name in _COPIED} | _LATER
    for name in _JSON:
        fields[name] = None if fields[name] is None else Raw(fields[name])
    parts = {} if new.parts is None else msgspec.json.decode(new.parts, type=dict[str, Raw])
    for name, wire_name in _PARTS.items():
        fields[name] = parts.get(wire_name)
    return Message(
        **fields,
        ack=0,
        message_id=None,
        message_id2=new.id,
        timestamp=round(new.created_at.timestamp()),
        conflict=False,
        sequence=0,
    )


def build_accepted(message: Message, provider_id: str, at: datetime) -> Message:
    """A pending message after its channel accepted it."""
    return replace(
        message,
        ack=1,
        status="sent",
        message_id=provider_id,
        sequence=message.sequence + 1,
        sent_at=format_instant(at),
        error=None,
    )
