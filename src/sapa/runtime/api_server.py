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
    """Granian's warnings in the format of our own log lines."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat()
        line = {
            "event": record.getMessage(),
            "logger": "granian",
            "level": record.levelname.lower(),
            "time": time.replace("+00:00", "Z"),
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
    """Serves until SIGTERM or SIGINT; returns 1 when its processes keep failing."""
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
    # The parent's inherited handlers would ignore a request to stop until the event loop sets its own.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if parent := parent_process():
        die_with_parent(signal.SIGTERM, parent.pid or os.getppid())
    app = create_app()
    call_on_signals(asyncio.get_event_loop(), app.end_streams)
    return app


def call_on_signals(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Calls `callback` before any signal handler that the loop gets from now on.

    Granian waits for open responses before the lifespan's shutdown, and event streams end only on this call.
    """
    add = loop.add_signal_handler

    def add_with_callback(signum: int, handler: Callable[..., object], *arguments: object) -> None:
        def handle() -> None:
            callback()
            handler(*arguments)

        add(signum, handle)

    setattr(loop, "add_signal_handler", add_with_callback)  # noqa: B010 - a method of one loop
