"""`sapa serve`: starts the database, the API and the worker, restarts what dies, and stops everything together."""

import asyncio
import os
import ssl
import sys
import time
from contextlib import AsyncExitStack, suppress
from functools import partial
from shutil import rmtree
from signal import SIGINT, SIGKILL, SIGTERM, Signals
from tempfile import TemporaryDirectory
from typing import TextIO

import asyncpg

from sapa.db.connection import DatabaseAway
from sapa.db.migrations import migrate
from sapa.db.migrations.files import MigrationRefused
from sapa.db.pooler import REASON, shares_sessions
from sapa.db.retry import Backoff
from sapa.runtime import first_start
from sapa.runtime.connection_budget import RESERVED, count_connections
from sapa.runtime.embedded import EmbeddedServer, claim_folder
from sapa.runtime.fork_server import ForkServer, ForkServerEnded
from sapa.runtime.processes import (
    CannotStart,
    ChildProcess,
    check_port,
    ended,
    signal_group,
    spawn,
    wait_until,
)
from sapa.settings import ServerSettings, Settings

_STOP_SECONDS = 25
_HEALTHY_SECONDS = 30
_RESTART_PAUSES = (0.25, 5.0)
_LOCAL_HOSTS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


def serve(settings: Settings, forks: ForkServer | None) -> int:
    """Runs everything until SIGTERM or Ctrl-C. Returns 0 after a requested stop, 1 when it could not start."""
    try:
        asyncio.run(Supervisor(settings, forks).run())
    except CannotStart as reason:
        _print(str(reason), sys.stderr)
        return 1
    return 0


class Supervisor:
    def __init__(self, settings: Settings, forks: ForkServer | None) -> None:
        self.settings = settings
        self._forks = forks
        self._server: EmbeddedServer | None = None
        self._children: dict[str, ChildProcess] = {}

    async def run(self) -> None:
        work = asyncio.create_task(self._run())
        for request in (SIGTERM, SIGINT):
            asyncio.get_running_loop().add_signal_handler(request, self._stop, work)
        try:
            await work
        except asyncio.CancelledError:
            _print("Sapa has stopped.")

    def _stop(self, work: asyncio.Task[None]) -> None:
        if not work.cancelling():
            _print("Stopping Sapa …")
            work.cancel()
            return
        for child in self._children.values():
            signal_group(child.pid, SIGKILL)
        if self._server:
            self._server.stop_at_once()

    async def _run(self) -> None:
        server = self.settings.server
        async with AsyncExitStack() as stack:
            if self.settings.database.url is None:
                self._server = await stack.enter_async_context(claim_folder(self.settings.data))
            await check_port(server.host, server.port)
            if self.settings.metrics.listen is not None:
                await check_port(*self.settings.metrics.listen, "SAPA_METRICS_LISTEN")
            if self.settings.worker.listen is not None:
                await check_port(*self.settings.worker.listen, "SAPA_WORKER_LISTEN")
            if self.settings.sandbox.smtp_listen is not None:
                await check_port(*self.settings.sandbox.smtp_listen, "SAPA_SANDBOX_SMTP_LISTEN")
            owner_url, app_url = await self._open_database(stack)
            await self._prepare_database(owner_url, app_url)
            metrics = self._metrics_folder(stack)
            await self._run_children(owner_url, self._environment(app_url, metrics))

    def _metrics_folder(self, stack: AsyncExitStack) -> str:
        """Empty at every start; in the data folder where there is one, so that a kill leaves nothing elsewhere."""
        if self._server is None:
            return stack.enter_context(TemporaryDirectory(prefix="sapa-metrics-"))
        folder = self.settings.data / "metrics"
        rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        return str(folder)

    async def _open_database(self, stack: AsyncExitStack) -> tuple[str, str]:
        database = self.settings.database
        if self._server:
            stack.push_async_callback(self._server.stop)
            needed = count_connections(self.settings) + RESERVED
            self._server.max_connections = max(self._server.max_connections, needed)
            await self._server.start()
            return self._server.owner_url, self._server.app_url
        url = database.url or ""
        return database.owner_url or url, url

    async def _prepare_database(self, owner_url: str, app_url: str) -> None:
        try:
            if self._server is None and await shares_sessions(app_url):
                raise CannotStart(REASON)
            await migrate(owner_url, app_url)
            file = first_start.find_file(self.settings, sys.stdout)
            welcome = await first_start.prepare(app_url, self.settings, file)
        except MigrationRefused as reason:
            raise CannotStart(str(reason)) from reason
        except (DatabaseAway, asyncpg.PostgresError) as error:
            where = self._server.log if self._server else "SAPA_DATABASE_URL"
            raise CannotStart(f"The database cannot be used ({error}); check {where}.") from error
        if welcome:
            _print(welcome)

    def _environment(self, app_url: str, metrics: str) -> dict[str, str]:
        """The children's environment: the current settings, without the owner's password."""
        server = self.settings.server
        environment = {name: value for name, value in os.environ.items() if name != "SAPA_DATABASE_OWNER_URL"}
        environment |= {
            "SAPA_DATA": str(self.settings.data),
            "SAPA_DATABASE_URL": app_url,
            "SAPA_HOST": server.host,
            "SAPA_PORT": str(server.port),
            "SAPA_PROCESSES": str(server.processes),
            "PROMETHEUS_MULTIPROC_DIR": metrics,
            "SAPA_DRAIN_SECONDS": os.environ.get("SAPA_DRAIN_SECONDS") or "0",  # nobody takes over
        }
        if server.tls_cert and server.tls_key:
            environment |= {"SAPA_TLS_CERT": str(server.tls_cert), "SAPA_TLS_KEY": str(server.tls_key)}
        if self._server and not environment.get("SAPA_SECRET_KEY"):
            environment["SAPA_SECRET_KEY"] = self._server.secret_key
        return environment

    async def _run_children(self, owner_url: str, environment: dict[str, str]) -> None:
        # Only the worker makes backups, which only the owner can.
        privileges = {"SAPA_DATABASE_OWNER_URL": owner_url} if self.settings.backups.url else {}
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep_child_running("api", environment))
            group.create_task(self._keep_child_running("worker", environment | privileges))
            if self._server:
                group.create_task(_keep_server_running(self._server))
            group.create_task(_announce(self.settings.server))

    async def _keep_child_running(self, name: str, environment: dict[str, str]) -> None:
        backoff = Backoff(*_RESTART_PAUSES)
        while True:
            started = time.monotonic()
            child = self._children[name] = self._start(name, environment)
            try:
                code = await ended(child)
            finally:
                await _end(child)
            _print(f"sapa {name} {_describe_exit(code)}; starting it again.", sys.stderr)
            await _pause_before_restart(backoff, started)

    def _start(self, name: str, environment: dict[str, str]) -> ChildProcess:
        if self._forks is not None:
            try:
                return self._forks.start(name, environment)
            except ForkServerEnded:
                self._forks = None
        return spawn([sys.executable, "-m", "sapa", name], SIGTERM, env=environment)


