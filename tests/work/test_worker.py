import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sapa.db.connection import DatabaseAway
from sapa.db.counters import get_total
from sapa.db.pool import Database, open_database
from sapa.domains import JOBS
from sapa.runtime.processes import wait_until
from sapa.values.sealing import Vault
from sapa.work.leases import LEASE_SECONDS, RENEW_SECONDS
from tests.conftest import Installation
from tests.db.scratch import Scratch, connect, migrated_database
from tests.factories import make_company, make_endpoint

PATIENCE = 120
ROOT = Path(__file__).parents[2]


@pytest.fixture
async def scratch(installation: Installation) -> AsyncIterator[Scratch]:
    async with migrated_database(installation.server) as database:
        yield database


@pytest.fixture
async def database(scratch: Scratch) -> AsyncIterator[Database]:
    async with open_database(scratch.app_url, size=4, application="sapa onlooker") as opened:
        yield opened


@contextmanager
def working(scratch: Scratch, log: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process on the database, the product's own unless another command is given."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SAPA_")}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *(command or ("sapa", "worker"))],
            env=environ | {"SAPA_DATABASE_URL": scratch.app_url},
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)


def odd(scratch: Scratch) -> tuple[str, str]:
    return "tests.work.sample_jobs", scratch.app_url


async def ask(database: Database, query: str, *values: object) -> int:
    async with database.connection() as db:
        found: int = await db.fetchval(query, *values)
        return found


async def tally(database: Database, name: str) -> int:
    async with database.connection() as db:
        return await get_total(db, 1, name)


async def comes_to(database: Database, name: str, least: int) -> None:
    """Waits until a job was done so many times."""
    for _ in range(PATIENCE * 20):
        if await tally(database, name) >= least:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{name} came to {await tally(database, name)}, not to {least}")


async def is_folded(database: Database) -> None:
    for _ in range(PATIENCE * 20):
        try:
            if await ask(database, "SELECT count(*) FROM counter_deltas") == 0:
                return
        except DatabaseAway:
            pass
        await asyncio.sleep(0.05)
    raise AssertionError("the changes are not folded")


async def ended(process: subprocess.Popen[bytes]) -> int:
    return await asyncio.to_thread(process.wait, PATIENCE)


async def add_changes(database: Database, count: int) -> None:
    async with database.connection() as db:
        for _ in range(count):
            await db.execute(
                "INSERT INTO counter_deltas (company_id, counter, cell, delta)"
                " SELECT company_id, 'orders', '', 1 FROM generate_series(1, 20) AS company_id"
            )


