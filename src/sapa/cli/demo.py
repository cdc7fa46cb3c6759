"""`sapa demo`: a company with demo data."""

import asyncio

import typer
from rich.console import Console
from rich.progress import Progress, TaskID

from sapa.cli.connect import reach_database
from sapa.demo import shop as demo_data


def demo() -> None:
    """Fill the demo company's test environment: an Indonesian shop with customers, products, orders and parcels."""
    asyncio.run(_fill())


async def _fill() -> None:
    bars: dict[str, TaskID] = {}
    with Progress(console=Console(stderr=True)) as progress:

        def report(what: str, done: int, total: int) -> None:
            if what not in bars:
                bars[what] = progress.add_task(what)
            progress.update(bars[what], completed=done, total=total)

        async with reach_database(may_begin=True) as database:
            company = await demo_data.fill(database, report)
    typer.echo(f"The demo company's test environment is company {company.id}.")
    typer.echo(f"To create a key for it: sapa key create --company {company.id} --name demo --all-scopes")
