"""Hosts of two releases behind a load balancer, for upgrades under load."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from shutil import copytree

import httpx

import sapa
from bench.history import unpack_version
from sapa.db.migrations.files import FOLDER, list_migrations
from sapa.runtime.processes import wait_until
from tests.conftest import free_port

PATIENCE = 120
CHECK_SECONDS = 0.1
CALLERS = 6
PRESENT = Path(sapa.__file__).parent


def make_release(folder: Path, *steps: str) -> Path:
    """The present release with more migrations: links to its files."""
    copytree(PRESENT, folder / "sapa", copy_function=os.symlink, ignore=lambda *_: {"__pycache__"})
    present = list_migrations()[-1].number
    for number, text in enumerate(steps, start=present + 1):
        file = folder / "sapa" / FOLDER.relative_to(PRESENT) / f"{number:04}_planted.sql"
        file.write_text(f"-- runs with code since: {present:04}\n{text}")
    return folder


def unpack_earlier_release(folder: Path) -> Path | None:
    """The code before the newest migration was added; None where the repository's history is not at hand."""
    newest = max(FOLDER.glob("*.sql"))
    log = ["git", "log", "-1", "--diff-filter=A", "--format=%H", "--", str(newest)]
    found = subprocess.run(log, cwd=FOLDER, capture_output=True, text=True, check=False)
    tree = unpack_version(f"{found.stdout.strip()}^", folder)
    return tree / "src" if tree else None


class Host:
    """One `sapa api` of a release."""

    def __init__(self, release: Path, environ: dict[str, str], log: Path) -> None:
        self.port = free_port()
        self.is_ready = False
        variables = {"PYTHONPATH": str(release), "SAPA_PORT": str(self.port), **environ}
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sapa", "api"], env=os.environ | variables, stdout=output, stderr=output
            )

    async def check(self, client: httpx.AsyncClient) -> None:
        with suppress(httpx.TransportError):
            self.is_ready = (await client.get(f"http://127.0.0.1:{self.port}/readyz")).status_code == 200
            return
        self.is_ready = False

    async def stop(self) -> int:
        self._process.terminate()
        return await asyncio.to_thread(self._process.wait, PATIENCE)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)


class Balancer:
    """Sends each new connection to the next host that is ready, and never tries again."""

    def __init__(self) -> None:
        self.port = free_port()
        self.hosts: list[Host] = []
        self._turn = count()
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        listener = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        checking = asyncio.create_task(self._check())
        try:
            yield
        finally:
            listener.close()
            for task in (checking, *self._tasks):
                task.cancel()
            await asyncio.gather(checking, *self._tasks, return_exceptions=True)

    async def add(self, host: Host) -> None:
        self.hosts.append(host)
        assert await wait_until(lambda: host.is_ready, PATIENCE)

    async def _check(self) -> None:
        async with httpx.AsyncClient(timeout=PATIENCE, headers={"connection": "close"}) as client:
            while True:
                await asyncio.gather(*(host.check(client) for host in self.hosts))
                await asyncio.sleep(CHECK_SECONDS)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._forward(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ready = [host for host in self.hosts if host.is_ready]
        host = ready[next(self._turn) % len(ready)]
        from_host, to_host = await asyncio.open_connection("127.0.0.1", host.port)
        try:
            await asyncio.gather(_pump(reader, to_host), _pump(from_host, writer))
        finally:
            await asyncio.gather(_close(to_host), _close(writer))


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await source.read(65_536):
            target.write(piece)
            await target.drain()
    target.close()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


class Callers:
    """Read and write orders over connections that they keep, and never try again."""

    def __init__(self, base: str, key: str) -> None:
        self._base = base
        self._key = key
        self._is_stopping = False
        self.calls = 0
        self.failures: list[str] = []

    @asynccontextmanager
    async def calling(self) -> AsyncIterator[None]:
        callers = [asyncio.create_task(self._call_on()) for _ in range(CALLERS)]
        try:
            yield
        finally:
            self._is_stopping = True
            await asyncio.gather(*callers)

    async def go_on(self, calls: int = 50) -> None:
        goal = self.calls + calls
        assert await wait_until(lambda: self.calls >= goal or bool(self.failures), PATIENCE)
        assert self.failures == []

    async def _call_on(self) -> None:
        body = {"lineItems": [{"title": "Kopi Gayo", "price": 75000, "quantity": 2}]}
        headers = {"x-api-key": self._key}
        async with httpx.AsyncClient(base_url=self._base, headers=headers, timeout=PATIENCE) as api:
            while not self._is_stopping:
                await self._call(api.build_request("POST", "/orders", json=body), api)
                await self._call(api.build_request("GET", "/orders", params={"limit": 20}), api)

    async def _call(self, request: httpx.Request, api: httpx.AsyncClient) -> None:
        try:
            response = await api.send(request)
        except httpx.TransportError as error:
            self.failures.append(repr(error))
            return
        self.calls += 1
        if response.status_code not in {200, 201}:
            self.failures.append(f"{response.status_code} {response.text[:300]}")


async def run_command(release: Path, environ: dict[str, str], command: Sequence[str]) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "sapa",
        *command,
        env=os.environ | environ | {"PYTHONPATH": str(release)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()
