"""The HTTP server: Uvicorn on uvloop, with an acceptor of ours that limits connections."""

import asyncio
import errno
import logging
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import msgspec
import structlog
import uvicorn

from sapa.http.allow_list import AllowList
from sapa.runtime.connection_limits import HEAD_SECONDS, Connection, ConnectionLimits
from sapa.runtime.http_connection import HttpConnection
from sapa.settings import ServerSettings

BACKLOG = 4096
ACCEPTED_AT_ONCE = 100
SWEEP_SECONDS = 1.0
ACCEPT_PAUSE_SECONDS = 0.1
RESPONSE_SECONDS = 15
"""How long a server that stops waits for its open responses."""
RESERVED_FILES = 200
"""Files of a process that are no connections of callers: database, outbound calls, imports."""

log = structlog.get_logger()


class JsonLine(logging.Formatter):
    """Uvicorn's warnings in the format of our own log lines."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat()
        line = {
            "event": record.getMessage(),
            "logger": "uvicorn",
            "level": record.levelname.lower(),
            "time": time.replace("+00:00", "Z"),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


_LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": JsonLine}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}},
    "loggers": {"uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False}},
}


class HttpServer(uvicorn.Server):
    """Serves one app in one process. `end_streams` ends its streaming responses when the server stops."""

    def __init__(
        self,
        settings: ServerSettings,
        app: Callable[..., Awaitable[None]],
        end_streams: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                interface="asgi3",
                loop="uvloop",
                http=HttpConnection,
                ws="none",
                lifespan="on",
                log_config=_LOGGING,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=RESPONSE_SECONDS,
            )
        )
        self._end_streams = end_streams
        self._tls = build_tls(settings)
        self._limits = build_limits(settings)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise SystemExit(1)
        self.servers = [Acceptor(one, self._limits, self._build_protocol, self._tls) for one in sockets or []]  # type: ignore[misc]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._end_streams()
        await super().shutdown(sockets)

    def _build_protocol(self, connection: Connection) -> HttpConnection:
        return HttpConnection(
            self._limits,
            connection,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )


class Acceptor:
    """Accepts the connections of one listener, and closes those that wait too long for a request."""

    def __init__(
        self,
        listener: socket.socket,
        limits: ConnectionLimits,
        build_protocol: Callable[[Connection], asyncio.Protocol],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listener = listener
        self._limits = limits
        self._build_protocol = build_protocol
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[None]] = set()
        self._sweeper = self._loop.create_task(self._close_overdue())
        listener.listen(BACKLOG)
        self._resume()

    def close(self) -> None:
        self._loop.remove_reader(self._listener)
        self._sweeper.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(self._sweeper, *self._opening, return_exceptions=True)

    def _resume(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, peer = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            connection = self._limits.admit(accepted, peer[0])
            if connection is None:
                accepted.close()
                continue
            task = self._loop.create_task(self._open(connection))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    def _pause(self, error: OSError) -> None:
        """Without free file descriptors the listener stays readable: accepting again at once would be a busy loop."""
        log.error("connection not accepted", reason=errno.errorcode.get(error.errno or 0, str(error)))
        self._loop.remove_reader(self._listener)
        self._loop.call_later(ACCEPT_PAUSE_SECONDS, self._resume)

    async def _open(self, connection: Connection) -> None:
        accepted = connection.socket
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await self._loop.connect_accepted_socket(
                partial(self._build_protocol, connection),
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=HEAD_SECONDS if self._tls else None,
            )
        except OSError:  # also a failed handshake
            self._limits.release(connection)
            with suppress(OSError):
                accepted.close()

    async def _close_overdue(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._limits.close_overdue()


def build_tls(server: ServerSettings) -> ssl.SSLContext | None:
    """HTTP/1.1 only: HTTP/2 lets a caller hold many responses in memory over one connection."""
    if server.tls_cert is None or server.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(server.tls_cert, server.tls_key)
    return context


def build_limits(settings: ServerSettings) -> ConnectionLimits:
    """Each process has its part of the whole, and no more than it may open files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = min(-(-settings.connections // settings.processes), files - RESERVED_FILES)
    per_network = -(-settings.connections_per_address // settings.processes)
    return ConnectionLimits(most, per_network, AllowList(settings.trusted_proxies))


def open_listener(address: str, port: int) -> socket.socket:
    """Each process listens on its own socket, and the kernel spreads connections over them."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind((address, port))
    listener.setblocking(False)
    return listener
