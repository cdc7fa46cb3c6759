"""`sapa demo`: a demo company to look around in."""

import asyncio

import typer
from rich.progress import Progress

from sapa import demo as demo_data
from sapa.cli.connect import reach_database


def demo() -> None:
    """Fill the demo company's test environment with a few thousand customers."""
    asyncio.run(_fill())


async def _fill() -> None:
    with Progress() as progress:
        bar = progress.add_task("customers")
        async with reach_database() as database:
            company = await demo_data.fill(
                database, lambda done, total: progress.update(bar, completed=done, total=total)
            )
    typer.echo(f"The demo company's test environment is company {company.id}.")
    typer.echo(f"A key for it: sapa key create --company {company.id} --name demo --all-scopes --product CRM")
