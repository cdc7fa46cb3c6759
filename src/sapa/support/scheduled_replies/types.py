"""Replies that are sent later: their structs and errors."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.http.errors import Conflict
from sapa.http.responses import Timestamp
from sapa.support.types import AgentId, TicketId, Words
from sapa.values.enum_names import EnumName
from sapa.values.ids import IdKind

SCHEDULED_REPLY_ID = IdKind("sched_")
ScheduledReplyId = Annotated[str, SCHEDULED_REPLY_ID]
ScheduledReplyStatus = Annotated[Literal["scheduled", "sending", "failed"], EnumName("ScheduledReplyStatus")]


class ScheduledReply(Struct, frozen=True, rename="camel"):
    """A reply that is sent later. Once it is sent, it is a message of the ticket and no longer scheduled."""

    id: ScheduledReplyId
    ticket_id: TicketId
    agent_id: AgentId
    body: Annotated[str, Meta(examples=["Pesanan Kakak kami kirim pagi ini."])]
    send_at: Timestamp
    status: ScheduledReplyStatus
    failure_reason: Annotated[str | None, Meta(examples=[None], description="Why it could not be sent.")]
    created_at: Timestamp


class ScheduledReplyIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A reply to send later."""

    agent_id: AgentId
    body: Annotated[Words, Meta(examples=["Pesanan Kakak kami kirim pagi ini."])]
    send_at: Annotated[
        Annotated[datetime, Meta(tz=True)],
        Meta(examples=["2099-01-31T02:00:00.000Z"], description="In the future."),
    ]


class DueReply(Struct, frozen=True):
    """A scheduled reply whose time has come."""

    company_id: int
    id: str


class ClaimedReply(Struct, frozen=True):
    """What the worker sends now."""

    ticket_id: str
    agent_id: int
    body: str
    tries: int


class ReplyBeingSent(Conflict):
    """The reply is being sent at this moment."""

    code = "REPLY_BEING_SENT"
    fix = "Get the ticket in a few seconds: the reply is one of its messages, unless it failed."


class TooManyScheduledReplies(Conflict):
    """The ticket has as many scheduled replies as it can have."""

    code = "TOO_MANY_SCHEDULED_REPLIES"
    fix = "Delete one of the ticket's scheduled replies, or wait until one is sent."
