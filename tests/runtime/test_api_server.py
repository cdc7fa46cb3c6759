"""`sapa api` without a supervisor, as it runs on a machine of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.conftest import Installation, free_port

CALLS = 20
WANTED = f'sapa_http_requests_total{{method="GET",route="/customer/v1/customers",status="401"}} {CALLS}.0'


@pytest.fixture
def address(installation: Installation) -> Iterator[str]:
    port = str(free_port())
    variables = {"SAPA_DATABASE_URL": installation.server.app_url, "SAPA_PROCESSES": "2", "SAPA_PORT": port}
    environ = {name: value for name, value in os.environ.items() if name != "PROMETHEUS_MULTIPROC_DIR"} | variables
    process = subprocess.Popen([sys.executable, "-m", "sapa", "api"], env=environ, stdout=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        assert process.wait(timeout=60) == 0


def wait_for(url: str, text: str) -> None:
    deadline = time.monotonic() + 60
    seen = ""
    while text not in seen:
        assert time.monotonic() < deadline, seen
        try:
            seen = httpx.get(url).text
        except httpx.TransportError:
            time.sleep(0.1)


def test_metrics_are_those_of_all_its_processes(address: str) -> None:
    wait_for(f"{address}/readyz", "ready")
    for _ in range(CALLS):
        assert httpx.get(f"{address}/customer/v1/customers").status_code == 401
    wait_for(f"{address}/metrics", WANTED)
