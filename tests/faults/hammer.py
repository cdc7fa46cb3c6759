"""The attack: clients that ask for one page again and again, each as fast as it gets answers.

`python -m tests.faults.hammer URL CLIENTS SECONDS [HEADER]` prints how many answers they got.
"""

import os
import socket
import sys
import threading
import time
from urllib.parse import urlsplit


def hammer(url: str, clients: int, seconds: float, header: str = "") -> int:
    place = urlsplit(url)
    head = f"GET {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: close\r\n{header}\r\n".encode()
    end = time.monotonic() + seconds
    answers = [0] * clients

    def ask_on(client: int) -> None:
        while time.monotonic() < end:
            try:
                with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
                    connection.sendall(head)
                    while connection.recv(65_536):
                        pass
                answers[client] += 1
            except OSError:
                time.sleep(0.01)

    threads = [threading.Thread(target=ask_on, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(answers)


if __name__ == "__main__":
    os.nice(5)
    url, clients, seconds, *headers = sys.argv[1:]
    print(hammer(url, int(clients), float(seconds), f"{headers[0]}\r\n" if headers else ""))
