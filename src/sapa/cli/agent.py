"""`sapa agent`: the agents who answer a company's customers."""

from typing import Annotated

import typer
from msgspec import UNSET

from sapa.access.actions import get_company
from sapa.cli.connect import AsJson, CompanyId, in_company, show, transact
from sapa.db.pool import Tx
from sapa.support import members
from sapa.support.agents import actions as agents
from sapa.support.types import Agent, AgentIn, AgentPatch

app = typer.Typer(no_args_is_help=True, help="Agents, human and AI, who answer customers.")

COLUMNS = ["id", "name", "type", "active", "userId"]
Id = Annotated[int, typer.Argument(help="The agent's id.")]
MAX_AGENTS = 1000


@app.command("list")
def list_(company: CompanyId, json: AsJson = False) -> None:
    """List a company's agents."""
    found = transact(in_company(company, lambda tx: agents.list_newest(tx, company, MAX_AGENTS)))
    show(found, json, "Agents", COLUMNS)


@app.command()
def create(
    company: CompanyId,
    name: Annotated[str, typer.Option(help="The name shown to colleagues and in reports.")],
    ai: Annotated[
        bool, typer.Option("--ai", help="An AI agent, which reads tickets and replies through the API.")
    ] = False,
    user: Annotated[int | None, typer.Option(help="The console user who is this agent; see `sapa user list`.")] = None,
    json: AsJson = False,
) -> None:
    """Add an agent."""

    async def run(tx: Tx) -> Agent:
        body = AgentIn(name=name, type="ai" if ai else "human", user_id=user)
        return await agents.create(tx, await get_company(tx, company), body)

    show(transact(run), json, "Agent", COLUMNS)


@app.command()
def update(
    company: CompanyId,
    id: Id,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    active: Annotated[bool | None, typer.Option(help="Whether the agent can get tickets and reply.")] = None,
    json: AsJson = False,
) -> None:
    """Change an agent's name, or activate or deactivate it. A deactivated agent's tickets go back to the queue."""

    async def run(tx: Tx) -> Agent:
        patch = AgentPatch(name=UNSET if name is None else name, active=UNSET if active is None else active)
        return await members.update(tx, await get_company(tx, company), id, patch)

    show(transact(run), json, "Agent", COLUMNS)
