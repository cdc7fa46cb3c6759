"""Figures of support for each agent, summed from samples."""

from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.http.responses import Envelope, Timestamp
from sapa.messaging.channels.interface import Source
from sapa.support.samples.types import Metric
from sapa.support.types import AgentType


class SampleRow(Struct, frozen=True, rename="camel"):
    """A sample: one of the rows behind an agent's figures."""

    id: Annotated[int, Meta(examples=[4711])]
    metric: Metric
    seconds: Annotated[Decimal, Meta(examples=[300], description="The duration in seconds; 0 for handled.")]
    ticket_id: Annotated[str, Meta(examples=["tkt_01jc9y3q5me8w92v7x4t6r0n1k"])]
    cycle: Annotated[int, Meta(examples=[1], description="The number of times that the ticket was opened.")]
    source: Source
    started_at: Timestamp
    at: Annotated[Timestamp, Meta(description="The instant that decides whether the sample is in a window.")]
    message_id: Annotated[
        str | None, Meta(examples=["0199a1f0-7c3e-7d52-9b1a-4e6f2c8d0a35"], description="Null at a resolution.")
    ]


class AgentRecord(Struct, frozen=True):
    """An agent's figures for the window. Durations are HH:MM:SS; hours may exceed 24."""

    company_id: Annotated[int, Meta(examples=[7])]
    agent_id: Annotated[int, Meta(examples=[12])]
    agent_name: Annotated[str, Meta(examples=["Ayu Lestari"])]
    agent_type: AgentType
    tickets_handled: Annotated[int, Meta(examples=[34])]
    first_response_time: Annotated[str, Meta(examples=["00:05:00"], description="00:00:00 without data.")]
    avg_response_time: Annotated[str, Meta(examples=["00:03:30"], description="00:00:00 without data.")]
    resolution_time: Annotated[str, Meta(examples=["125:03:09"], description="00:00:00 without data.")]
    last_chat_handled: Timestamp | None
    average_rating: Annotated[
        Decimal | None, Meta(examples=[4.58], description="From 1 to 5, with two decimals; null without ratings.")
    ]
    ratings: Annotated[int, Meta(examples=[12], description="How many ratings customers gave in the window.")]


class Range(Struct, frozen=True):
    """The window of the figures, both ends included."""

    start_at: Timestamp
    end_at: Timestamp


class KindRecord(Struct, frozen=True):
    """The figures of all human or all AI agents together."""

    agent_type: AgentType
    tickets_handled: int
    """A ticket of two agents counts for both."""
    first_response_time: str
    avg_response_time: str
    resolution_time: str


class AgentsData(Struct, frozen=True):
    range: Range
    records: list[AgentRecord]


class AgentsReport(Envelope, frozen=True):
    """The figures of every agent."""

    status: Literal["success"]
    data: AgentsData
