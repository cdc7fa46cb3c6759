"""Serves /metrics on an address of its own, from a process of its own: callers never wait for it."""

import os
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.context import ForkProcess
from typing import TypedDict

import structlog
from msgspec.structs import replace
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.db.pool import open_database
from sapa.http.metrics_page import PATH, MetricsPage, find_refusal
from sapa.logs import STANDARD_OUTPUT, configure_logs
from sapa.runtime.http_server import HttpServer
from sapa.runtime.metrics_address import API_PORT_HEADER, get_address, list_candidates
from sapa.runtime.processes import die_with_parent
from sapa.settings import Settings
from sapa.work.ages import collect_queue_ages

NICENESS = 10
MAX_CONNECTIONS = 32
RESTART_SECONDS = 1.0

log = structlog.get_logger()


class MetricsProcess:
    """The process that serves the metrics, started again when it dies. The listener is its parent's, and stays."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self._settings = settings
        self._listener = listener
        self._process: ForkProcess | None = None

    def start(self) -> None:
        self._process = get_context("fork").Process(target=_run, args=(self._settings, self._listener), daemon=True)
        self._process.start()

    def restart_if_dead(self) -> None:
        if self._process is not None and not self._process.is_alive():
            self.start()

    def stop(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            process.terminate()
            process.join()


def _run(settings: Settings, listener: socket.socket) -> None:
    os.nice(NICENESS)
    # Until the server has its own: a stop that comes earlier ends the process at once.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if parent := parent_process():
        die_with_parent(signal.SIGTERM, parent.pid or os.getppid())
    configure_logs(settings.log_level)
    listener.setblocking(False)
    limited = replace(
        settings.server,
        processes=1,
        connections=MAX_CONNECTIONS,
        connections_per_address=MAX_CONNECTIONS,
        tls_cert=None,
        tls_key=None,
        drain_seconds=0,
    )
    try:
        HttpServer(limited, _build_app(settings, listener)).run([listener])
    except (Exception, SystemExit) as error:
        log.error("metrics ended", exc_info=error)
        STANDARD_OUTPUT.flush()
        time.sleep(RESTART_SECONDS)  # it is started again at once


class _State(TypedDict):
    page: MetricsPage


def _build_app(settings: Settings, listener: socket.socket) -> Starlette:
    token = settings.metrics.token
    headers = {API_PORT_HEADER: str(settings.server.port)}

    @asynccontextmanager
    async def open_page(_: Starlette) -> AsyncIterator[_State]:
        address, wanted = get_address(listener), next(list_candidates(settings))
        if address.port != wanted.port:
            log.warning("metrics on another port", taken=wanted.port, port=address.port)
        async with open_database(settings.database.url or "", 1, "sapa metrics") as database:
            log.info("serving metrics", address=f"http://{address}{PATH}")
            yield {"page": MetricsPage(partial(collect_queue_ages, database))}

    async def serve(request: Request) -> Response:
        if refusal := find_refusal(request, token, headers):
            return refusal
        return Response(await request.state.page.read(), headers=headers, media_type=CONTENT_TYPE_LATEST)

    return Starlette(routes=[Route(PATH, serve)], lifespan=open_page)
