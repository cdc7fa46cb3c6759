import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import psutil
import pytest

from sapa.db.pool import open_database
from sapa.runtime.embedded import EmbeddedServer, claim_folder
from sapa.runtime.processes import wait_until
from tests.conftest import TLS, copy_prepared, free_port
from tests.db.scratch import connect
from tests.factories import make_company, make_customer, make_key
from tests.faults.traffic import PATIENCE, is_unavailable

UNKNOWN = "/customers/cust_01jc9y3q5me8w92v7x4t6r0n1k"
CALLS = [
    ("GET", "/customers", None),
    ("GET", "/customers?search=a&tags=b", None),
    ("GET", UNKNOWN, None),
    ("HEAD", UNKNOWN, None),
    ("POST", "/customers", {"email": "a@example.com"}),
    ("PUT", UNKNOWN, {"firstName": "A"}),
    ("PUT", "/customers/by-external-id/x", {"firstName": "A"}),
    ("DELETE", UNKNOWN, None),
    ("GET", "/unknown", None),
]


class Alone:
    """`sapa api` beside a database that the test may stop: nobody starts it again."""

    def __init__(
        self, server: EmbeddedServer, port: int, process: subprocess.Popen[bytes], key: str, metrics: str
    ) -> None:
        self.server = server
        self.root = f"http://127.0.0.1:{port}"
        self.process = process
        self.key = key
        self.metrics = metrics

    def client(self) -> httpx.AsyncClient:
        headers = {"x-api-key": self.key}
        return httpx.AsyncClient(base_url=f"{self.root}/customer/v1", headers=headers, timeout=PATIENCE, verify=TLS)

    def workers(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    async def answers(self, status: int) -> None:
        """Waits until the API's answer is that one, and one of two until then."""
        async with self.client() as api:
            for _ in range(PATIENCE * 10):
                response = await api.get("/customers")
                if response.status_code == status:
                    return
                assert response.status_code == 200 or is_unavailable(response), response.text
                await asyncio.sleep(0.1)
        raise AssertionError(f"no {status}")

    async def shows(self, sample: str) -> None:
        """Waits until the metrics have that sample; what they show is up to two seconds old."""
        text = ""
        async with self.client() as reader:
            for _ in range(PATIENCE * 10):
                text = (await reader.get(self.metrics)).text
                if sample in text:
                    return
                await asyncio.sleep(0.1)
        raise AssertionError(text)


@pytest.fixture(scope="module")
async def alone(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Alone]:
    folder = tmp_path_factory.mktemp("alone")
    copy_prepared(folder / "data")
    async with claim_folder(folder / "data") as server:
        await server.start()
        try:
            async with open_database(server.app_url) as database:
                key = await make_key(database, (await make_company(database)).live)
            port, metrics = free_port(), f"127.0.0.1:{free_port()}"
            process = start_api(server, port, metrics, folder / "api.log")
            running = Alone(server, port, process, key.raw, f"http://{metrics}/metrics")
            try:
                assert await wait_until(lambda: is_up(running), PATIENCE)
                yield running
            finally:
                process.terminate()
                assert process.wait(PATIENCE) == 0
        finally:
            await server.stop()


def start_api(server: EmbeddedServer, port: int, metrics: str, log: Path) -> subprocess.Popen[bytes]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SAPA_")}
    environ |= {"SAPA_DATABASE_URL": server.app_url, "SAPA_PROCESSES": "2", "SAPA_DATABASE_POOL": "4"}
    environ |= {"SAPA_METRICS_LISTEN": metrics, "SAPA_DRAIN_SECONDS": "0"}
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "sapa", "api", "--port", str(port)],
            env=environ,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def is_up(alone: Alone) -> bool:
    try:
        return httpx.get(f"{alone.root}/readyz", timeout=120, verify=TLS).status_code == 200
    except httpx.TransportError:
        return False


async def test_while_the_database_is_stopped_every_response_is_a_503_in_the_envelope(alone: Alone) -> None:
    async with alone.client() as api:
        made = await make_customer(api)
        processes = alone.workers()
        for _ in range(2):
            await alone.server.stop()
            await alone.answers(503)
            for method, path, body in CALLS * 2:
                response = await api.request(method, path, json=body)
                assert response.status_code == 503, (method, path, response.text)
                if method != "HEAD":
                    assert is_unavailable(response)
            await alone.server.start()
            await alone.answers(200)
            assert (await api.get(f"/customers/{made['id']}")).json()["data"] == made
        assert alone.workers() == processes


