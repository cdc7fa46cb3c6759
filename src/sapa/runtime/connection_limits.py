"""How many connections one API process holds, in all and per network, and which one it closes first."""

import socket
import time
from contextlib import suppress
from math import inf

import structlog
from msgspec import Struct

from sapa.http.allow_list import AllowList, get_network

HEAD_SECONDS = 15.0
"""For the TLS handshake and the first request's head; for a later head from its first byte on."""
IDLE_SECONDS = 75.0
"""Between two requests: longer than the 60 seconds for which load balancers keep a connection."""
READ_SECONDS = 600.0
"""For a caller who takes its time to read a response."""
WARNING_SECONDS = 60.0

log = structlog.get_logger()


class Connection(Struct, eq=False):
    """An accepted connection. It always waits for its caller, except while a request is under way."""

    socket: socket.socket
    client: tuple[str, int]
    network: str
    deadline: float = inf
    """On the process's monotonic clock; infinite while a request is under way."""
    has_asked: bool = False
    """It waits after a whole request, not for a head."""

    def await_head(self) -> None:
        """The first head, or a later one of which a part has arrived."""
        self.deadline, self.has_asked = time.monotonic() + HEAD_SECONDS, False

    def await_caller(self, seconds: float = IDLE_SECONDS) -> None:
        """Until it sends its next request, or reads more of a response."""
        self.deadline, self.has_asked = time.monotonic() + seconds, True

    def end_wait(self) -> None:
        """A whole head arrived."""
        self.deadline = inf

    def close(self) -> None:
        """Whatever reads from the connection, the TLS handshake or the HTTP protocol, sees its end."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


Connections = dict[Connection, None]
"""In the order in which they were accepted."""


class ConnectionLimits:
    """A full process, or network, closes its oldest connection without a request to admit a new one. It refuses the new
    one only when all others are being answered: callers behind the address of an attacker still get in."""

    def __init__(self, most: int, max_per_network: int, trusted_proxies: AllowList) -> None:
        self._most = most
        self._most_per_network = max_per_network
        self._trusted = trusted_proxies
        self._all: Connections = {}
        self._networks: dict[str, Connections] = {}
        self._warned_at = -WARNING_SECONDS

    def admit(self, accepted: socket.socket, client: tuple[str, int]) -> Connection | None:
        """Trusted proxies have no limit of their own."""
        address = client[0]
        network, is_trusted = get_network(address), self._trusted.contains(address)
        same = {} if is_trusted else self._networks.get(network, {})
        if len(same) >= self._most_per_network:
            self._warn("connections of one address at their limit", address=address, limit=self._most_per_network)
            if not self._make_room(same):
                return None
        if len(self._all) >= self._most:
            self._warn("connections at their limit", limit=self._most)
            if not self._make_room(self._all):
                return None
        connection = Connection(accepted, client, network)
        connection.await_head()
        self._all[connection] = same[connection] = None
        if not is_trusted:
            self._networks[network] = same
        return connection

    def release(self, connection: Connection) -> None:
        """The connection is closed. May be called twice."""
        self._all.pop(connection, None)
        same = self._networks.get(connection.network, {})
        same.pop(connection, None)
        if not same:
            self._networks.pop(connection.network, None)

    def close_overdue(self) -> None:
        now = time.monotonic()
        for connection in [one for one in self._all if one.deadline <= now]:
            self._close(connection)

    def _make_room(self, full: Connections) -> bool:
        """Closes the oldest connection that waits for a head, else the one that has been idle for longest."""
        silent = (one for one in full if one.deadline < inf and not one.has_asked)
        oldest = next(silent, None) or min(full, key=lambda one: one.deadline)
        is_waiting = oldest.deadline < inf
        if is_waiting:
            self._close(oldest)
        return is_waiting

    def _close(self, connection: Connection) -> None:
        """Its place is free at once, whatever becomes of its transport."""
        connection.close()
        self.release(connection)

    def _warn(self, event: str, **details: object) -> None:
        now = time.monotonic()
        if now - self._warned_at >= WARNING_SECONDS:
            self._warned_at = now
            log.warning(event, advice="List a proxy of your own in SAPA_TRUSTED_PROXIES.", **details)
