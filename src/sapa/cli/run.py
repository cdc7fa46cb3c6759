"""`sapa api` and `sapa worker`: the processes that `sapa serve` starts, each on its own."""

import asyncio
import sys
from contextlib import suppress

import typer
import uvloop

from sapa.cli.process_settings import Host, Port, TlsCert, TlsKey, get_database_url, read_settings_with
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database
from sapa.db.pooler import REASON, shares_sessions
from sapa.domains import FREE_WORK, SERVICES, build_jobs, build_process_context
from sapa.logs import configure_logs
from sapa.runtime import api_server
from sapa.runtime.exposure import list_exposures
from sapa.runtime.processes import CannotStart
from sapa.runtime.tracing import record_traces
from sapa.runtime.worker_address import open_address
from sapa.settings import Settings, read_settings
from sapa.wiring import install
from sapa.work.worker import CONNECTION_SECONDS, Worker


def api(port: Port = None, host: Host = None, tls_cert: TlsCert = None, tls_key: TlsKey = None) -> None:
    """Run only the API processes, with SAPA_DATABASE_URL."""
    settings = read_settings_with(port, host, None, tls_cert, tls_key)
    _refuse_shared_sessions(get_database_url(settings))
    for exposure in list_exposures(settings):
        typer.echo(f"Warning: {exposure.sentence}", err=True)
    sys.exit(api_server.run(settings))


def worker() -> None:
    """Run only one worker, with SAPA_DATABASE_URL."""
    settings = read_settings()
    configure_logs(settings.log_level)
    url = get_database_url(settings)
    _refuse_shared_sessions(url)
    with record_traces(settings.traces, "sapa worker"):
        uvloop.run(_work(settings, url))


def _refuse_shared_sessions(url: str) -> None:
    """A database that is away may come later."""
    with suppress(DatabaseAway):
        if asyncio.run(shares_sessions(url)):
            raise CannotStart(REASON)


async def _work(settings: Settings, url: str) -> None:
    install()
    database = Database(url, settings.worker.pool_size, "sapa worker", acquire_seconds=CONNECTION_SECONDS)
    try:
        async with open_address(settings, database):
            await Worker(build_process_context(settings, database), build_jobs(settings), SERVICES, FREE_WORK).run()
    finally:
        await database.close()
