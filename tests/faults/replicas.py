"""A primary and two synchronous standbys of the embedded PostgreSQL, each behind a forwarder that can fall silent."""

import asyncio
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from signal import SIGINT, SIGKILL

import asyncpg
import psutil

from sapa.runtime.cluster import ENVIRONMENT, Secrets, find_account, program
from sapa.runtime.embedded import EmbeddedServer
from sapa.runtime.processes import ProcessUser, spawn, wait_until
from tests.conftest import copy_prepared, free_port
from tests.faults.traffic import PATIENCE

NAMES = ("one", "two", "three")
SETTINGS = f"""
listen_addresses = '127.0.0.1'
max_connections = 120
synchronous_standby_names = 'ANY 1 ({", ".join(NAMES)})'
wal_receiver_timeout = '5s'
wal_retrieve_retry_interval = '200ms'
wal_keep_size = '512MB'
"""
HBA = "local all all trust\nhost all postgres 127.0.0.1/32 trust\nhost replication postgres 127.0.0.1/32 trust\n"


class Forwarder:
    """Passes bytes between a port of its own and a server's, until it is told to be silent."""

    def __init__(self, server_port: int) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))  # from now on, so that nobody else takes the port
        self.port: int = self._socket.getsockname()[1]
        self._server_port = server_port
        self._passing = asyncio.Event()
        self._passing.set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None

    async def open(self) -> None:
        self._listener = await asyncio.start_server(self._accept, sock=self._socket)

    async def close(self) -> None:
        if self._listener is None:
            self._socket.close()
        else:
            self._listener.close()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    def be_silent(self) -> None:
        """Accepts connections and bytes, and passes none on."""
        self._passing.clear()

    def speak(self) -> None:
        self._passing.set()

    def move(self, server_port: int) -> None:
        """New connections go to another server; those of before stay as they are, and so does their silence."""
        self._server_port = server_port
        self._passing = asyncio.Event()
        self._passing.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passing = self._passing
        await passing.wait()
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._server_port)
        except OSError:
            writer.close()
            return
        for source, target in ((reader, to_server), (from_server, writer)):
            pump = asyncio.create_task(self._pump(source, target, passing))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, passing: asyncio.Event) -> None:
        try:
            while piece := await source.read(65_536):
                await passing.wait()
                target.write(piece)
                await target.drain()
        except OSError:
            pass
        finally:
            target.close()


