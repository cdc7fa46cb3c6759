"""Metrics on an address of their own."""

import asyncio
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx
import psutil
import pytest

from sapa.runtime.http_connection import MAX_HEAD_BYTES
from sapa.runtime.metrics_address import PORTS_TRIED, find_running, list_candidates
from sapa.runtime.metrics_server import MAX_CONNECTIONS
from sapa.settings import read_settings
from tests.cli.command import sapa, sapa_process
from tests.conftest import TLS, Installation, free_port
from tests.faults.api_servers import ApiServer, run_api

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def server(installation: Installation) -> Iterator[ApiServer]:
    with run_api(installation) as running:
        yield running


def get(url: str, **headers: str) -> httpx.Response:
    return httpx.get(url, headers=headers, verify=TLS, timeout=120)


def exchange(url: str, request: bytes) -> bytes:
    """The whole answer to bytes that need not be HTTP; empty when the connection was closed without one."""
    place = httpx.URL(url)
    with socket.create_connection((place.host, place.port or 0), timeout=120) as connection:
        connection.sendall(request)
        answer = b""
        try:
            while part := connection.recv(65_536):
                answer += part
        except ConnectionResetError:
            pass
        return answer


def test_by_default_they_are_on_the_loopback_address_next_to_the_api(server: ApiServer) -> None:
    place = httpx.URL(server.metrics)
    assert place.host == "127.0.0.1"
    assert server.port < (place.port or 0) <= server.port + PORTS_TRIED
    response = get(server.metrics)
    assert (response.status_code, response.headers["content-type"].split(";")[0]) == (200, "text/plain")
    assert "sapa_database_up 1.0" in response.text
    assert "sapa_pool_connections" in response.text
    assert get(f"{server.address}/metrics").status_code == 404


def listen_next_to_a_free_port(other: socket.socket) -> int:
    """The free port. The one after it may belong to somebody's connection: then another pair is tried."""
    while True:
        port = free_port()
        with suppress(OSError):
            other.bind(("127.0.0.1", port + 1))
            other.listen()
            return port


@pytest.mark.long
def test_the_next_free_port_is_used_logged_and_shown_by_doctor(installation: Installation) -> None:
    with socket.socket() as other:
        port = listen_next_to_a_free_port(other)
        with run_api(installation, SAPA_PORT=str(port)) as server:
            place = httpx.URL(server.metrics)
            assert place.port != port + 1
            assert get(server.metrics).status_code == 200
            assert f'"taken": {port + 1}' in server.log.read_text()
            variables = {"SAPA_DATABASE_URL": installation.server.app_url, "SAPA_PORT": str(port)}
            found = {
                finding["what"]: finding for finding in sapa(installation.data, "doctor", "--json", **variables).json()
            }
            assert found["metrics address"]["found"] == server.metrics
            assert found["metrics address"]["well"] is True


async def test_another_installation_s_metrics_are_not_taken_for_ours(server: ApiServer) -> None:
    own = read_settings({"SAPA_PORT": str(server.port)})
    assert f"http://{await find_running(own)}/metrics" == server.metrics
    port = httpx.URL(server.metrics).port or 0
    assert await find_running(read_settings({"SAPA_PORT": str(port - 1)})) is None or port - 1 == server.port


def test_the_last_port_has_neighbours_too() -> None:
    ports = [candidate.port for candidate in list_candidates(read_settings({"SAPA_PORT": "65535"}))]
    assert ports[:2] == [65534, 65533]


def test_the_address_can_be_set_and_a_token_be_required(installation: Installation) -> None:
    address = f"127.0.0.1:{free_port()}"
    with run_api(installation, SAPA_METRICS_LISTEN=address, SAPA_METRICS_TOKEN=TOKEN) as server:
        assert server.metrics == f"http://{address}/metrics"
        refused = get(server.metrics)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert get(server.metrics, authorization=f"Bearer {TOKEN}").status_code == 200
        on_api = f"{server.address}/metrics"
        assert get(on_api).status_code == 404
        assert get(on_api, authorization=f"Bearer {TOKEN}").status_code == 200


def test_a_process_that_dies_is_started_again(server: ApiServer) -> None:
    own = server.process.nice()
    (process,) = [child for child in server.process.children() if child.nice() > own]
    process.send_signal(signal.SIGKILL)
    psutil.wait_procs([process], timeout=120)
    assert get(server.metrics).status_code == 200


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"200"),
        (b"HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", b"405"),
        (b"GET /metrics HTTP/1.1\r\n\r\n", b"400"),
        (b"\x16\x03\x01\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\nx: " + b"y" * 2 * MAX_HEAD_BYTES, b"431"),
    ],
)
def test_it_is_as_strict_as_the_api(server: ApiServer, request_bytes: bytes, status: bytes) -> None:
    answer = exchange(server.metrics, request_bytes)
    assert answer[9:12] == status
    _, _, body = answer.partition(b"\r\n\r\n")
    assert bool(body) is not request_bytes.startswith(b"HEAD")


def test_silent_connections_do_not_keep_others_out_for_long(server: ApiServer) -> None:
    place = httpx.URL(server.metrics)
    silent = [socket.create_connection((place.host, place.port or 0)) for _ in range(MAX_CONNECTIONS)]
    try:
        deadline = time.monotonic() + 120
        answer = b""
        while not answer and time.monotonic() < deadline:
            answer = exchange(server.metrics, b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            time.sleep(0.2)
        assert answer[9:12] == b"200"
    finally:
        for connection in silent:
            connection.close()


@pytest.mark.long
def test_an_address_that_is_taken_is_named(installation: Installation) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        variables = {
            "SAPA_DATABASE_URL": installation.server.app_url,
            "SAPA_PORT": str(free_port()),
            "SAPA_METRICS_LISTEN": address,
        }
        outcome = sapa_process(installation.data, "api", **variables)
    assert "taken by another program; stop it, or set SAPA_METRICS_LISTEN" in outcome.sentence()


async def test_nothing_is_found_where_nothing_runs() -> None:
    settings = read_settings({"SAPA_METRICS_LISTEN": f"127.0.0.1:{free_port()}"})
    assert await asyncio.wait_for(find_running(settings), 30) is None
