"""Events of channels: what they report besides messages and their status."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct

from sapa.http.responses import StoredJson, Timestamp
from sapa.messaging.channels.interface import Identity, MarketingPreference, NoticeKind, Source
from sapa.ports import Announcement
from sapa.values.ids import CustomerId, IdKind

CHANNEL_EVENT_ID = IdKind("che_")
ChannelEventId = Annotated[str, CHANNEL_EVENT_ID]

KINDS = (
    "preference: a person chose which messages they want; referral: somebody came by an ad or a link and has not "
    "written; system: the channel says something about a person, such as a new device; error: the channel reports an "
    "error of the account; edit, revoke, reaction: of a message that has not arrived; unknown: a kind that is not "
    "supported yet."
)


class ChannelEvent(Struct, frozen=True, rename="camel"):
    """Something that a channel reported besides messages and their status. It is kept for 90 days."""

    id: ChannelEventId
    source: Source
    kind: Annotated[NoticeKind, Meta(description=KINDS)]
    name: Annotated[str, Meta(examples=["marketing_messages"], description="The channel's word for it.")]
    message_id: Annotated[
        str | None, Meta(examples=[None], description="The message that it is about, at the channel.")
    ]
    contact_id: Annotated[str | None, Meta(examples=["ctc_01jc9y3q5me8w92v7x4t6r0n1k"])]
    customer_id: CustomerId | None
    client_number: Annotated[
        str | None, Meta(examples=["+628123456789"], description="The person's number or id on the channel.")
    ]
    data: Annotated[
        Raw,
        StoredJson(Any),
        Meta(examples=[{"value": "stop"}], description="As the channel sent it; null above 64 KiB."),
    ]
    occurred_at: Timestamp
    created_at: Timestamp


class NewChannelEvent(Struct, frozen=True, kw_only=True):
    """An event to insert; the fields are the columns."""

    id: str
    connection_id: str
    source: str
    kind: str
    name: str
    key: str
    message_id: str | None = None
    contact_id: str | None = None
    customer_id: str | None = None
    client_number: str | None = None
    data: bytes
    occurred_at: datetime


class PreferenceReceived(Announcement, frozen=True):
    """A person told a channel whether they want marketing messages. Published once for each report, in the order in
    which reports arrive: compare `at`."""

    event_id: str
    source: Source
    connection_id: str
    contact_id: str
    customer_id: str | None
    identities: Sequence[Identity]
    """All that the channel named; the one to reply to first."""
    preference: MarketingPreference
    at: datetime
