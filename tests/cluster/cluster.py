"""Three database hosts under Patroni, three API hosts, two workers and a load balancer, with the files of `deploy`."""

import asyncio
import secrets
import shutil
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import asyncpg
import httpx

from sapa.db.migrations import migrate
from sapa.runtime.processes import wait_until
from tests.cluster.hosts import Host, open_network

DEPLOY = Path(__file__).parents[2] / "deploy" / "high-availability"
HERE = "10.77.0.1"
BALANCER = "10.77.0.2"
DATABASES = {"db1": "10.77.0.11", "db2": "10.77.0.12", "db3": "10.77.0.13"}
APIS = {"api1": "10.77.0.21", "api2": "10.77.0.22", "api3": "10.77.0.23"}
WORKERS = {"worker1": "10.77.0.31", "worker2": "10.77.0.32"}
PATIENCE = 120
SUPERUSER = "change-this-superuser-password"
APP, OWNER = "change-this-app-password", "change-this-owner-password"


def read_environment(file: str) -> dict[str, str]:
    lines = (DEPLOY / file).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def build_superuser_url(address: str) -> str:
    return f"postgresql://postgres:{SUPERUSER}@{address}:5432/postgres"


async def ask(address: str, statement: str) -> object:
    """One value; nothing from a server that is away."""
    try:
        connection = await asyncpg.connect(build_superuser_url(address), timeout=5)
        try:
            return await connection.fetchval(statement, timeout=5)
        finally:
            connection.terminate()
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return None


