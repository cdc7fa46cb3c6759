"""`sapa user`: the users of the console."""

from typing import Annotated

import typer
from msgspec import Struct

from sapa.cli.connect import AsJson, CompanyId, show, transact
from sapa.db.pool import Tx
from sapa.people import actions
from sapa.people.types import Member, Role
from sapa.settings import read_settings

app = typer.Typer(no_args_is_help=True, help="Users of the console.")

COLUMNS = ["id", "email", "name", "role", "hasJoined"]
Email = Annotated[str, typer.Argument(help="The user's e-mail address.")]


class NewLink(Struct, frozen=True):
    """A new one-time link, shown once."""

    email: str
    link: str


@app.command("list")
def list_(company: CompanyId, json: AsJson = False) -> None:
    """List a company's users."""

    async def run(tx: Tx) -> list[Member]:
        return await actions.list_members(tx, await actions.get_organisation(tx, company))

    show(transact(run), json, "People", COLUMNS)


@app.command()
def invite(
    company: CompanyId,
    email: Email,
    name: Annotated[str, typer.Option(help="Their name.")],
    role: Annotated[Role, typer.Option(help="What the user may do.")] = Role.AGENT,
    json: AsJson = False,
) -> None:
    """Invite a user. The link to choose a password is shown once."""

    async def run(tx: Tx) -> str:
        return await actions.invite(tx, await actions.get_organisation(tx, company), email, name, role)

    _show_link(email, transact(run), json)


@app.command()
def link(company: CompanyId, email: Email, json: AsJson = False) -> None:
    """Create a new link for a user who lost the invitation or the password."""

    async def run(tx: Tx) -> str:
        organisation_id = await actions.get_organisation(tx, company)
        member = await actions.get_member_by_email(tx, organisation_id, email)
        return await actions.make_reset_link(tx, organisation_id, member.id)

    _show_link(email, transact(run), json)


@app.command()
def setup(company: CompanyId, json: AsJson = False) -> None:
    """Create the setup link for a company's first owner."""
    _show_link("", transact(lambda tx: actions.make_setup_link(tx, company)), json)


def _show_link(email: str, secret: str, as_json: bool) -> None:
    address = f"{read_settings().server.address}/console/link/{secret}"
    show(NewLink(email, address), as_json, "One-time link", ["email", "link"])