@pytest.mark.long
async def test_while_the_database_is_stopped_the_process_says_so(alone: Alone) -> None:
    async with alone.client() as api:
        await alone.server.stop()
        await alone.answers(503)
        assert (await api.get(f"{alone.root}/healthz")).status_code == 200
        assert is_unavailable_page(await api.get(f"{alone.root}/readyz"))
        await alone.shows("sapa_database_up 0.0")
        assert (await api.get(f"{alone.root}/customer/v1/openapi.json")).status_code == 200
        await alone.server.start()
        await alone.answers(200)
        assert (await api.get(f"{alone.root}/readyz")).status_code == 200
        await alone.shows("sapa_database_up 1.0")


def is_unavailable_page(response: httpx.Response) -> bool:
    return response.status_code == 503 and response.json()["error"]["code"] == "SERVICE_UNAVAILABLE"


async def test_a_database_that_stands_still_is_a_503_and_its_return_is_noticed(alone: Alone) -> None:
    async with alone.client() as api:
        await make_customer(api)
        number = int((alone.server.cluster / "postmaster.pid").read_text().split("\n", 1)[0])
        server = psutil.Process(number)
        server.send_signal(signal.SIGSTOP)
        try:
            assert await wait_until(lambda: server.status() == psutil.STATUS_STOPPED, PATIENCE)
            for session in server.children():  # all of them, now that no other begins
                session.send_signal(signal.SIGSTOP)
            answers = await asyncio.gather(*(api.request(method, path, json=body) for method, path, body in CALLS))
        finally:
            for process in [server, *server.children()]:
                process.send_signal(signal.SIGCONT)
        assert {response.status_code for response in answers} == {503}
        await alone.answers(200)
        await make_customer(api)


@pytest.mark.parametrize(
    ("refuse", "admit"),
    [
        ("ALTER DATABASE sapa ALLOW_CONNECTIONS false", "ALTER DATABASE sapa ALLOW_CONNECTIONS true"),
        ("ALTER ROLE sapa_app CONNECTION LIMIT 0", "ALTER ROLE sapa_app CONNECTION LIMIT -1"),
        (
            "ALTER DATABASE sapa SET default_transaction_read_only = on",
            "ALTER DATABASE sapa RESET default_transaction_read_only",
        ),
    ],
)
async def test_a_database_that_takes_no_sessions_or_no_writes_is_a_503(alone: Alone, refuse: str, admit: str) -> None:
    """As in maintenance, under too many sessions, and on a replica after a fail-over."""
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'sapa_app'"
    async with connect(superuser_url(alone.server)) as superuser, alone.client() as api:
        made = await make_customer(api)
        try:
            await superuser.execute(refuse)
            await superuser.execute(cut)
            answers = [await api.post("/customers", json={"email": f"{n}@example.com"}) for n in range(4)]
        finally:
            await superuser.execute(admit)
            await superuser.execute(cut)
        await alone.answers(200)
        assert [response.status_code for response in answers] == [503] * 4, answers[-1].text
        assert (await api.get(f"/customers/{made['id']}")).status_code == 200


def superuser_url(server: EmbeddedServer) -> str:
    """To the server's other database, which stays open."""
    url = server.owner_url.replace(f"sapa_owner:{server.secrets.owner}", f"postgres:{server.secrets.superuser}")
    return url.replace("@/sapa?", "@/postgres?")


async def test_a_flood_of_calls_on_a_busy_database_is_served(alone: Alone) -> None:
    """More calls than connections, while one transaction blocks every write: some wait, none is lost or odd."""
    async with alone.client() as api, open_database(alone.server.owner_url) as owner:
        made = await make_customer(api)
        async with owner.transaction() as tx:
            await tx.execute("LOCK TABLE customers IN EXCLUSIVE MODE")
            changes = [api.put(f"/customers/{made['id']}", json={"firstName": str(n)}) for n in range(40)]
            answers = await asyncio.gather(*changes)
        for response in answers:
            assert response.status_code == 200 or is_unavailable(response), response.text
        await alone.answers(200)
        assert (await api.put(f"/customers/{made['id']}", json={"firstName": "after"})).status_code == 200
