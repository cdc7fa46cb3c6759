"""Teams: their structs and errors."""

from typing import Annotated

from msgspec import Meta, Struct

from sapa.http.errors import Conflict
from sapa.http.responses import Timestamp
from sapa.support.types import AgentId, TeamId

TeamName = Annotated[str, Meta(min_length=1, max_length=100, examples=["Gudang"])]


class AgentTeam(Struct, frozen=True, rename="camel"):
    """Agents who share a queue."""

    id: TeamId
    name: TeamName
    agent_ids: Annotated[list[int], Meta(examples=[[12]], description="The members.")]
    auto_assign: Annotated[bool, Meta(description="Assign its waiting tickets to the members who are online.")]
    created_at: Timestamp
    updated_at: Timestamp


class AgentTeamIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A team to create, or what a team becomes."""

    name: TeamName
    agent_ids: Annotated[list[AgentId], Meta(max_length=200, examples=[[]], description="The members.")] = []
    auto_assign: bool = False


class TeamExists(Conflict):
    """A team with this name already exists. Choose another name."""

    code = "TEAM_EXISTS"
    constraint = "teams_name_key"
    fix = "Choose another name, or use the team that has it."
