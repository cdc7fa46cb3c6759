"""`sapa serve`, `api`, `worker`, `migrate`: the processes of an installation."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sapa.cli.demo import demo
from sapa.cli.doctor import doctor
from sapa.context import build_kit
from sapa.db.migrations import migrate as apply_migrations
from sapa.db.pool import Database
from sapa.domains import HOOKS, SERVICES, SIMULATORS, build_jobs, install
from sapa.logs import configure_logs
from sapa.runtime import api_server, supervisor
from sapa.runtime.embedded import open_embedded
from sapa.runtime.processes import CannotStart
from sapa.settings import Settings, read_settings
from sapa.work.worker import CONNECTIONS_OF_A_SERVICE, Worker

Port = Annotated[int | None, typer.Option(help="The port to listen on (SAPA_PORT, 8000).")]
Host = Annotated[str | None, typer.Option(help="The address to listen on (SAPA_HOST, 127.0.0.1).")]
Data = Annotated[Path | None, typer.Option(help="The data folder (SAPA_DATA, ./data).")]
TlsCert = Annotated[Path | None, typer.Option(help="Certificate chain, to serve HTTPS (SAPA_TLS_CERT).")]
TlsKey = Annotated[Path | None, typer.Option(help="The certificate's private key (SAPA_TLS_KEY).")]


def serve(
    port: Port = None, host: Host = None, data: Data = None, tls_cert: TlsCert = None, tls_key: TlsKey = None
) -> None:
    """Run everything: database, migrations, API and worker."""
    sys.exit(supervisor.serve(_settings_with(port, host, data, tls_cert, tls_key)))


def api(port: Port = None, host: Host = None, tls_cert: TlsCert = None, tls_key: TlsKey = None) -> None:
    """Run the API processes alone, against SAPA_DATABASE_URL."""
    settings = _settings_with(port, host, None, tls_cert, tls_key)
    _need_url(settings)
    sys.exit(api_server.run(settings))


def worker() -> None:
    """Run one worker alone, against SAPA_DATABASE_URL."""
    settings = read_settings()
    configure_logs(settings.log_level)
    asyncio.run(_work(settings, _need_url(settings)))


def migrate() -> None:
    """Bring the database's schema up to date."""
    settings = read_settings()
    applied = asyncio.run(_migrate(settings))
    typer.echo("\n".join(f"applied {name}" for name in applied) or "The schema is up to date.")


COMMANDS: list[Callable[..., None]] = [serve, api, worker, migrate, doctor, demo]


def _settings_with(
    port: int | None, host: str | None, data: Path | None, tls_cert: Path | None, tls_key: Path | None
) -> Settings:
    """Options win over variables; as variables they reach the child processes, too."""
    options = {"PORT": port, "HOST": host, "DATA": data, "TLS_CERT": tls_cert, "TLS_KEY": tls_key}
    os.environ.update({f"SAPA_{name}": str(value) for name, value in options.items() if value is not None})
    return read_settings()


def _need_url(settings: Settings) -> str:
    if settings.database.url is None:
        raise CannotStart("Set SAPA_DATABASE_URL, or use `sapa serve`, which starts the embedded database.")
    return settings.database.url


async def _work(settings: Settings, url: str) -> None:
    install()
    jobs = build_jobs(settings)
    database = Database(url, len(jobs) + len(SERVICES) * CONNECTIONS_OF_A_SERVICE + 1, "sapa worker")
    try:
        await Worker(build_kit(settings, database, [*HOOKS, *SIMULATORS]), jobs, SERVICES).run()
    finally:
        await database.close()


async def _migrate(settings: Settings) -> list[str]:
    database = settings.database
    if database.url is not None and database.owner_url is not None:
        return await apply_migrations(database.owner_url, database.url)
    async with open_embedded(settings.data) as server:
        return await apply_migrations(server.owner_url, server.app_url)
