"""An idle installation hardly asks its database anything: counted in PostgreSQL's own log."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import Installation, start_installation, stop_installation
from tests.db.scratch import build_urls, connect

SECONDS = 10
MAX_PER_SECOND = 4
MAX_OF_A_FURTHER_WORKER = 1
WINDOWS = 12
"""So many times a window may be disturbed: by the start, or by a busy machine on which the beat is late."""

STATEMENT = re.compile(r"LOG:  (?:statement|execute [^:]*): (.*)")


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[Installation]:
    """One API process and one worker, on a database that logs every statement."""
    running = start_installation(tmp_path / "data", SAPA_PROCESSES="1")
    try:
        async with connect(build_urls(running.server, "sapa").superuser_url) as superuser:
            await superuser.execute("ALTER SYSTEM SET log_statement = 'all'")
            await superuser.execute("SELECT pg_reload_conf()")
        yield running
    finally:
        assert stop_installation(running) == 0


@contextmanager
def working(installation: Installation) -> Iterator[None]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SAPA_")}
    environ |= {"SAPA_DATABASE_URL": installation.server.app_url, "SAPA_SECRET_KEY": installation.server.secret_key}
    with (installation.data / "further.log").open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "sapa", "worker"], env=environ, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.terminate()
        process.wait(120)


async def find_quiet_window(installation: Installation, most: int) -> None:
    """Passes as soon as ten seconds have no more statements than that."""
    log = installation.server.log
    for _ in range(WINDOWS):
        start = log.stat().st_size
        await asyncio.sleep(SECONDS)
        with log.open("rb") as file:
            file.seek(start)
            found = STATEMENT.findall(file.read().decode(errors="replace"))
        if len(found) <= most:
            assert found, "the log has no statements at all"
            return
    listed = "\n".join(found)
    raise AssertionError(f"{len(found)} statements in {SECONDS} s, more than {most}:\n{listed}")


async def test_an_idle_installation_sends_few_statements(alone: Installation) -> None:
    await find_quiet_window(alone, MAX_PER_SECOND * SECONDS)
    with working(alone):
        await find_quiet_window(alone, (MAX_PER_SECOND + MAX_OF_A_FURTHER_WORKER) * SECONDS)
