"""A proxy before the real server that fails as networks and proxies do."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

Step = Callable[["_Handler"], None]


class FaultyProxy(ThreadingHTTPServer):
    """Does one step for each request, and forwards what comes after the last one."""

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = urlsplit(target).netloc
        self.steps: list[Step] = []
        self.requests: list[dict[str, str]] = []
        """The headers of each request, in the order of their arrival."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are what the tests are about."""


@contextmanager
def run_proxy(target: str) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(target)
    thread = Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyProxy

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.requests.append({name.lower(): value for name, value in self.headers.items()})
        step = self.server.steps.pop(0) if self.server.steps else forward
        step(self)

    def ask_target(self) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection(self.server.target, timeout=30)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            connection.request(self.command, self.path, self.body or None, headers)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def respond(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def forward(handler: _Handler) -> None:
    response, body = handler.ask_target()
    skipped = {"content-length", "transfer-encoding", "connection"}
    headers = {name: value for name, value in response.getheaders() if name.lower() not in skipped}
    handler.respond(response.status, headers, body)


def drop(handler: _Handler) -> None:
    """The connection closes before the server gets the request."""
    handler.close_connection = True


def forward_and_drop(handler: _Handler) -> None:
    """The server does it, and its response is lost."""
    handler.ask_target()
    handler.close_connection = True


def answer(status: int, code: str, **headers: str) -> Step:
    """An error of the server."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = f'{{"error":{{"code":"{code}","message":"Not now."}}}}'.encode()
    return lambda handler: handler.respond(status, {"content-type": "application/json", **named}, body)


def answer_page(status: int, **headers: str) -> Step:
    """What a proxy says for itself."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.respond(status, {"content-type": "text/html", **named}, b"<h1>Bad gateway</h1>")


def answer_garbled(handler: _Handler) -> None:
    """A body that cannot be unpacked."""
    handler.respond(200, {"content-type": "application/json", "content-encoding": "gzip"}, b"not gzip")


def stall(handler: _Handler) -> None:
    """No answer, until the client gives up."""
    handler.rfile.read(1)
    handler.close_connection = True
