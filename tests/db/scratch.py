"""Databases of a test's own, on the server of the installation."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import asyncpg
from msgspec import Struct

from sapa.db.migrations import migrate
from sapa.db.pool import Connection
from sapa.runtime.embedded import EmbeddedServer


class Scratch(Struct, frozen=True):
    """An empty database, reachable as each of the three roles."""

    superuser_url: str
    owner_url: str
    app_url: str


TEMPLATE = "migrated"
"""The database that those with the product's schema are copies of: copying it is quicker than migrating."""


@asynccontextmanager
async def scratch_database(server: EmbeddedServer, template: str = "template1") -> AsyncIterator[Scratch]:
    """Made for the block, dropped after it, whoever is still connected."""
    name = f"scratch_{uuid4().hex}"
    async with connect(build_urls(server, "sapa").superuser_url) as superuser:
        try:
            await superuser.execute(f"CREATE DATABASE {name} OWNER sapa_owner TEMPLATE {template}")
            yield build_urls(server, name)
        finally:
            await superuser.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@asynccontextmanager
async def migrated_database(server: EmbeddedServer) -> AsyncIterator[Scratch]:
    """A scratch database with the product's schema, and no worker that changes it behind the test's back."""
    await _make_template(server)
    async with scratch_database(server, TEMPLATE) as scratch:
        yield scratch


async def _make_template(server: EmbeddedServer) -> None:
    async with connect(build_urls(server, "sapa").superuser_url) as superuser:
        if await superuser.fetchval("SELECT true FROM pg_database WHERE datname = $1", TEMPLATE):
            return
        await superuser.execute(f"DROP DATABASE IF EXISTS {TEMPLATE}_unfinished")
        await superuser.execute(f"CREATE DATABASE {TEMPLATE}_unfinished OWNER sapa_owner")
        urls = build_urls(server, f"{TEMPLATE}_unfinished")
        await migrate(urls.owner_url, urls.app_url)
        await superuser.execute(f"ALTER DATABASE {TEMPLATE}_unfinished RENAME TO {TEMPLATE}")


def build_urls(server: EmbeddedServer, database: str) -> Scratch:
    superuser = server.owner_url.replace(f"sapa_owner:{server.secrets.owner}", f"postgres:{server.secrets.superuser}")
    return Scratch(*(url.replace("@/sapa?", f"@/{database}?") for url in (superuser, server.owner_url, server.app_url)))


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()
