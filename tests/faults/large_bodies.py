"""The attack: many connections that each send a large body at once."""

import socket
from concurrent.futures import ThreadPoolExecutor

PIECE = b"x" * 65_536


def send_large(port: int, path: str, size: int, headers: dict[str, str]) -> int:
    """The status of the answer, or 0 when the connection was closed before one came."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n{lines}\r\n".encode()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        try:
            connection.sendall(head)
            for _ in range(size // len(PIECE)):
                connection.sendall(PIECE)
            connection.sendall(b"x" * (size % len(PIECE)))
        except ConnectionError:
            pass
        try:
            answer = connection.recv(12)
        except ConnectionError:
            return 0
    return int(answer[9:12] or 0)


def send_many_large(port: int, path: str, size: int, number: int, headers: dict[str, str]) -> list[int]:
    with ThreadPoolExecutor(number) as pool:
        sending = [pool.submit(send_large, port, path, size, headers) for _ in range(number)]
        return [each.result() for each in sending]
