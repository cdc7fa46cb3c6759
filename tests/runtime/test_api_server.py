"""`sapa api` without a supervisor, as it runs on a machine of its own."""

import time
from collections.abc import Iterator

import httpx
import pytest

from tests.conftest import TLS, Installation, free_port
from tests.faults.api_servers import ApiServer, run_api

CALLS = 20
WANTED = f'sapa_http_requests_total{{method="GET",route="/customer/v1/customers",status="401"}} {CALLS}.0'


@pytest.fixture
def server(installation: Installation) -> Iterator[ApiServer]:
    with run_api(installation, SAPA_PROCESSES="2", SAPA_METRICS_LISTEN=f"127.0.0.1:{free_port()}") as running:
        yield running


def wait_for(url: str, text: str) -> None:
    deadline = time.monotonic() + 120
    seen = ""
    while text not in seen:
        assert time.monotonic() < deadline, seen
        try:
            seen = httpx.get(url, verify=TLS).text
        except httpx.TransportError:
            time.sleep(0.1)


def test_metrics_are_those_of_all_its_processes(server: ApiServer) -> None:
    address = f"http://127.0.0.1:{server.port}"
    for _ in range(CALLS):
        assert httpx.get(f"{address}/customer/v1/customers", verify=TLS).status_code == 401
    wait_for(server.metrics, WANTED)