class Cluster:
    def __init__(self, folder: Path) -> None:
        hosts = DATABASES | APIS | WORKERS | {"balancer": BALANCER}
        self.hosts = {name: Host(name, address, folder) for name, address in hosts.items()}
        self.secret_key = b64encode(secrets.token_bytes(32)).decode()

    @property
    def owner_url(self) -> str:
        return self._url("sapa_owner", OWNER)

    @property
    def app_url(self) -> str:
        return self._url("sapa_app", APP)

    def _url(self, role: str, password: str) -> str:
        return f"postgresql://{role}:{password}@{','.join(f'{host}:5432' for host in DATABASES.values())}/sapa"

    async def start(self) -> None:
        for name in DATABASES:
            self.start_database(name)
        assert await wait_until(self._has_primary, PATIENCE), "no primary"
        await self._create_database()
        assert await wait_until(self.is_whole, PATIENCE, every=1), "a standby is missing"
        await migrate(self.owner_url, self.app_url)
        for name in APIS:
            self.start_sapa(name, "api")
        for name in WORKERS:
            self.start_sapa(name, "worker")
        self.hosts["balancer"].start("haproxy", ["haproxy", "-db", "-f", str(DEPLOY / "haproxy.cfg")], {})
        assert await wait_until(self._is_ready, PATIENCE), "no API host is ready"

    def start_database(self, name: str) -> None:
        host = self.hosts[name]
        data = host.folder / "data"
        if not data.exists():
            for folder in (data, host.folder / "etcd", host.folder / "home"):
                folder.mkdir(mode=0o700)
                shutil.chown(folder, "postgres", "postgres")
        first = DATABASES["db1"]
        etcd = {key: value.replace(first, host.address) for key, value in read_environment("etcd.env").items()}
        etcd |= {"ETCD_NAME": name, "ETCD_DATA_DIR": str(host.folder / "etcd")}
        etcd["ETCD_INITIAL_CLUSTER"] = read_environment("etcd.env")["ETCD_INITIAL_CLUSTER"]
        host.start("etcd", ["etcd"], etcd, user="postgres")
        patroni = {key: value.replace(first, host.address) for key, value in read_environment("patroni.env").items()}
        patroni |= {"PATRONI_NAME": name, "PATRONI_POSTGRESQL_DATA_DIR": str(data)}
        patroni["PATRONI_POSTGRESQL_PGPASS"] = str(host.folder / "home" / "pgpass")  # otherwise the hosts share one
        host.start("patroni", ["patroni", str(DEPLOY / "patroni.yml")], patroni, user="postgres")

    def start_sapa(self, name: str, command: str) -> None:
        """The first host of each kind reaches the primary through the balancer, the others by themselves."""
        environ = read_environment("sapa.env") | {"SAPA_SECRET_KEY": self.secret_key, "SAPA_PROCESSES": "1"}
        environ["SAPA_WEBHOOK_ALLOW_INSECURE"] = "1"
        if name.endswith("1"):
            environ["SAPA_DATABASE_URL"] = f"postgresql://sapa_app:{APP}@{BALANCER}:5000/sapa"
        self.hosts[name].start("sapa", [sys.executable, "-m", "sapa", command], environ)

    async def find_primary(self) -> str | None:
        """The name of the host whose Patroni says that it is the primary."""
        async with httpx.AsyncClient(timeout=2) as client:
            for name, address in DATABASES.items():
                try:
                    if (await client.get(f"http://{address}:8008/primary")).status_code == 200:
                        return name
                except httpx.TransportError:
                    continue
        return None

    async def _has_primary(self) -> bool:
        return await self.find_primary() is not None

    async def is_whole(self) -> bool:
        """There is a primary, and all the others follow it."""
        primary = await self.find_primary()
        streaming = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
        return primary is not None and await ask(DATABASES[primary], streaming) == len(DATABASES) - 1

    async def has_synchronous_standby(self) -> bool:
        async with httpx.AsyncClient(timeout=2) as client:
            for address in DATABASES.values():
                try:
                    if (await client.get(f"http://{address}:8008/synchronous")).status_code == 200:
                        return True
                except httpx.TransportError:
                    continue
        return False

    async def wait_for_promotion(self, primary: str) -> float:
        """When another host became the primary."""
        others = [address for name, address in DATABASES.items() if name != primary]

        async def is_promoted() -> bool:
            in_recovery = await asyncio.gather(*(ask(address, "SELECT pg_is_in_recovery()") for address in others))
            return False in in_recovery

        assert await wait_until(is_promoted, PATIENCE, every=0.2), "no standby was promoted"
        return time.monotonic()

    async def _create_database(self) -> None:
        primary = await self.find_primary()
        connection = await asyncpg.connect(build_superuser_url(DATABASES[primary or ""]))
        try:
            await connection.execute(f"CREATE ROLE sapa_owner LOGIN PASSWORD '{OWNER}'")
            await connection.execute(f"CREATE ROLE sapa_app LOGIN PASSWORD '{APP}'")
            await connection.execute("CREATE DATABASE sapa OWNER sapa_owner")
        finally:
            await connection.close()

    async def _is_ready(self) -> bool:
        async with httpx.AsyncClient(timeout=5) as client:
            try:
                return (await client.get(f"http://{BALANCER}/readyz")).status_code == 200
            except httpx.TransportError:
                return False

    async def kill_postgres(self, name: str) -> None:
        """Only the database: Patroni on its host goes on."""
        number = (self.hosts[name].folder / "data" / "postmaster.pid").read_text().split("\n", 1)[0]
        await asyncio.to_thread(subprocess.run, ["kill", "-9", number], check=True)

    async def switch_over(self, name: str) -> None:
        """As an operator does before maintenance."""
        async with httpx.AsyncClient(timeout=60) as client:
            response = await client.post(f"http://{DATABASES[name]}:8008/switchover", json={"leader": name})
            assert response.status_code == 200, response.text


@asynccontextmanager
async def open_cluster(folder: Path) -> AsyncIterator[Cluster]:
    with ExitStack() as stack:
        stack.enter_context(open_network(HERE))
        cluster = Cluster(folder)
        for host in cluster.hosts.values():
            stack.callback(host.close)
            host.open()
        await cluster.start()
        yield cluster
