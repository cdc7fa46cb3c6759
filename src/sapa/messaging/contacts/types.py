"""Contacts, their conversations and their windows for free-form messages."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from sapa.http.responses import Timestamp
from sapa.messaging.channels.interface import Identity
from sapa.values.ids import IdKind

CONTACT_ID = IdKind("ctc_")


class Window(Struct, frozen=True, rename="camel"):
    """The reply window: how long the customer can get free-form messages over the channel."""

    closes_at: Timestamp


class Contact(Struct, frozen=True):
    """A person on a channel."""

    id: str
    customer_id: str | None
    """None until a phone number or an e-mail address is known: a customer needs one of them."""
    identities: Sequence[Identity]


class Thread(Struct, frozen=True):
    """The conversation with a contact over one connection."""

    contact_id: str
    last_inbound_at: datetime | None
    sent_in_window: int
    """The number of messages sent since the contact last wrote."""
    last_message_id: str | None
    """The messageId2 of the newest message in either direction."""
    last_inbound_id: str | None
    """The messageId2 of the contact's last message."""


class MessageRecipient(Struct, frozen=True):
    """The contact that a message goes to, and their customer."""

    contact_id: str
    customer_id: str | None
