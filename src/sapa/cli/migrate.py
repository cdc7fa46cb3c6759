"""`sapa migrate`: the database's schema."""

import asyncio

import typer

from sapa.cli.connect import reach_owner
from sapa.db.migrations import migrate as apply_migrations


def migrate() -> None:
    """Bring the database's schema up to date, and report the progress of each step."""
    if not asyncio.run(_migrate()):
        typer.echo("The schema is up to date.")


async def _migrate() -> list[str]:
    async with reach_owner(may_begin=True) as urls:
        return await apply_migrations(urls.owner, urls.app, report=typer.echo)
