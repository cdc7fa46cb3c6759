"""A worker of its own, as its load balancer, its orchestrator and Prometheus see it."""

import os
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from tests.conftest import Installation, free_port
from tests.faults.api_servers import wait_until_healthy

TOKEN = 16 * "t"

pytestmark = pytest.mark.processes


@pytest.fixture
def worker(installation: Installation) -> Iterator[str]:
    address = f"127.0.0.1:{free_port()}"
    environ = {name: value for name, value in os.environ.items() if name != "PROMETHEUS_MULTIPROC_DIR"}
    environ |= {
        "SAPA_DATABASE_URL": installation.server.app_url,
        "SAPA_SECRET_KEY": installation.server.secret_key,
        "SAPA_WORKER_LISTEN": address,
        "SAPA_METRICS_TOKEN": TOKEN,
    }
    process = subprocess.Popen([sys.executable, "-m", "sapa", "worker"], env=environ)
    try:
        wait_until_healthy(f"http://{address}/healthz")
        yield address
    finally:
        process.terminate()
        assert process.wait(120) == 0


def test_a_worker_says_that_it_is_well_and_what_it_did(worker: str) -> None:
    with httpx.Client(base_url=f"http://{worker}", timeout=120) as client:
        assert client.get("/readyz").json() == {"status": "ready"}
        assert client.get("/metrics").status_code == 401
        metrics = client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"}).text
        assert "sapa_job_runs_total" in metrics
        assert client.get("/customer/v1/customers").status_code == 404
