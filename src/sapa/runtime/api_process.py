"""One process of `sapa api`."""

import os
import signal
from multiprocessing import parent_process

from sapa.app import create_app
from sapa.runtime.http_server import HttpServer, open_listener
from sapa.runtime.processes import die_with_parent
from sapa.runtime.tracing import TracedApp, record_traces
from sapa.settings import ServerSettings


def run_process(server: ServerSettings, address: str) -> None:
    """Runs in a process of its own until SIGTERM or SIGINT."""
    if parent := parent_process():
        die_with_parent(signal.SIGTERM, parent.pid or os.getppid())
    # Until the server has its own: a stop that comes earlier ends the process at once.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    app = create_app()
    settings = app.context.settings.traces
    with record_traces(settings, "sapa api"):
        served = TracedApp(app) if settings.url else app
        HttpServer(server, served, app.end_streams).run([open_listener(address, server.port)])
