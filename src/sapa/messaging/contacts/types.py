"""Contacts, their conversations, and how long those stay open for free messages."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from sapa.http.responses import Timestamp
from sapa.messaging.channels.interface import Identity
from sapa.values.ids import IdKind

CONTACT_ID = IdKind("ctc_")


class Window(Struct, frozen=True, rename="camel"):
    """For how long the customer may be sent free messages over the channel."""

    closes_at: Timestamp


class Contact(Struct, frozen=True):
    """Somebody on the other side of a channel."""

    id: str
    customer_id: str | None
    """None as long as neither a phone number nor an e-mail address is known: no customer can be without both."""
    identities: Sequence[Identity]


class Thread(Struct, frozen=True):
    """The conversation with a contact over one connection."""

    contact_id: str
    last_inbound_at: datetime | None
    sent_in_window: int
    """How many messages went out since the contact last wrote."""
    last_message_id: str | None
    """The newest message's messageId2, whoever wrote it."""
    last_inbound_id: str | None
    """Of what the contact wrote last, the messageId2."""


class MessageRecipient(Struct, frozen=True):
    """The contact that a message goes to, and the customer they are."""

    contact_id: str
    customer_id: str | None
