"""How calls get into the log: in batches, bounded, and later when PostgreSQL is away."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from prometheus_client import REGISTRY

from sapa.access.calls import recorder
from sapa.access.calls.recorder import CallRecorder
from sapa.db.pool import Connection, Database, open_database
from sapa.http.access_log import FinishedCall
from sapa.work.retention import keep_partitions
from tests.conftest import Installation, free_port
from tests.db.scratch import Scratch, connect, migrated_database
from tests.http.wire import eventually

NOW = datetime.now(UTC).timestamp()


@pytest.fixture(scope="module")
async def scratch(installation: Installation) -> AsyncIterator[Scratch]:
    async with migrated_database(installation.server) as made:
        yield made


@pytest.fixture
async def quiet(scratch: Scratch) -> AsyncIterator[Database]:
    async with open_database(scratch.app_url) as database:
        yield database


def build_call(number: int, company_id: int, status: int = 200, key_id: str | None = "key_a", **fields: object) -> (
    FinishedCall
):  # fmt: skip
    values = {
        "at": NOW, "request_id": f"req_{number}", "method": "GET", "route": "/customer/v1/orders", "path": "/secret",
        "status": status, "seconds": 0.25, "ip": "203.0.113.7", "key_id": key_id, "company_id": company_id,
        "code": None,
    } | fields  # fmt: skip
    return FinishedCall(**values)  # type: ignore[arg-type]


async def count(database: Database, company_id: int) -> int:
    async with database.connection() as db:
        number: int = await db.fetchval("SELECT count(*) FROM api_calls WHERE company_id = $1", company_id)
        return number


def get_dropped() -> float:
    return REGISTRY.get_sample_value("sapa_api_calls_not_logged_total") or 0.0


async def test_a_call_is_stored_at_the_time_it_began(quiet: Database) -> None:
    log = CallRecorder(quiet)
    log.add([build_call(1, 11)])
    await log.close()
    async with quiet.connection() as db:
        row = await db.fetchrow("SELECT * FROM api_calls WHERE company_id = 11")
    assert row is not None
    began = datetime.fromtimestamp(NOW - 0.25, UTC)
    assert abs(datetime.fromisoformat(row["called_at"]) - began) < timedelta(milliseconds=2)
    assert (row["microseconds"], row["key_id"]) == (250_000, "key_a")


async def test_calls_without_a_key_belong_to_no_company(quiet: Database) -> None:
    log = CallRecorder(quiet)
    log.add([build_call(1, 12, 401, None), build_call(2, 12)])
    await log.close()
    assert await count(quiet, 12) == 1


async def test_whatever_a_caller_sends_is_stored_in_bounds(quiet: Database) -> None:
    log = CallRecorder(quiet)
    odd = ["\0" * 5, "x" * 5000, "\t\n\\.", "\u2028", "é"]
    log.add([build_call(n, 13, ip=text, method=text.replace("\0", "M")) for n, text in enumerate(odd)])
    log.add([build_call(len(odd), 13, seconds=1e6)])
    await log.close()
    assert await count(quiet, 13) == len(odd) + 1


async def test_a_caller_that_ignores_its_rate_limit_does_not_fill_the_log(quiet: Database) -> None:
    log = CallRecorder(quiet)
    for start in range(0, 1000, 100):
        log.add([build_call(n, 14, 429) for n in range(start, start + 100)])
    log.add([build_call(n, 14, 429, "key_b") for n in range(1000, 1010)])
    log.add([build_call(n, 14, 429, at=NOW + 60) for n in range(2000, 2010)])
    log.add([build_call(3000, 14, 200)])
    await log.close()
    assert await count(quiet, 14) == 100 + 10 + 10 + 1


async def test_while_postgresql_is_away_the_newest_calls_wait_and_the_rest_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recorder, "MAX_WAITING", 100)
    before = get_dropped()
    async with open_database(f"postgresql://sapa@127.0.0.1:{free_port()}/sapa") as away:
        log = CallRecorder(away)
        for start in range(0, 300, 50):
            log.add([build_call(n, 15) for n in range(start, start + 50)])
            await asyncio.sleep(0)
        assert 150 <= get_dropped() - before <= 200, "the first 50 may be on their way"
        await log.close()
    assert get_dropped() - before == 300


async def test_calls_that_could_not_be_stored_are_stored_later(scratch: Scratch, quiet: Database) -> None:
    """A locked table stands for a database that is away for a while."""
    log = CallRecorder(quiet)
    async with connect(scratch.owner_url) as owner, owner.transaction():
        await owner.execute("SET LOCAL statement_timeout = 0")
        await owner.execute("LOCK TABLE api_calls IN ACCESS EXCLUSIVE MODE")
        log.add([build_call(1, 16)])
        await eventually(partial(has_waiter, owner))
        log.add([build_call(2, 16)])
    log.add([build_call(3, 16)])
    await log.close()
    assert await count(quiet, 16) == 3


async def test_a_batch_that_was_stored_although_nobody_said_so_is_not_missed(quiet: Database) -> None:
    before, log = get_dropped(), CallRecorder(quiet)
    for _ in range(2):
        log.add([build_call(1, 18), build_call(2, 18)])
    log.add([build_call(3, 18)])
    await log.close()
    assert (await count(quiet, 18), get_dropped() - before) == (3, 0)


async def has_waiter(owner: Connection) -> bool | None:
    """Whether somebody waits for the table."""
    waits = "SELECT count(*) FROM pg_locks WHERE relation = 'api_calls'::regclass AND NOT granted"
    return await owner.fetchval(waits) > 0 or None


async def test_days_are_kept_for_a_month(scratch: Scratch, quiet: Database) -> None:
    async with connect(scratch.owner_url) as owner:
        for days in (29, 31, 45):
            day = datetime.now(UTC).date() - timedelta(days=days)
            name = f"api_calls_{day:%Y%m%d}"
            await owner.execute(
                f"CREATE TABLE {name} PARTITION OF api_calls FOR VALUES FROM ('{day} 00:00:00+00')"
                f" TO ('{day + timedelta(days=1)} 00:00:00+00')"
            )
    log = CallRecorder(quiet)
    log.add([build_call(days, 17, at=NOW - days * 86_400) for days in (0, 29, 31, 45, 60)])
    await log.close()
    assert await count(quiet, 17) == 5
    await keep_partitions(quiet)
    async with quiet.connection() as db:
        left = await db.fetch("SELECT request_id FROM api_calls WHERE company_id = 17 ORDER BY called_at DESC")
    assert [row[0] for row in left] == ["req_0", "req_29"]
