"""Presence: which agents are there to answer."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.http.responses import Timestamp
from sapa.values.enum_names import EnumName

PresenceStatus = Annotated[Literal["online", "away", "offline"], EnumName("PresenceStatus")]


class AgentPresence(Struct, frozen=True, rename="camel"):
    """Whether an agent is there."""

    agent_id: Annotated[int, Meta(examples=[12])]
    status: PresenceStatus
    until: Annotated[Timestamp | None, Meta(description="When it ends unless it is set again; null for offline.")]


class AgentPresenceIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Whether an agent is there from now on."""

    status: PresenceStatus
    seconds: Annotated[
        int, Meta(ge=10, le=86_400, examples=[120], description="After so many seconds the agent is offline.")
    ] = 120
