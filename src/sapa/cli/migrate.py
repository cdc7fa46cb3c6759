"""`sapa migrate`: the database's schema."""

import asyncio

import typer

from sapa.db.migrations import migrate as apply_migrations
from sapa.runtime.embedded import open_embedded
from sapa.settings import Settings, read_settings


def migrate() -> None:
    """Bring the database's schema up to date."""
    settings = read_settings()
    applied = asyncio.run(_migrate(settings))
    typer.echo("\n".join(f"applied {name}" for name in applied) or "The schema is up to date.")


async def _migrate(settings: Settings) -> list[str]:
    database = settings.database
    if database.url is not None and database.owner_url is not None:
        return await apply_migrations(database.owner_url, database.url)
    async with open_embedded(settings.data) as server:
        return await apply_migrations(server.owner_url, server.app_url)
