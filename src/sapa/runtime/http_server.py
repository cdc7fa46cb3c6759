"""The HTTP server of one process: accepts connections within limits, and stops without failing a call."""

import asyncio
import errno
import resource
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import structlog
import uvloop

from sapa.http.allow_list import AllowList
from sapa.runtime.connection_limits import HEAD_SECONDS, Connection, ConnectionLimits
from sapa.runtime.http_connection import HttpConnection
from sapa.runtime.lifespan import run_lifespan
from sapa.runtime.request_cycle import App, ServedApp
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


class HttpServer:
    """Serves one app in one process. `end_streams` ends its streaming responses when the server stops."""

    def __init__(self, settings: ServerSettings, app: App, end_streams: Callable[[], None] = lambda: None) -> None:
        self._served = ServedApp(app)
        self._end_streams = end_streams
        self._drain_seconds = settings.drain_seconds
        self._tls = build_tls(settings)
        self._limits = build_limits(settings)

    def run(self, listeners: Sequence[socket.socket]) -> None:
        """Serves until SIGTERM or SIGINT."""
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(listeners))

    async def _serve(self, listeners: Sequence[socket.socket]) -> None:
        stopping, hurrying = asyncio.Event(), asyncio.Event()

        def stop() -> None:
            (hurrying if stopping.is_set() else stopping).set()

        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, stop)
        async with self.open(listeners, hurrying):
            await stopping.wait()
            self._served.drain()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._drain_seconds):
                    await hurrying.wait()

    @asynccontextmanager
    async def open(self, listeners: Sequence[socket.socket], hurrying: asyncio.Event) -> AsyncIterator[None]:
        """Serves for the length of a block; the responses that are open then are cut off when `hurrying` is set."""
        async with run_lifespan(self._served.app) as self._served.state:
            acceptors = [Acceptor(one, self._limits, self._build_protocol, self._tls) for one in listeners]
            try:
                yield
            finally:
                for acceptor in acceptors:
                    await acceptor.close()
                await self._finish_responses(hurrying)

    async def _finish_responses(self, hurrying: asyncio.Event) -> None:
        self._end_streams()
        for connection in list(self._served.connections):
            connection.stop()
        if self._served.tasks:
            responses = asyncio.ensure_future(asyncio.wait(self._served.tasks))
            hurried = asyncio.create_task(hurrying.wait())
            await asyncio.wait({responses, hurried}, timeout=RESPONSE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            responses.cancel()
            hurried.cancel()
        for task in list(self._served.tasks):
            task.cancel()
        for connection in list(self._served.connections):
            connection.abort()

    def _build_protocol(self, connection: Connection) -> HttpConnection:
        return HttpConnection(self._served, self._limits, connection)


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

    async def close(self) -> None:
        self._accept()  # those that the kernel has accepted already
        self._loop.remove_reader(self._listener)
        self._listener.close()
        self._sweeper.cancel()
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
            connection = self._limits.admit(accepted, peer[:2])
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
