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


@asynccontextmanager
async def scratch_database(server: EmbeddedServer) -> AsyncIterator[Scratch]:
    """Made for the block, dropped after it, whoever is still connected."""
    superuser = server.owner_url.replace(f"sapa_owner:{server.secrets.owner}", f"postgres:{server.secrets.superuser}")
    name = f"scratch_{uuid4().hex}"
    connection = await asyncpg.connect(superuser)
    try:
        await connection.execute(f"CREATE DATABASE {name} OWNER sapa_owner")
        urls = (url.replace("@/sapa?", f"@/{name}?") for url in (superuser, server.owner_url, server.app_url))
        yield Scratch(*urls)
    finally:
        await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await connection.close()


@asynccontextmanager
async def migrated_database(server: EmbeddedServer) -> AsyncIterator[Scratch]:
    """A scratch database with the product's schema, and no worker that changes it behind the test's back."""
    async with scratch_database(server) as scratch:
        await migrate(scratch.owner_url, scratch.app_url)
        yield scratch


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()
