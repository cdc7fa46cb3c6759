"""What a channel thinks of a company's account: its rating, limits and warnings."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from sapa.events import Event
from sapa.http.responses import Timestamp
from sapa.messaging.channels.account_reports import Quality, WarningSeverity
from sapa.messaging.channels.interface import Source
from sapa.messaging.connections.types import ConnectionId
from sapa.values.api_base import Base


class ChannelWarning(Struct, frozen=True, rename="camel"):
    """A warning of the channel about the account."""

    code: Annotated[str, Meta(examples=["ACCOUNT_VIOLATION"], description="The channel's own word.")]
    severity: WarningSeverity
    message: Annotated[str, Meta(examples=["SPAM"])]
    reported_at: Timestamp
    expires_at: Annotated[Timestamp | None, Meta(description="When it ends by itself; null if it does not say.")]


class ChannelStatus(Struct, frozen=True, rename="camel"):
    """What a channel thinks of your account."""

    id: ConnectionId
    source: Source
    connected_number: Annotated[
        str, Meta(examples=["+622150001234"], description="The company's number or id on the channel.")
    ]
    quality: Annotated[Quality | None, Meta(description="How recipients rate your messages; null if it is not known.")]
    messaging_limit: Annotated[
        int | None,
        Meta(
            examples=[2000],
            description="How many people may get messages outside of a reply window in 24 hours; null if it is not "
            "known, or if there is no limit.",
        ),
    ]
    is_unlimited: Annotated[bool, Meta(examples=[False], description="There is no such limit.")]
    throughput: Annotated[
        str | None, Meta(examples=["STANDARD"], description="In the channel's words; null if it is not known.")
    ]
    warnings: Annotated[list[ChannelWarning], Meta(description="Those in force, newest first.")]
    updated_at: Timestamp
    checked_at: Annotated[Timestamp | None, Meta(description="When the channel was last asked.")]


class ChannelStatusUpdate(ChannelStatus, frozen=True, rename="camel"):
    """A status that changed."""

    changes: Annotated[
        list[str],
        Meta(examples=[["quality"]], description="What changed: quality, messagingLimit, throughput, warnings."),
    ]


class ChannelStatusUpdated(Event):
    """The channel's rating, limits or warnings of an account changed."""

    kind = "channel.status.updated"
    base = Base.MESSAGING
    resource_type = ChannelStatusUpdate


class StoredStatus(Struct, frozen=True):
    """The stored values, each with the instant of the report that it is from."""

    connection_id: str
    source: str
    quality: str | None = None
    quality_at: datetime | None = None
    messaging_limit: int | None = None
    messaging_limit_at: datetime | None = None
    throughput: str | None = None
    throughput_at: datetime | None = None


class StoredWarning(Struct, frozen=True):
    code: str
    severity: str
    message: str
    reported_at: datetime
    expires_at: datetime | None
    is_over: bool


class DueCheck(Struct, frozen=True):
    """An account whose status is to be asked for."""

    company_id: int
    connection_id: str
