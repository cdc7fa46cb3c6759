"""`sapa rates`: what channels charge for messages."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sapa.access.actions import get_company
from sapa.cli.connect import AsJson, CompanyId, reach_database, show, transact
from sapa.cli.files import explain_os_errors
from sapa.db.pool import Tx
from sapa.messaging.costs import actions
from sapa.messaging.costs.rate_files import COLUMNS, parse_rates
from sapa.messaging.costs.types import MessageRate, RateImport
from sapa.messaging.messages import pricing
from sapa.values.company import Company

app = typer.Typer(no_args_is_help=True, help="Rates: what channels charge for messages.")

BATCH = 500

OfCompany = Annotated[
    int | None, typer.Option("--company", min=1, max=2**63 - 1, help="Only for this company; by default for all.")
]


@app.callback()
def group() -> None:
    """Rates: what channels charge for messages."""


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help=f"A CSV file with the columns {', '.join(COLUMNS)}.")],
    company: OfCompany = None,
    replace: Annotated[bool, typer.Option("--replace", help="Remove the rates that are not in the file.")] = False,
    json: AsJson = False,
) -> None:
    """Import rates, for all companies or for one.

    A rate applies from its date until a later rate. The country is an ISO 3166 code, or * for all countries without a
    rate of their own. A company's own rates take precedence. Costs of messages that already have one do not change.
    """
    with explain_os_errors(f"The file {file} cannot be read"):
        content = file.read_bytes()
    rates = parse_rates(content, company)

    async def store(tx: Tx) -> RateImport:
        if company is not None:
            await get_company(tx, company)
        return await actions.import_rates(tx, company, rates, is_complete=replace)

    show(transact(store), json, "Rates imported", ["rates", "created", "changed", "removed"])


@app.command("list")
def list_(company: OfCompany = None, json: AsJson = False) -> None:
    """List the rates, or those that apply to a company."""

    async def read(tx: Tx) -> list[MessageRate]:
        if company is not None:
            await get_company(tx, company)
        return await actions.list_rates(tx, company)

    columns = ["companyId", "country", "category", "startsOn", "currency", "price"]
    show(transact(read), json, "Rates", columns)


@app.command()
def backfill(company: CompanyId, json: AsJson = False) -> None:
    """Price messages that had no rate when they arrived, by the rates of their days.

    Costs that exist do not change.
    """
    priced = asyncio.run(_backfill(company))
    if json:
        show({"priced": priced}, json, "", [])
    else:
        Console(soft_wrap=True, highlight=False).print(f"{priced:,} messages have a cost now.", markup=False)


async def _backfill(company_id: int) -> int:
    """In batches, each in a transaction of its own; it can be stopped and run again."""
    priced = 0
    after: str | None = ""
    async with reach_database() as database:
        async with database.connection() as db:
            company = await get_company(db, company_id)
        while after is not None:
            number, after = await database.transact(partial(_price_batch, company, after))
            priced += number
    return priced


async def _price_batch(company: Company, after: str, tx: Tx) -> tuple[int, str | None]:
    return await pricing.backfill(tx, company, after, BATCH)
