"""Views: saved filters of the inbox, their structs and errors."""

from typing import Annotated

from msgspec import Meta, Raw, Struct

from sapa.http.errors import Conflict
from sapa.http.responses import StoredJson, Timestamp
from sapa.messaging.channels.registry import ChannelName
from sapa.support.types import AgentId, LabelId, Priority, StatusFilter, TeamId, TicketSort
from sapa.values.ids import IdKind

VIEW_ID = IdKind("view_")
ViewId = Annotated[str, VIEW_ID]
ViewName = Annotated[str, Meta(min_length=1, max_length=100, examples=["Retur mendesak"])]


class ViewFilters(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Which tickets a view shows: filters of `GET /tickets`. Absent ones do not filter."""

    status: Annotated[StatusFilter, Meta(description="active: open and assigned ones.")] | None = None
    mine: Annotated[bool, Meta(description="Only tickets of the agent who looks.")] = False
    agent_id: AgentId | None = None
    channel: ChannelName | None = None
    label_id: LabelId | None = None
    priority: Priority | None = None
    team_id: TeamId | None = None
    rating: Annotated[int, Meta(ge=1, le=5)] | None = None
    breached: bool | None = None
    snoozed: bool | None = None
    waiting: bool | None = None
    sort: TicketSort | None = None


class View(Struct, frozen=True, rename="camel"):
    """Saved filters of the inbox."""

    id: ViewId
    name: ViewName
    agent_id: Annotated[int | None, Meta(examples=[None], description="Whose view it is; null: everyone's.")]
    filters: Annotated[Raw, StoredJson(ViewFilters)]
    created_at: Timestamp
    updated_at: Timestamp


class ViewIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A view to create, or what a view becomes."""

    name: ViewName
    agent_id: Annotated[AgentId | None, Meta(examples=[None], description="Whose view it is; null: everyone's.")] = None
    filters: Annotated[ViewFilters, Meta(examples=[{"status": "open", "priority": "urgent"}])]


class ViewExists(Conflict):
    """A view with this name already exists. Choose another name."""

    code = "VIEW_EXISTS"
    constraint = "ticket_views_name_key"
    fix = "Choose another name, or change the view that has it."
