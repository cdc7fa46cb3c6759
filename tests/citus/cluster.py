"""A Citus cluster that the tests were given: SAPA_TEST_DATABASE_URL is a superuser's address of its coordinator.

In that database the extension must be installed and the coordinator and the workers be known. Each installation gets
databases of its own on all of them, copies of one whose tables are distributed.
"""

import asyncio
import os
import secrets
from base64 import b64encode
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import msgspec
from msgspec import Struct

from sapa.db.distribution import SETTINGS, distribute
from sapa.db.migrations import migrate
from sapa.db.pool import Connection
from sapa.runtime.embedded import EmbeddedServer

URL = os.environ.get("SAPA_TEST_DATABASE_URL")
SHARDS = 4
TEMPLATE = "sapa_test_distributed"
_LOCK = 0x5A9B

_ROLES = """
    DO $$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'sapa_app') THEN
            CREATE ROLE sapa_owner LOGIN;
            CREATE ROLE sapa_app LOGIN;
        END IF;
    END $$"""
_DISCONNECT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()"


class Node(Struct, frozen=True):
    host: str
    port: int


class ClusterDatabase(Struct, frozen=True):
    """What an installation was given: in its data folder."""

    name: str
    secret_key: str


class ClusterServer(EmbeddedServer):
    """Stands for the embedded server where tests ask an installation for its database."""

    @cached_property
    def given(self) -> ClusterDatabase:
        return msgspec.json.decode((self.data / "cluster.json").read_bytes(), type=ClusterDatabase)

    @property
    def secret_key(self) -> str:
        return self.given.secret_key

    @property
    def owner_url(self) -> str:
        return _extensible(build_url(self.given.name, "sapa_owner"))

    @property
    def app_url(self) -> str:
        return _extensible(build_url(self.given.name, "sapa_app"))


def _extensible(url: str) -> str:
    """Like the embedded server's, to which tests add parameters."""
    return f"{url}?sslmode=prefer"


def build_url(database: str, role: str | None = None, node: Node | None = None) -> str:
    """The given address, of another database, role or node."""
    assert URL is not None
    parts = urlsplit(URL)
    user = role or parts.username or "postgres"
    password = f":{parts.password}" if parts.password and role is None else ""
    host, port = (parts.hostname, parts.port or 5432) if node is None else (node.host, node.port)
    return f"postgresql://{user}{password}@{host}:{port}/{database}"


def make_database(data: Path) -> dict[str, str]:
    """Makes a database for a new data folder; returns the settings with which `sapa serve` uses it."""
    given = ClusterDatabase(_make_name(), b64encode(secrets.token_bytes(32)).decode())
    with ThreadPoolExecutor(1) as thread:  # the caller's may have an event loop that runs
        thread.submit(asyncio.run, copy_template(given.name)).result()
    data.mkdir(parents=True)
    (data / "cluster.json").write_bytes(msgspec.json.encode(given))
    return build_settings(data)


def build_settings(data: Path) -> dict[str, str]:
    """With which processes use the database of a data folder; none if it has none in the cluster."""
    if not (data / "cluster.json").exists():
        return {}
    server = ClusterServer(data)
    return {
        "SAPA_DATABASE_URL": server.app_url,
        "SAPA_DATABASE_OWNER_URL": server.owner_url,
        "SAPA_SECRET_KEY": server.secret_key,
    }


@asynccontextmanager
async def copied_database() -> AsyncIterator[str]:
    """The name of a distributed database for the block."""
    name = _make_name()
    await copy_template(name)
    try:
        yield name
    finally:
        await _drop(name)


@asynccontextmanager
async def plain_database() -> AsyncIterator[str]:
    """The name of a migrated database for the block, whose tables are not distributed."""
    name = _make_name()
    async with _connect(URL or "") as coordinator:
        nodes = await _list_nodes(coordinator)
    try:
        await _make_plain(name, nodes)
        yield name
    finally:
        await _drop(name)


async def _drop(name: str) -> None:
    async with _connect(URL or "") as coordinator:
        nodes = await _list_nodes(coordinator)
    for node in nodes:
        async with _connect(build_url("postgres", node=node)) as superuser:
            await superuser.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _make_name() -> str:
    return f"sapa_test_{secrets.token_hex(6)}"


async def copy_template(name: str) -> None:
    async with _connect(URL or "") as coordinator:
        await coordinator.execute("SELECT pg_advisory_lock($1)", _LOCK)
        nodes = await _list_nodes(coordinator)
        if not await coordinator.fetchval("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", TEMPLATE):
            await _make_template(nodes)
        for node in nodes:
            async with _connect(build_url("postgres", node=node)) as superuser:
                await superuser.execute(f"CREATE DATABASE {name} OWNER sapa_owner TEMPLATE {TEMPLATE}")
    async with _connect(build_url(name)) as superuser:
        await superuser.execute(SETTINGS)  # a database's settings are not copied


async def _list_nodes(coordinator: Connection) -> list[Node]:
    """The coordinator first."""
    rows = await coordinator.fetch("SELECT nodename, nodeport FROM pg_dist_node ORDER BY groupid")
    return [Node(*row) for row in rows]


async def _make_template(nodes: list[Node]) -> None:
    unfinished = f"{TEMPLATE}_unfinished"
    await _drop(unfinished)
    await _make_plain(unfinished, nodes)
    await distribute(build_url(unfinished, "sapa_owner"), SHARDS, print)
    for node in nodes:
        async with _connect(build_url("postgres", node=node)) as superuser:
            # Otherwise Citus connects to it again and again, and a database that is in use is not copied.
            await superuser.execute(f"ALTER DATABASE {unfinished} ALLOW_CONNECTIONS false")
            await superuser.execute(_DISCONNECT, unfinished)
            await superuser.execute(f"ALTER DATABASE {unfinished} RENAME TO {TEMPLATE}")


async def _make_plain(name: str, nodes: list[Node]) -> None:
    for node in nodes:
        async with _connect(build_url("postgres", node=node)) as superuser:
            await superuser.execute(_ROLES)
            await superuser.execute(f"CREATE DATABASE {name} OWNER sapa_owner")
        async with _connect(build_url(name, node=node)) as superuser:
            await superuser.execute("CREATE EXTENSION citus")
    async with _connect(build_url(name)) as superuser:
        await superuser.execute("SELECT citus_set_coordinator_host($1, $2)", nodes[0].host, nodes[0].port)
        for node in nodes[1:]:
            await superuser.execute("SELECT citus_add_node($1, $2)", node.host, node.port)
    await migrate(build_url(name, "sapa_owner"), build_url(name, "sapa_app"))


@asynccontextmanager
async def _connect(url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()
