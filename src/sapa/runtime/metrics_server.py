"""Serves /metrics on an address of its own, from a process of its own: callers never wait for it."""

import asyncio
import os
import signal
import socket
import time
from functools import partial
from http import HTTPStatus
from multiprocessing import get_context, parent_process
from multiprocessing.context import ForkProcess

import structlog
from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST

from sapa.db.pool import open_database
from sapa.http.metrics_page import PATH, MetricsPage, is_bearer
from sapa.logs import STANDARD_OUTPUT, configure_logs
from sapa.runtime.metrics_address import API_PORT_HEADER, get_address, list_candidates
from sapa.runtime.processes import die_with_parent
from sapa.settings import Settings
from sapa.work.ages import collect_queue_ages

NICENESS = 10
MOST_CONNECTIONS = 32
MOST_HEAD_BYTES = 8192
SECONDS = 10.0
"""For the request and its response together."""
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
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(name, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if parent := parent_process():
        die_with_parent(signal.SIGTERM, parent.pid or os.getppid())
    configure_logs(settings.log_level)
    try:
        asyncio.run(_serve(settings, listener))
    except Exception as error:
        log.error("metrics ended", exc_info=error)
        STANDARD_OUTPUT.flush()
        time.sleep(RESTART_SECONDS)  # it is started again at once


async def _serve(settings: Settings, listener: socket.socket) -> None:
    address = get_address(listener)
    wanted = next(list_candidates(settings))
    if address.port != wanted.port:
        log.warning("metrics on another port", taken=wanted.port, port=address.port)
    async with open_database(settings.database.url or "", 1, "sapa metrics") as database:
        server = MetricsServer(settings, MetricsPage(partial(collect_queue_ages, database)))
        async with await asyncio.start_server(server.answer, sock=listener, limit=MOST_HEAD_BYTES) as serving:
            log.info("serving metrics", address=f"http://{address}{PATH}")
            await serving.serve_forever()


class MetricsRequest(Struct, frozen=True):
    method: str
    path: str
    authorization: str


class MetricsServer:
    """HTTP for one page: one request on each connection, a few connections, a few seconds."""

    def __init__(self, settings: Settings, page: MetricsPage) -> None:
        self._page = page
        self._token = settings.metrics.token
        self._api_port = settings.server.port
        self._connections = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections <= MOST_CONNECTIONS:
                async with asyncio.timeout(SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(await self._respond(_parse_head(head)))
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client was too slow, too verbose, or has gone
        finally:
            self._connections -= 1
            writer.close()

    async def _respond(self, request: MetricsRequest | None) -> bytes:
        status, body = await self._read(request)
        is_head = request is not None and request.method == "HEAD"
        headers = {
            "content-type": CONTENT_TYPE_LATEST if status == HTTPStatus.OK else "text/plain; charset=utf-8",
            "content-length": str(len(body)),
            "connection": "close",
            API_PORT_HEADER: str(self._api_port),
        }
        if status == HTTPStatus.UNAUTHORIZED:
            headers["www-authenticate"] = "Bearer"
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["allow"] = "GET, HEAD"
        lines = [f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {text}" for name, text in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode() + (b"" if is_head else body)

    async def _read(self, request: MetricsRequest | None) -> tuple[HTTPStatus, bytes]:
        if request is None:
            return HTTPStatus.BAD_REQUEST, b"This is not an HTTP request.\n"
        if request.path != PATH:
            return HTTPStatus.NOT_FOUND, f"There is only {PATH} here.\n".encode()
        if request.method not in {"GET", "HEAD"}:
            return HTTPStatus.METHOD_NOT_ALLOWED, b"Use GET.\n"
        if self._token is not None and not is_bearer(request.authorization, self._token):
            return HTTPStatus.UNAUTHORIZED, b"Send SAPA_METRICS_TOKEN as a bearer token.\n"
        return HTTPStatus.OK, await self._page.read()


def _parse_head(head: bytes) -> MetricsRequest | None:
    request_line, *lines = head.decode("latin-1").split("\r\n")
    parts = request_line.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        return None
    headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
    return MetricsRequest(parts[0], parts[1].partition("?")[0], headers.get("authorization", ""))
