"""`sapa token`: developer tokens, with which a developer's machine listens to events."""

from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from sapa.cli.connect import AsJson, CompanyId, in_company, show, transact
from sapa.webhooks.tokens import actions as tokens

app = typer.Typer(no_args_is_help=True, help="Developer tokens, for `sapa listen`.")

COLUMNS = ["id", "companyId", "createdAt", "expiresAt"]


@app.command()
def create(
    company: CompanyId,
    days: Annotated[int, typer.Option(help="How many days the token is valid.")] = tokens.DEFAULT_DAYS,
    json: AsJson = False,
) -> None:
    """Create a token for listening to the company's events. Its value is shown once."""
    new = transact(lambda tx: tokens.create(tx, company, days))
    info: dict[str, Any] = msgspec.to_builtins(new.info)
    show({**info, "token": new.token}, json, "Token created", COLUMNS)
    if not json:
        text = f"\n  {new.token}\n\nIt is shown only once: copy it now."
        Console(soft_wrap=True).print(text, highlight=False)


@app.command()
def revoke(
    which: Annotated[str, typer.Argument(help="The token's id from `sapa token list`, or the token itself.")],
    json: AsJson = False,
) -> None:
    """Revoke a token; listeners that use it are disconnected."""
    show(transact(lambda tx: tokens.revoke(tx, which)), json, "Token revoked", COLUMNS)


@app.command("list")
def list_(company: CompanyId, json: AsJson = False) -> None:
    """List a company's tokens, without their values."""
    show(transact(in_company(company, lambda tx: tokens.list_tokens(tx, company))), json, "Developer tokens", COLUMNS)
