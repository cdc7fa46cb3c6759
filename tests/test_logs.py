"""Log lines on a real pipe that nobody reads, or that nobody can read any more."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from sapa.db.pool import Database
from sapa.logs import LineWriter
from sapa.runtime.processes import wait_until
from tests.conftest import Installation, free_port
from tests.factories import Environments, MadeKey, make_key

CALLS = 100
SMALLEST_PIPE = 4096
PATIENCE = 120


class Pipe:
    """As small as the system allows, so that a few lines fill it."""

    def __init__(self) -> None:
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
        self.reader = open(reader, "rb", buffering=0)  # noqa: SIM115
        self.writer = open(writer, "wb", buffering=0)  # noqa: SIM115


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.reader.close()
    made.writer.close()


def start_api(installation: Installation, port: int, output: int) -> subprocess.Popen[bytes]:
    """On a database without tables: every call fails, and is logged with its traceback."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SAPA_")}
    environ |= {"SAPA_DATABASE_URL": installation.server.app_url + "&search_path=pg_temp", "SAPA_PROCESSES": "1"}
    environ["SAPA_DRAIN_SECONDS"] = "0"
    command = [sys.executable, "-m", "sapa", "api", "--port", str(port)]
    return subprocess.Popen(command, env=environ, stdout=output, stderr=subprocess.DEVNULL)


@pytest.fixture
async def api(installation: Installation, pipe: Pipe) -> Any:
    port = free_port()
    process = start_api(installation, port, pipe.writer.fileno())
    try:
        pipe.writer.close()
        assert await wait_until(lambda: is_up(port), PATIENCE)
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(PATIENCE)


@pytest.fixture
async def key(database: Database, company: Environments) -> MadeKey:
    return await make_key(database, company.live)


def is_up(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=120).status_code == 200
    except httpx.TransportError:
        return False


def fail_often(address: str, key: str) -> set[str]:
    """The ids of calls that were answered, each with a 500 that is logged twice."""
    with httpx.Client(base_url=address, headers={"x-api-key": key}, timeout=120) as client:
        answers = [client.get("/customer/v1/customers") for _ in range(CALLS)]
    assert {answer.status_code for answer in answers} == {500}
    return {answer.headers["x-request-id"] for answer in answers}


def read_all(reader: int, found: bytearray) -> None:
    while chunk := os.read(reader, 65_536):
        found += chunk


async def test_a_full_pipe_stalls_no_request_and_loses_no_line(
    api: tuple[subprocess.Popen[bytes], str], pipe: Pipe, key: MadeKey
) -> None:
    process, address = api
    ids = fail_often(address, key.raw)
    found = bytearray()
    reading = threading.Thread(target=read_all, args=(pipe.reader.fileno(), found))
    reading.start()
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0
    reading.join(PATIENCE)
    lines = [msgspec.json.decode(line) for line in found.splitlines()]
    for event in ("internal error", "request"):
        assert {line["request_id"] for line in lines if line["event"] == event} == ids


@pytest.mark.long
async def test_a_broken_pipe_stalls_no_request_and_no_stop(
    api: tuple[subprocess.Popen[bytes], str], pipe: Pipe, key: MadeKey
) -> None:
    process, address = api
    pipe.reader.close()
    fail_often(address, key.raw)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0


def read_lines(reader: int, writer: LineWriter) -> list[bytes]:
    """All that is written until the writer has nothing left."""
    found = bytearray()
    os.set_blocking(reader, False)
    while True:
        is_done = writer.flush(0.05)
        try:
            while chunk := os.read(reader, 65_536):
                found += chunk
        except BlockingIOError:
            pass
        if is_done:
            return bytes(found).splitlines()


@pytest.mark.parametrize("is_blocking", [True, False])
def test_lines_wait_until_they_can_be_written(pipe: Pipe, is_blocking: bool) -> None:
    os.set_blocking(pipe.writer.fileno(), is_blocking)
    writer = LineWriter(pipe.writer.fileno())
    written = [b"%d %s" % (number, b"x" * 1000) for number in range(50)]
    for line in written:
        writer.write(line + b"\n")
    assert not writer.flush(0.1)
    assert read_lines(pipe.reader.fileno(), writer) == written


def test_lines_beyond_the_limit_are_dropped_counted_and_reported(pipe: Pipe) -> None:
    writer = LineWriter(pipe.writer.fileno(), max_bytes=20_000)
    for number in range(50):
        writer.write(b'{"event":"line","number":%d,"rest":"%s"}\n' % (number, b"x" * 1000))
    lines = [msgspec.json.decode(line) for line in read_lines(pipe.reader.fileno(), writer)]
    stored = [line["number"] for line in lines if line["event"] == "line"]
    reports = [line for line in lines if line["event"] != "line"]
    assert {(report["event"], report["level"]) for report in reports} == {("log lines dropped", "warning")}
    assert 0 < len(stored) < 50
    assert stored == sorted(stored)
    assert sum(report["lines"] for report in reports) == 50 - len(stored)
    writer.write(b'{"event":"later"}\n')
    assert read_lines(pipe.reader.fileno(), writer) == [b'{"event":"later"}']