class Node:
    """One server."""

    def __init__(self, name: str, folder: Path, account: ProcessUser | None) -> None:
        self.name = name
        self.data = folder / name
        self.port = free_port()
        self.forwarder = Forwarder(self.port)
        self._log = folder / f"{name}.log"
        self._account = account
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def superuser_url(self) -> str:
        """Past the forwarder, as another machine of the database's own network reaches it."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def source(self) -> str:
        """How a standby connects to it."""
        return f"host=127.0.0.1 port={self.port} user=postgres"

    async def start(self) -> None:
        command = [program("postgres"), "-D", str(self.data), "-p", str(self.port), "-k", ""]
        with self._log.open("ab") as output:
            self._process = spawn(
                command, SIGINT, account=self._account, env=ENVIRONMENT, cwd="/", output=output.fileno()
            )
        assert await wait_until(self._answers, PATIENCE), self._log.read_text()

    async def _answers(self) -> bool:
        try:
            await self.ask("SELECT 1")
        except (OSError, asyncpg.PostgresError):
            return False
        return True

    async def ask(self, statement: str) -> object:
        connection = await asyncpg.connect(self.superuser_url, timeout=30)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    async def kill(self) -> None:
        """Like a loss of power: no process of it has time for anything."""
        assert self._process is not None
        server = psutil.Process(self._process.pid)
        for process in (server, *server.children()):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        await asyncio.to_thread(self._process.wait)

    async def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(SIGINT)
            await asyncio.to_thread(self._process.wait)

    async def run(self, name: str, *arguments: str) -> None:
        """One of PostgreSQL's programs, as the server's user."""
        process = spawn(
            [program(name), *arguments],
            SIGKILL,
            account=self._account,
            env=ENVIRONMENT,
            cwd="/",
            output=subprocess.PIPE,
        )
        output, _ = await asyncio.to_thread(process.communicate)
        assert process.returncode == 0, output.decode()

    async def follow(self, primary: "Node") -> None:
        """As a standby that runs already."""
        await self.ask(f"ALTER SYSTEM SET primary_conninfo = '{primary.source} application_name={self.name}'")
        await self.ask("SELECT pg_reload_conf()")

    async def rejoin(self, primary: "Node") -> None:
        """As a standby that was a primary: what it wrote and nobody else has is undone."""
        await self.run("pg_rewind", "-D", str(self.data), f"--source-server={primary.source} dbname=postgres")
        conninfo = f"primary_conninfo = '{primary.source} application_name={self.name}'\n"
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write(conninfo)
        (self.data / "standby.signal").touch()
        await self.start()


class Replicas:
    def __init__(self, nodes: list[Node], secrets: Secrets) -> None:
        self.nodes = nodes
        self.primary = nodes[0]
        self.secrets = secrets

    @property
    def standbys(self) -> list[Node]:
        return [node for node in self.nodes if node is not self.primary]

    def build_url(self, role: str, password: str) -> str:
        hosts = ",".join(f"127.0.0.1:{node.forwarder.port}" for node in self.nodes)
        return f"postgresql://{role}:{password}@{hosts}/sapa"

    @property
    def app_url(self) -> str:
        return self.build_url("sapa_app", self.secrets.app)

    @property
    def owner_url(self) -> str:
        return self.build_url("sapa_owner", self.secrets.owner)

    async def fail_over(self) -> Node:
        """Promotes the standby that has the most, as a failover manager does; returns the old primary."""
        old, standbys = self.primary, self.standbys
        positions = {node: await node.ask("SELECT pg_last_wal_receive_lsn() - '0/0'::pg_lsn") for node in standbys}
        new = max(standbys, key=lambda node: int(str(positions[node])))
        await new.ask("SELECT pg_promote()")
        for node in standbys:
            if node is not new:
                await node.follow(new)
        self.primary = new
        return old

    async def wait_until_synchronous(self) -> None:
        """Until both standbys follow the primary."""

        async def follow() -> bool:
            return await self.primary.ask("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == 2

        assert await wait_until(follow, PATIENCE)


@asynccontextmanager
async def open_replicas(folder: Path) -> AsyncIterator[Replicas]:
    """With the product's schema in the database `sapa`."""
    copy_prepared(folder / "data")
    embedded = EmbeddedServer(folder / "data")
    account = find_account(embedded.data, embedded.cluster)
    nodes = [Node(name, folder, account) for name in NAMES]
    embedded.cluster.rename(nodes[0].data)
    hosts = "host sapa all 127.0.0.1/32 scram-sha-256\n"
    (nodes[0].data / "pg_hba.conf").write_text(HBA + hosts)
    with (nodes[0].data / "postgresql.conf").open("a") as file:
        file.write(SETTINGS)
    try:
        await nodes[0].start()
        for node in nodes[1:]:
            node.data.mkdir(mode=0o700)
            if account:
                shutil.chown(node.data, account.uid, account.gid)
            source = f"{nodes[0].source} application_name={node.name}"
            await node.run("pg_basebackup", "-D", str(node.data), "-d", source, "-R", "-c", "fast", "-X", "stream")
            await node.start()
        for node in nodes:
            await node.forwarder.open()
        replicas = Replicas(nodes, embedded.secrets)
        await replicas.wait_until_synchronous()
        yield replicas
    finally:
        for node in reversed(nodes):
            await node.forwarder.close()
            await node.stop()
