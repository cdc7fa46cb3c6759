"""The product on a PostgreSQL that is not its own: as owner and product role, neither of them a superuser."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import mkdtemp

import asyncpg
import httpx
import pytest

from sapa.db.pool import open_database
from tests.conftest import Installation, connect, start_installation, stop_installation
from tests.customers.test_api import EVERYTHING
from tests.customers.test_listing import SORTS
from tests.db.scratch import Scratch, scratch_database
from tests.factories import make_company, make_customer, make_key

DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
KINDS = ["embedded 18", *([pytest.param("Debian's", marks=pytest.mark.long)] if DEBIAN else [])]


@contextmanager
def debian_server() -> Iterator[Path]:
    """Debian's newest PostgreSQL on a folder of its own; yields the folder of its socket."""
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(mkdtemp(prefix="sapa-outside-"))
    if user:
        shutil.chown(folder, user)
    programs, data = DEBIAN[0], folder / "data"
    options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"]
    subprocess.run([programs / "initdb", "-D", data, *options], user=user, cwd="/", check=True, capture_output=True)
    server = subprocess.Popen(
        [programs / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
        user=user, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield folder
    finally:
        server.terminate()
        server.wait(60)
        shutil.rmtree(folder)


async def make_database(socket: Path) -> Scratch:
    urls = [f"postgresql://{role}@/{{}}?host={socket}" for role in ("postgres", "plain_owner", "plain_app")]
    for _ in range(600):
        try:
            connection = await asyncpg.connect(urls[0].format("postgres"))
            break
        except (OSError, asyncpg.CannotConnectNowError):
            await asyncio.sleep(0.05)
    try:
        await connection.execute("CREATE ROLE plain_owner LOGIN")
        await connection.execute("CREATE ROLE plain_app LOGIN")
        await connection.execute("CREATE DATABASE outside OWNER plain_owner")
    finally:
        await connection.close()
    return Scratch(*(url.format("outside") for url in urls))


@asynccontextmanager
async def outside_database(kind: str, installation: Installation) -> AsyncIterator[Scratch]:
    if kind == "embedded 18":
        async with scratch_database(installation.server) as scratch:
            yield scratch
        return
    with debian_server() as socket:
        yield await make_database(socket)


@pytest.fixture(scope="module", params=KINDS)
async def outside(
    request: pytest.FixtureRequest, installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Installation, Scratch]]:
    """A `sapa serve` that was given the addresses of a database."""
    async with outside_database(request.param, installation) as scratch:
        running = start_installation(
            tmp_path_factory.mktemp("outside") / "data",
            SAPA_DATABASE_URL=scratch.app_url,
            SAPA_DATABASE_OWNER_URL=scratch.owner_url,
            SAPA_DATABASE_POOL="4",
        )
        yield running, scratch
        assert stop_installation(running) == 0


@pytest.fixture
async def outside_api(outside: tuple[Installation, Scratch]) -> AsyncIterator[httpx.AsyncClient]:
    running, scratch = outside
    async with open_database(scratch.app_url) as database:
        key = await make_key(database, (await make_company(database)).live)
    async with connect(running, key.raw) as client:
        yield client


async def test_customers_work_on_an_outside_database(
    outside: tuple[Installation, Scratch], outside_api: httpx.AsyncClient
) -> None:
    api, (running, _) = outside_api, outside
    assert not (running.data / "pg").exists()
    made = await make_customer(api, **EVERYTHING)
    other = (await api.put("/customers/by-external-id/x", json={"phoneNumber": "0813 1111 222"})).json()["data"]
    changed = (await api.put(f"/customers/{made['id']}", json={"firstName": "ÉLAN Straße"})).json()["data"]
    assert (await api.post("/customers", json=EVERYTHING)).status_code == 409
    for sort in SORTS:
        for direction in ("asc", "desc"):
            response = await api.get("/customers", params={"sort": f"{sort}:{direction}"})
            assert sorted(one["id"] for one in response.json()["data"]) == sorted([made["id"], other["id"]])
    for query in (
        {"search": "élan strasse"},
        {"search": "0812"},
        {"tags": "vip,jakarta"},
        {"search": "AYU.L", "tags": "vip"},
    ):
        response = await api.get("/customers", params=query)
        assert response.json()["data"] == [changed], query
        assert response.json()["meta"]["total"] == 1
    assert (await api.delete(f"/customers/{made['id']}")).status_code == 204
    assert (await api.get("/customers")).json()["data"] == [other]
    assert (await api.get("/customers")).json()["meta"]["total"] == 1


async def test_the_products_role_is_held_down_on_an_outside_database_too(
    outside: tuple[Installation, Scratch], outside_api: httpx.AsyncClient
) -> None:
    await make_customer(outside_api)
    app = await asyncpg.connect(outside[1].app_url)
    try:
        assert await app.fetchval("SELECT count(*) FROM events") > 0
        assert not await app.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        for statement in ("UPDATE events SET kind = ''", "DELETE FROM events", "CREATE TABLE mine (id int)"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await app.execute(statement)
    finally:
        await app.close()


@pytest.mark.long
async def test_the_worker_folds_on_an_outside_database(
    outside: tuple[Installation, Scratch], outside_api: httpx.AsyncClient
) -> None:
    await make_customer(outside_api)
    async with open_database(outside[1].app_url) as database:
        for _ in range(200):
            async with database.connection() as db:
                if await db.fetchval("SELECT count(*) FROM counter_deltas") == 0:
                    return
            await asyncio.sleep(0.1)
    raise AssertionError("the changes were not folded")
