"""What every part stands on: a folder, a database of its own in it, companies, and the environment of processes."""

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import psutil
from msgspec import Struct

from bench.machine import OUT
from sapa.access import actions
from sapa.access.types import MAX_RATE_LIMIT, KeyIn, Scope
from sapa.db.migrations import migrate
from sapa.db.pool import open_database
from sapa.runtime.embedded import EmbeddedServer, open_embedded

POOL = 10


class SeededCompany(Struct, frozen=True):
    id: int
    key: str


class Ground(Struct, frozen=True):
    """A running database and where it lies."""

    folder: Path
    server: EmbeddedServer

    @property
    def app_url(self) -> str:
        return self.server.app_url

    @property
    def postgres(self) -> psutil.Process:
        return psutil.Process(int((self.server.cluster / "postmaster.pid").read_text().split("\n", 1)[0]))

    @property
    def environment(self) -> dict[str, str]:
        """Of a process of Sapa on this database, its metrics shared as under `sapa serve`."""
        metrics = self.folder / "metrics"
        metrics.mkdir(exist_ok=True)
        return plain_environment() | {
            "SAPA_DATABASE_URL": self.app_url,
            "SAPA_DATABASE_POOL": str(POOL),
            "SAPA_PROCESSES": "1",
            "SAPA_DRAIN_SECONDS": "0",
            "SAPA_SECRET_KEY": self.server.secret_key,
            "SAPA_WEBHOOK_ALLOW_INSECURE": "1",
            "PROMETHEUS_MULTIPROC_DIR": str(metrics),
        }


@contextmanager
def prepare_folder(part: str) -> Iterator[Path]:
    """Empty at first, gone in the end."""
    folder = OUT / f"run-{part}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def open_ground(folder: Path) -> AsyncIterator[Ground]:
    """The folder's database, made and migrated when there is none yet."""
    async with open_embedded(folder / "data") as server:
        await migrate(server.owner_url, server.app_url)
        yield Ground(folder, server)


async def make_company(ground: Ground, name: str) -> SeededCompany:
    return await create_company(ground.app_url, name)


async def create_company(app_url: str, name: str) -> SeededCompany:
    """A company with a key that may do everything, as often as it likes."""
    async with open_database(app_url) as database, database.transaction() as tx:
        made = await actions.create_company(tx, name)
        given = KeyIn(name="benchmark", scopes=list(Scope), rate_limit=MAX_RATE_LIMIT)
        key = await actions.create_key(tx, made.live_company_id, given)
    return SeededCompany(made.live_company_id, key.key)


def plain_environment() -> dict[str, str]:
    """Ours, without settings that whoever runs the benchmark has for an installation of theirs."""
    ours = ("SAPA_", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}
