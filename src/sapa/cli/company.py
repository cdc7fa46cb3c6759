"""`sapa company`: companies and their environments."""

from typing import Annotated

import typer

from sapa.access import actions
from sapa.cli.connect import AsJson, show, transact

app = typer.Typer(no_args_is_help=True, help="Companies and their environments.")

Region = Annotated[str, typer.Option(help="ISO 3166 code of the country whose phone numbers need no country code.")]
Currency = Annotated[str, typer.Option(help="ISO 4217 code of the default currency.")]


@app.command()
def create(name: str, region: Region = "ID", currency: Currency = "IDR", json: AsJson = False) -> None:
    """Create a company with a live and a test environment."""
    company = transact(lambda tx: actions.create_company(tx, name, region, currency), may_begin=True)
    show(company, json, "Company created", ["name", "liveCompanyId", "testCompanyId"])


@app.command("list")
def list_(json: AsJson = False) -> None:
    """List all companies, one line per environment."""
    companies = transact(actions.list_companies)
    show(companies, json, "Companies", ["companyId", "name", "environment", "region", "currency", "createdAt"])
