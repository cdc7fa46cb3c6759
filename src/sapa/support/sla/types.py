"""Targets for response and resolution (SLA): policies, and how a ticket stands."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.http.errors import Conflict
from sapa.http.responses import Timestamp
from sapa.messaging.messages.types import Source
from sapa.support.types import LabelId, Priority, SlaPolicyId

PolicyName = Annotated[str, Meta(min_length=1, max_length=100, examples=["Mendesak"])]
Position = Annotated[
    int, Meta(ge=0, le=1_000, examples=[1], description="The first policy that matches applies, lowest position first.")
]
Minutes = Annotated[int, Meta(ge=1, le=43_200, examples=[60])]
Priorities = Annotated[list[Priority], Meta(max_length=4, examples=[["urgent"]], description="Empty: all.")]
Sources = Annotated[list[Source], Meta(max_length=len(Source), examples=[[]], description="Empty: all.")]
LabelIds = Annotated[list[LabelId], Meta(max_length=20, examples=[[]], description="One of these; empty: any or none.")]


class SlaPolicy(Struct, frozen=True, rename="camel"):
    """How soon certain tickets should be answered and resolved."""

    id: SlaPolicyId
    name: PolicyName
    position: Position
    priorities: Priorities
    sources: Sources
    label_ids: LabelIds
    first_response_minutes: Minutes | None
    resolution_minutes: Minutes | None
    in_business_hours: Annotated[bool, Meta(description="False: the targets count around the clock.")]
    created_at: Timestamp
    updated_at: Timestamp


class SlaPolicyIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A policy to create, or what a policy becomes. It needs at least one target."""

    name: PolicyName
    position: Position = 0
    priorities: Priorities = []
    sources: Sources = []
    label_ids: LabelIds = []
    first_response_minutes: Minutes | None = None
    resolution_minutes: Minutes | None = None
    in_business_hours: bool = True


class SlaPolicyExists(Conflict):
    """A policy with this name already exists. Choose another name."""

    code = "SLA_POLICY_EXISTS"
    constraint = "sla_policies_name_key"
    fix = "Choose another name, or change the policy that has it."


class TargetFacts(Struct, frozen=True, kw_only=True):
    """What happened in a ticket's cycle, as far as targets care."""

    started_at: datetime
    """The customer's first message."""
    responded_at: datetime | None = None
    pauses: tuple[tuple[datetime, datetime | None], ...] = ()
    """When it was snoozed, and until when; None if it still is."""
    resolved_at: datetime | None = None


Target = Literal["firstResponse", "resolution"]
