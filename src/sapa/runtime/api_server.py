"""`sapa api`: the HTTP server and its processes."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from multiprocessing import parent_process
from typing import Any

import msgspec
from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops, SSLProtocols
from granian.log import LogLevels

from sapa.app import create_app
from sapa.runtime.processes import check_port, die_with_parent
from sapa.settings import ServerSettings, Settings

_STOP_SECONDS = 20


class JsonLine(logging.Formatter):
    """Granian's few warnings, in the shape of our own log lines."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat()
        line = {
            "event": record.getMessage(),
            "logger": "granian",
            "level": record.levelname.lower(),
            "time": moment.replace("+00:00", "Z"),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


_LOGGING = {
    "formatters": {"json": {"()": JsonLine}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}},
    "loggers": {"_granian": {"handlers": ["stderr"], "level": "WARNING", "propagate": False}},
}


def run(settings: Settings) -> int:
    """Serves until SIGTERM or SIGINT; the exit code is 1 when its processes keep failing."""
    address = asyncio.run(check_port(settings.server.host, settings.server.port))
    try:
        _serve(settings.server, address)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def _serve(server: ServerSettings, address: str) -> None:
    Granian(
        "sapa.app:create_app",
        address=address,
        port=server.port,
        interface=Interfaces.ASGI,
        workers=server.processes,
        loop=Loops.uvloop,
        http=HTTPModes.auto,
        websockets=False,
        backlog=1024,
        backpressure=1024,
        log_level=LogLevels.warning,
        log_dictconfig=_LOGGING,
        log_access=False,
        ssl_cert=server.tls_cert,
        ssl_key=server.tls_key,
        ssl_protocol_min=SSLProtocols.tls12,
        respawn_failed_workers=True,
        workers_kill_timeout=_STOP_SECONDS,
    ).serve(target_loader=load_app, wrap_loader=False)


def load_app() -> Callable[..., Any]:
    """Runs first in each of Granian's processes: ties it to its parent, then builds the application."""
    # The parent's handlers, inherited, would swallow a request to stop until the event loop sets its own.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if parent := parent_process():
        die_with_parent(signal.SIGTERM, parent.pid or os.getppid())
    app = create_app()
    tell_of_signals(asyncio.get_event_loop(), app.end_streams)
    return app


def tell_of_signals(loop: asyncio.AbstractEventLoop, tell: Callable[[], None]) -> None:
    """Calls `tell` before any signal handler that the loop is given from now on.

    Granian waits for its answers to end before it says that it stops, and a stream of events ends only when told.
    """
    add = loop.add_signal_handler

    def add_told(signum: int, handler: Callable[..., object], *arguments: object) -> None:
        def handle() -> None:
            tell()
            handler(*arguments)

        add(signum, handle)

    setattr(loop, "add_signal_handler", add_told)  # noqa: B010 - a method of one loop
