"""Strangers who connect and send nothing, or too little, do not keep others out."""

import resource
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import httpx
import pytest
import trustme

from sapa.runtime.connection_limits import HEAD_SECONDS
from tests.conftest import TLS, Installation
from tests.faults.api_servers import ApiServer, run_api
from tests.faults.silent_sockets import open_silent

SILENT = 5_000
"""For a machine on which other tests run."""
ROOMY = {"SAPA_CONNECTIONS": "8000", "SAPA_CONNECTIONS_PER_ADDRESS": "8000"}
TIGHT = {"SAPA_CONNECTIONS": "200", "SAPA_CONNECTIONS_PER_ADDRESS": "50"}
STRANGER = "127.0.0.2"


@contextmanager
def silent_sockets(port: int) -> Iterator[None]:
    command = ["nice", sys.executable, "-m", "tests.faults.silent_sockets", str(port), str(SILENT)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"open\n"
        yield
    finally:
        process.kill()
        process.communicate()


class Connect(Protocol):
    def __call__(self, number: int, source: str = ..., sent: bytes = ...) -> list[socket.socket]: ...


@contextmanager
def silent(api: ApiServer) -> Iterator[Connect]:
    """Opens silent sockets, and closes them in the end."""
    opened: list[socket.socket] = []

    def connect(number: int, source: str = "127.0.0.1", sent: bytes = b"") -> list[socket.socket]:
        sockets = open_silent(api.port, number, source, sent)
        opened.extend(sockets)
        return sockets

    try:
        yield connect
    finally:
        for one in opened:
            one.close()


@pytest.mark.parametrize(
    "variables",
    [pytest.param({}, id="closed beyond the limit"), pytest.param(ROOMY, id="all open", marks=pytest.mark.long)],
)
def test_healthz_answers_while_silent_sockets_are_open(installation: Installation, variables: dict[str, str]) -> None:
    with run_api(installation, SAPA_PROCESSES="2", **variables) as api, silent_sockets(api.port):
        for _ in range(10):
            started = time.monotonic()
            assert httpx.get(f"http://127.0.0.1:{api.port}/healthz", verify=TLS, timeout=120).status_code == 200
            assert time.monotonic() - started < HEAD_SECONDS  # it waits for none of them to be closed
        if variables:  # some were just closed after their 15 seconds, and are opened again
            assert sum(count_connections(api)) >= SILENT * 9 // 10


def count_connections(api: ApiServer) -> list[int]:
    return [len([one for one in each.net_connections("tcp") if one.status == "ESTABLISHED"]) for each in api.workers]


@pytest.mark.long
def test_the_soft_limit_of_files_is_raised(installation: Installation) -> None:
    with run_api(installation) as api:
        (worker,) = api.workers
        soft, hard = worker.rlimit(resource.RLIMIT_NOFILE)
        assert soft == hard


@pytest.mark.long
def test_an_address_keeps_its_newest_connections_and_others_are_not_touched(installation: Installation) -> None:
    with run_api(installation, **TIGHT) as api, silent(api) as connect:
        other = connect(5)
        strangers = connect(60, STRANGER)
        until_closed(strangers[:10])
        assert not any(is_closed(one) for one in [*strangers[10:], *other])
        assert ask_healthz(connect(1, STRANGER)[0]) == b"HTTP/1.1 200"


@pytest.mark.long
def test_a_trusted_proxy_holds_as_many_as_it_needs(installation: Installation) -> None:
    with run_api(installation, SAPA_TRUSTED_PROXIES=STRANGER, **TIGHT) as api, silent(api) as connect:
        sockets = connect(100, STRANGER)
        assert ask_healthz(sockets[-1]) == b"HTTP/1.1 200"
        assert not any(is_closed(one) for one in sockets)


@pytest.mark.long
def test_callers_who_do_not_read_their_response_keep_nobody_out(installation: Installation) -> None:
    request = b"GET /customer/v1/docs HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with run_api(installation, **TIGHT) as api, silent(api) as connect:
        unread = connect(50, STRANGER, request)
        for one in unread:
            one.settimeout(30)
            assert one.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200"
        assert ask_healthz(connect(1, STRANGER)[0]) == b"HTTP/1.1 200"


@pytest.mark.long
def test_silent_sockets_are_limited_before_the_tls_handshake(installation: Installation, tmp_path: Path) -> None:
    variables, trusting = build_tls(tmp_path)
    trusting.set_alpn_protocols(["h2", "http/1.1"])
    with run_api(installation, **variables, **TIGHT) as api, silent(api) as connect:
        strangers = connect(60, STRANGER)
        until_closed(strangers[:10])
        assert not any(is_closed(one) for one in strangers[10:])
        plain = socket.create_connection(("127.0.0.1", api.port), timeout=120, source_address=(STRANGER, 0))
        with trusting.wrap_socket(plain, server_hostname="localhost") as encrypted:
            assert encrypted.selected_alpn_protocol() == "http/1.1"
            assert ask_healthz(encrypted) == b"HTTP/1.1 200"


def build_tls(folder: Path) -> tuple[dict[str, str], ssl.SSLContext]:
    """The settings of a server, and the context of a client that trusts it."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    return {"SAPA_TLS_CERT": str(folder / "cert.pem"), "SAPA_TLS_KEY": str(folder / "key.pem")}, trusting


@pytest.mark.long
def test_a_connection_without_a_whole_head_is_closed_after_15_seconds(installation: Installation) -> None:
    with run_api(installation) as api, silent(api) as connect:
        started = time.monotonic()
        beginnings = (b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b"GET /")
        nothing, partial, dripping = (connect(1, sent=sent)[0] for sent in beginnings)
        while not (is_closed(nothing) and is_closed(partial) and is_closed(dripping)):
            assert time.monotonic() - started < HEAD_SECONDS + 120
            time.sleep(0.5)
            try:
                dripping.send(b"x")
            except OSError:
                assert time.monotonic() - started > HEAD_SECONDS - 1
        assert time.monotonic() - started > HEAD_SECONDS - 1


def ask_healthz(connection: socket.socket) -> bytes:
    connection.settimeout(30)
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = connection.recv(12)
    connection.setblocking(False)
    return answer


def is_closed(one: socket.socket) -> bool:
    try:
        return not one.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def until_closed(sockets: Sequence[socket.socket]) -> None:
    deadline = time.monotonic() + 120
    while not all(is_closed(one) for one in sockets):
        assert time.monotonic() < deadline
        time.sleep(0.05)
