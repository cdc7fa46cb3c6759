"""Databases of a test's own, on the server of the installation."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import asyncpg
from msgspec import Struct

from sapa.db.pool import Connection
from sapa.runtime.embedded import EmbeddedServer
from tests.citus import cluster


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
    if isinstance(server, cluster.ClusterServer):
        async with cluster.copied_database() as name:
            yield Scratch(*(cluster.build_url(name, role) for role in (None, "sapa_owner", "sapa_app")))
    else:
        async with scratch_database(server, TEMPLATE) as scratch:
            yield scratch


async def make_template(server: EmbeddedServer) -> None:
    """On a server whose own database is migrated and not in use yet."""
    async with connect(build_urls(server, "postgres").superuser_url) as superuser:
        await superuser.execute(f"CREATE DATABASE {TEMPLATE} OWNER sapa_owner TEMPLATE sapa")


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