async def _pause_before_restart(backoff: Backoff, started: float) -> None:
    """No pause after 30 healthy seconds; what fails sooner is restarted after longer and longer ones."""
    if time.monotonic() - started > _HEALTHY_SECONDS:
        backoff.reset()
    else:
        await asyncio.sleep(backoff.next())


async def _keep_server_running(server: EmbeddedServer) -> None:
    backoff = Backoff(*_RESTART_PAUSES)
    while True:
        started = time.monotonic()
        _print(f"The embedded PostgreSQL {_describe_exit(await server.ended())}; starting it again.", sys.stderr)
        await _pause_before_restart(backoff, started)
        try:
            await server.start()
        except CannotStart as reason:
            _print(str(reason), sys.stderr)


async def _end(child: ChildProcess) -> None:
    """Stops a child and its whole session, so that nothing shares its successor's port."""
    if child.poll() is None:
        child.terminate()
        await wait_until(lambda: child.poll() is not None, _STOP_SECONDS)
    signal_group(child.pid, SIGKILL)
    await ended(child)


async def _announce(server: ServerSettings) -> None:
    await wait_until(partial(_is_ready, server), every=0.05)
    _print(f"Sapa is running at {server.address} — Ctrl-C stops it.")


async def _is_ready(server: ServerSettings) -> bool:
    with suppress(OSError, EOFError):
        async with asyncio.timeout(10):
            return b" 200" in await _read_status_line(server, "/readyz")
    return False


async def _read_status_line(server: ServerSettings, path: str) -> bytes:
    host = _LOCAL_HOSTS.get(server.host, server.host)
    encryption = _build_unverified_tls() if server.tls_cert else None
    reader, writer = await asyncio.open_connection(host, server.port, ssl=encryption)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return await reader.readline()
    finally:
        writer.close()


def _build_unverified_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _describe_exit(code: int) -> str:
    return f"was ended by {Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _print(sentence: str, where: TextIO | None = None) -> None:
    with suppress(OSError):
        print(sentence, file=where or sys.stdout, flush=True)
