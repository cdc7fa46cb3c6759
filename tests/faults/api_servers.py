"""`sapa api` of its own beside the installation, with settings that an attack needs."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psutil
from msgspec import Struct

from tests.conftest import TLS, Installation, free_port


class ApiServer(Struct, frozen=True):
    port: int
    process: psutil.Process
    log: Path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def workers(self) -> list[psutil.Process]:
        """The processes that answer; the one that serves the metrics has a lower priority."""
        return [child for child in self.process.children() if child.nice() == self.process.nice()]

    @property
    def metrics(self) -> str:
        """Where its metrics are, as its log says."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if found := re.findall(r'"address": ?"(http://[^"]+/metrics)"', self.log.read_text()):
                return str(found[-1])
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())


@contextmanager
def run_api(installation: Installation, **variables: str) -> Iterator[ApiServer]:
    port = int(variables.get("SAPA_PORT") or free_port())
    defaults = {
        "SAPA_DATABASE_URL": installation.server.app_url,
        "SAPA_SECRET_KEY": installation.server.secret_key,
        "SAPA_PORT": str(port),
        "SAPA_PROCESSES": "1",
        "SAPA_DATABASE_WAIT": "30",
        "SAPA_DRAIN_SECONDS": "0",
    }
    environ = {name: value for name, value in os.environ.items() if name != "PROMETHEUS_MULTIPROC_DIR"}
    with TemporaryDirectory() as folder, (Path(folder) / "api.log").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "sapa", "api"],
            env=environ | defaults | variables,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            scheme = "https" if "SAPA_TLS_CERT" in variables else "http"
            wait_until_healthy(f"{scheme}://127.0.0.1:{port}/healthz")
            yield ApiServer(port, psutil.Process(process.pid), Path(output.name))
        finally:
            process.terminate()
            assert process.wait(timeout=120) == 0


def wait_until_healthy(url: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(httpx.TransportError):
            if httpx.get(url, verify=False if url.startswith("https") else TLS).status_code == 200:
                return
        time.sleep(0.1)
    raise AssertionError(f"{url} does not answer")