async def test_a_failing_job_stops_neither_itself_nor_the_others(
    scratch: Scratch, database: Database, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with working(scratch, log, *odd(scratch)) as worker:
        for name in ("failed", "succeeded", "ended"):
            await comes_to(database, name, 2)
        assert worker.poll() is None
    assert "ZeroDivisionError" in log.read_text()


@pytest.mark.parametrize("request_", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
async def test_a_worker_that_is_asked_to_stop_finishes_and_releases_its_leases(
    scratch: Scratch, database: Database, tmp_path: Path, request_: signal.Signals
) -> None:
    with working(scratch, tmp_path / "log", *odd(scratch)) as worker:
        await comes_to(database, "begun", 1)
        worker.send_signal(request_)
        assert await ended(worker) == 0
    assert await tally(database, "ended") == await tally(database, "begun") > 0
    held = "SELECT count(*) FROM leases WHERE expires_at > now()"
    assert await ask(database, held) == 0


@pytest.mark.long
async def test_the_leases_of_a_killed_worker_are_taken_over_when_they_end(
    scratch: Scratch, database: Database, tmp_path: Path
) -> None:
    fold = "SELECT {} FROM leases WHERE name = 'fold counters'"
    with working(scratch, tmp_path / "first") as first:
        await add_changes(database, 1)
        await is_folded(database)
        holder, epoch = await ask(database, fold.format("holder")), await ask(database, fold.format("epoch"))
        first.kill()
        await ended(first)
        async with database.connection() as db:
            await db.execute("UPDATE leases SET expires_at = now() + interval '1 h' WHERE holder = $1", holder)
    await add_changes(database, 2)
    with working(scratch, tmp_path / "second") as second:
        assert await wait_until(lambda: "worker started" in (tmp_path / "second").read_text(), PATIENCE)
        await asyncio.sleep(1.5)
        assert await ask(database, fold.format("holder")) == holder
        assert await ask(database, "SELECT count(*) FROM counter_deltas") == 40
        async with database.connection() as db:
            await db.execute("UPDATE leases SET expires_at = now() - interval '1 s' WHERE holder = $1", holder)
        await is_folded(database)
        assert await ask(database, fold.format("epoch")) == epoch + 1
        assert second.poll() is None
    assert await ask(database, "SELECT sum(total) FROM counter_cells") == 60


HELD_ELSEWHERE = {
    "leases": """INSERT INTO leases (name, holder, expires_at) VALUES ('a service', $1, now() + interval '1 h')""",
    "webhook_lanes": """INSERT INTO webhook_lanes (company_id, endpoint_id, owner, epoch, owner_until)
                        SELECT company_id, id, $1, 1, now() + interval '1 h' FROM webhook_endpoints
                            ON CONFLICT (company_id, endpoint_id) DO UPDATE
                           SET owner = excluded.owner, owner_until = excluded.owner_until""",
    "channel_lanes": """INSERT INTO channel_lanes (company_id, connection_id, source, holder, leased_until)
                        SELECT company_id, 'chn_1', 'whatsapp', $1, now() + interval '1 h' FROM companies LIMIT 1""",
}
STILL_HELD = """SELECT (SELECT count(*) FROM leases WHERE name = 'a service' AND expires_at > now())
                     + (SELECT count(*) FROM webhook_lanes WHERE owner_until > now())
                     + (SELECT count(*) FROM channel_lanes WHERE leased_until > now())"""


async def test_what_a_killed_worker_held_is_free_as_soon_as_its_lease_has_expired(
    installation: Installation, scratch: Scratch, database: Database, tmp_path: Path
) -> None:
    """Its lanes and leases, however long they would last."""
    assert LEASE_SECONDS + RENEW_SECONDS < 10
    own_lease = "SELECT holder FROM leases WHERE name LIKE 'worker %'"
    company = await make_company(database)
    await make_endpoint(database, Vault(installation.server.secret_key), company.live)
    with working(scratch, tmp_path / "first") as first:

        async def has_lease() -> bool:
            return bool(await ask(database, own_lease))

        assert await wait_until(has_lease, PATIENCE)
        name = await ask(database, own_lease)
        first.kill()
        await ended(first)
    async with database.connection() as db:
        for statement in HELD_ELSEWHERE.values():
            await db.execute(statement, f"{name}/1")
    assert await ask(database, STILL_HELD) == len(HELD_ELSEWHERE)
    with working(scratch, tmp_path / "second"):

        async def is_free() -> bool:
            return await ask(database, STILL_HELD) == 0

        assert await wait_until(is_free, PATIENCE)
        assert await wait_until(lambda: "worker gone" in (tmp_path / "second").read_text(), PATIENCE)


@pytest.mark.long
async def test_two_workers_fold_every_change_once(scratch: Scratch, database: Database, tmp_path: Path) -> None:
    with working(scratch, tmp_path / "first"), working(scratch, tmp_path / "second"):
        await asyncio.gather(*(add_changes(database, 100) for _ in range(3)))
        await is_folded(database)
        async with database.connection() as db:
            totals = [await get_total(db, company_id, "orders") for company_id in range(1, 21)]
        assert totals == [300] * 20
        names = [job.name for job in JOBS]
        leased = "SELECT count(*) FROM leases WHERE name = ANY($1::text[])"

        async def is_every_job_leased() -> bool:
            return await ask(database, leased, names) == len(JOBS)

        assert await wait_until(is_every_job_leased, PATIENCE)
    assert "job failed" not in (tmp_path / "first").read_text() + (tmp_path / "second").read_text()


@pytest.mark.long
async def test_a_worker_outlives_the_absence_of_its_database(
    scratch: Scratch, database: Database, tmp_path: Path
) -> None:
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sapa worker'"
    name = scratch.app_url.split("@/")[1].split("?")[0]
    elsewhere = scratch.superuser_url.replace(f"/{name}?", "/postgres?")
    with working(scratch, tmp_path / "log") as worker:
        await add_changes(database, 1)
        await is_folded(database)
        async with connect(elsewhere) as superuser:
            await superuser.execute(cut)
            await add_changes(database, 1)
            await is_folded(database)
            await superuser.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            await superuser.execute(cut)
            await asyncio.sleep(1.5)
            assert worker.poll() is None
            await superuser.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        await add_changes(database, 1)
        await is_folded(database)
        worker.terminate()
        assert await ended(worker) == 0
    assert await ask(database, "SELECT sum(total) FROM counter_cells") == 60


@pytest.mark.long
async def test_a_worker_starts_before_its_database_and_stops_without_it(scratch: Scratch, tmp_path: Path) -> None:
    nowhere = Scratch("", "", "postgresql://nobody@127.0.0.1:1/nothing")
    log = tmp_path / "log"
    with working(nowhere, log) as worker:
        assert await wait_until(lambda: "loop waits for the database" in log.read_text(), PATIENCE)
        worker.terminate()
        assert await ended(worker) == 0
    assert "Traceback" not in log.read_text()
