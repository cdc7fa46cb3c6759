"""The attack: sockets that connect and never send a whole request. python -m tests.faults.silent_sockets PORT NUMBER"""

import resource
import selectors
import socket
import sys
import time

SECONDS = 120


def open_silent(port: int, number: int, source: str = "127.0.0.1", sent: bytes = b"") -> list[socket.socket]:
    """Connected sockets; `sent` may be the beginning of a request."""
    opened = []
    for _ in range(number):
        one = socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(source, 0))
        one.sendall(sent)
        one.setblocking(False)
        opened.append(one)
    return opened


def keep_open(port: int, number: int) -> None:
    """Opens a new socket for each one that the server closes."""
    selector = selectors.DefaultSelector()
    for one in open_silent(port, number):
        selector.register(one, selectors.EVENT_READ)
    print("open", flush=True)
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        for key, _ in selector.select(timeout=1):
            closed = key.fileobj
            assert isinstance(closed, socket.socket)
            selector.unregister(closed)
            closed.close()
            selector.register(open_silent(port, 1)[0], selectors.EVENT_READ)
        time.sleep(0.01)


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    keep_open(int(sys.argv[1]), int(sys.argv[2]))
