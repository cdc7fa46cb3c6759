"""Clients that hammer /metrics do not slow down other callers."""

import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_key
from tests.faults.api_servers import ApiServer, run_api

TOKEN = "a-token-of-some-length"
CLIENTS = 8
MAX_SLOWER = 1.5
CALLS = 300
ROUNDS = 5


@pytest.fixture(scope="module")
def server(installation: Installation) -> Iterator[ApiServer]:
    with run_api(installation, SAPA_METRICS_TOKEN=TOKEN) as running:
        yield running


def measure(caller: httpx.Client) -> float:
    """The median time of a call, in seconds."""
    times = []
    for _ in range(CALLS):
        started = time.perf_counter()
        assert caller.get("/customers").status_code == 200
        times.append(time.perf_counter() - started)
    return median(times)


def measure_beside(caller: httpx.Client, attack: list[str]) -> tuple[float, int]:
    """The same while the attack runs, and how many answers the attackers got."""
    attackers = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.hammer", *attack], stdout=subprocess.PIPE, text=True
    )
    time.sleep(1)
    measured = measure(caller)
    answers, _ = attackers.communicate(timeout=120)
    return measured, int(answers)


@pytest.mark.long  # compares times
@pytest.mark.parametrize("place", ["its own address", "the API's address"])
async def test_eight_clients_that_hammer_the_metrics_slow_nobody_down(
    database: Database, company: Environments, server: ApiServer, place: str
) -> None:
    """In turns, quiet and attacked: what else the machine does changes both."""
    key = (await make_key(database, company.live)).raw
    url = server.metrics if place == "its own address" else f"{server.address}/metrics"
    attack = [url, str(CLIENTS), "3", f"Authorization: Bearer {TOKEN}"]
    ratios = []
    with httpx.Client(
        base_url=f"{server.address}/customer/v1", headers={"x-api-key": key}, verify=TLS, timeout=120
    ) as caller:
        measure(caller)
        for _ in range(ROUNDS):
            quiet = measure(caller)
            attacked, answers = measure_beside(caller, attack)
            assert answers > 0
            ratios.append(attacked / quiet)
    print(f"p50 beside {CLIENTS} clients at {place}: {min(ratios):.2f} to {max(ratios):.2f} x quiet")
    assert median(ratios) < MAX_SLOWER
