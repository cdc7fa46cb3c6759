import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeAlias

import asyncpg
import pytest

from sapa.db import pool, sql
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Connection, Database, open_database
from tests.conftest import Installation
from tests.db.scratch import connect, scratch_database
from tests.http.wire import eventually

Changing: TypeAlias = "tuple[Database, asyncpg.Connection[asyncpg.Record]]"
"""A pool of one connection, and the owner of its database."""

SESSION_STATE = re.compile(r"^\s*SET\b(?! LOCAL)|\bLISTEN\b|pg_advisory_lock|\bTEMP|\bPREPARE\b|set_config\([^)]*false")


@pytest.fixture(scope="module")
async def notes(installation: Installation) -> AsyncIterator[Database]:
    """A pool of one connection on a database with one table."""
    async with scratch_database(installation.server) as scratch:
        async with connect(scratch.owner_url) as owner:
            await owner.execute("CREATE TABLE notes (id int PRIMARY KEY); GRANT ALL ON notes TO sapa_app")
        async with open_database(scratch.app_url, size=1, application="sapa test") as database:
            yield database


async def count(database: Database) -> int:
    async with database.connection() as db:
        found: int = await db.fetchval("SELECT count(*) FROM notes")
        return found


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("statement_timeout", "10s"), ("lock_timeout", "5s"), ("idle_in_transaction_session_timeout", "15s"),
        ("TimeZone", "UTC"), ("jit", "off"), ("application_name", "sapa test"),
        ("transaction_isolation", "read committed"),
    ],
)  # fmt: skip
async def test_a_pooled_connection_is_bounded_in_what_it_may_wait_for(
    notes: Database, setting: str, value: str
) -> None:
    async with notes.connection() as db:
        assert await db.fetchval("SELECT current_setting($1)", setting) == value


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ('duplicate key value violates unique constraint "notes_pkey_102008"', asyncpg.UniqueViolationError),
        ('new row for relation "notes_102008" violates check constraint "notes_check"', asyncpg.CheckViolationError),
        ("deadlock detected", asyncpg.DeadlockDetectedError),
        ("out of ideas", asyncpg.InternalServerError),
    ],
)
async def test_what_a_machine_of_a_cluster_refuses_without_a_code_is_known_by_its_words(
    notes: Database, words: str, kind: type[asyncpg.PostgresError]
) -> None:
    async with notes.connection() as db:
        with pytest.raises(kind, match=words) as raised:
            await db.execute(f"DO $$ BEGIN RAISE EXCEPTION '{words}' USING ERRCODE = 'XX000'; END $$")
    assert type(raised.value) is kind


async def test_connections_that_a_burst_opened_are_closed_again(
    notes: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not while they are needed: the calls of a second burst each find one."""
    monkeypatch.setattr(pool, "UNUSED_SECONDS", 0.3)
    async with open_database(notes.url, size=8, application="sapa burst") as database:

        async def hold(free: asyncio.Event) -> None:
            async with database.connection():
                await free.wait()

        async def are_all_held() -> bool | None:
            return (database.open_count == 8 and database.idle == 0) or None

        async def are_closed() -> bool | None:
            return database.open_count == pool.MAX_UNUSED or None

        for _ in range(2):
            free = asyncio.Event()
            calls = [asyncio.create_task(hold(free)) for _ in range(8)]
            await eventually(are_all_held)
            await asyncio.sleep(2 * pool.UNUSED_SECONDS)
            assert database.open_count == 8
            free.set()
            await asyncio.gather(*calls)
            await eventually(are_closed)
            assert await count(database) >= 0


async def add_and_fail(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.execute("INSERT INTO notes VALUES (1)")
        raise ZeroDivisionError


async def test_a_failing_block_leaves_nothing_and_the_connection_is_reused(notes: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        await add_and_fail(notes)
    assert await count(notes) == 0
    async with notes.transaction() as tx:
        await tx.execute("INSERT INTO notes VALUES (2)")
    assert await count(notes) == 1


async def add_twice(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.execute("INSERT INTO notes VALUES (3)")
        await tx.execute("INSERT INTO notes VALUES (3)")


async def test_a_refused_statement_undoes_the_whole_transaction(notes: Database) -> None:
    before = await count(notes)
    with pytest.raises(asyncpg.UniqueViolationError):
        await add_twice(notes)
    assert await count(notes) == before


async def sleep_long(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.execute("INSERT INTO notes VALUES (4)")
        await tx.execute("SET LOCAL statement_timeout = '50ms'")
        await tx.execute("SELECT pg_sleep(60)")


async def test_a_statement_past_its_time_is_ended_and_undone(notes: Database) -> None:
    before = await count(notes)
    with pytest.raises(asyncpg.QueryCanceledError):
        await sleep_long(notes)
    assert await count(notes) == before
    async with notes.connection() as db:
        assert await db.fetchval("SELECT current_setting('statement_timeout')") == "10s"


async def insert_then_wait(database: Database, inserted: asyncio.Event) -> None:
    async with database.transaction() as tx:
        await tx.execute("INSERT INTO notes VALUES (5)")
        inserted.set()
        await tx.execute("SELECT pg_sleep(5)")


async def test_a_caller_that_is_cancelled_leaves_nothing_and_gives_its_connection_back(notes: Database) -> None:
    before, inserted = await count(notes), asyncio.Event()
    task = asyncio.create_task(insert_then_wait(notes, inserted))
    await inserted.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await count(notes) == before


async def test_nothing_of_one_user_reaches_the_next(notes: Database) -> None:
    async with notes.transaction() as tx:
        backend = await tx.fetchval("SELECT pg_backend_pid()")
        await tx.execute("SET LOCAL search_path = pg_catalog")
        await tx.execute("SET LOCAL lock_timeout = '1ms'")
        await tx.execute("SELECT pg_advisory_xact_lock(7)")
        await tx.execute("SET CONSTRAINTS ALL DEFERRED")
    async with notes.connection() as db:
        assert await db.fetchval("SELECT pg_backend_pid()") == backend
        assert await db.fetchval("SELECT current_setting('search_path')") == '"$user", public'
        assert await db.fetchval("SELECT current_setting('lock_timeout')") == "5s"
        assert await db.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


async def test_a_transaction_that_was_left_open_does_not_swallow_the_next_users_work(notes: Database) -> None:
    before = await count(notes)
    async with notes.connection() as db:
        await db.execute("BEGIN; INSERT INTO notes VALUES (6)")
    async with notes.connection() as db:
        assert not db.is_in_transaction()
    assert await count(notes) == before


def test_no_statement_leaves_anything_on_its_connection() -> None:
    assert [one.text for one in sql.REGISTRY if SESSION_STATE.search(one.text)] == []


async def hold(database: Database, let_go: asyncio.Event, held: asyncio.Event) -> None:
    async with database.connection():
        held.set()
        await let_go.wait()


async def use(database: Database) -> int:
    async with database.connection() as db:
        one: int = await db.fetchval("SELECT 1")
        return one


async def test_a_wait_for_a_connection_times_out(installation: Installation) -> None:
    database = Database(installation.server.app_url, 1, "sapa impatient", acquire_seconds=2)
    let_go, held = asyncio.Event(), asyncio.Event()
    holder = asyncio.create_task(hold(database, let_go, held))
    await held.wait()
    with pytest.raises(DatabaseAway):
        await use(database)
    let_go.set()
    await holder
    assert await use(database) == 1
    await database.close()


async def test_the_pool_recovers_when_its_connections_are_cut(installation: Installation) -> None:
    async with open_database(installation.server.app_url, size=4, application="sapa cut") as database:
        await asyncio.gather(*(use(database) for _ in range(8)))
        async with connect(installation.server.app_url) as other:
            for _ in range(3):
                cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sapa cut'"
                await other.execute(cut)
                assert await recovers(database)


async def recovers(database: Database) -> bool:
    for _ in range(100):
        try:
            return await asyncio.gather(*(use(database) for _ in range(8))) == [1] * 8
        except DatabaseAway:
            await asyncio.sleep(0.05)
    return False


async def sessions(installation: Installation, application: str) -> int:
    async with connect(installation.server.app_url) as other:
        count: int = await other.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", application
        )
    return count


async def end_in_doubt(database: Database, held: asyncio.Event, let_go: asyncio.Event) -> int:
    """Loses a connection to a time-out, and comes again at once."""
    with suppress(TimeoutError):
        async with database.connection():
            held.set()
            await let_go.wait()
            raise TimeoutError
    return await use(database)


async def test_a_lost_connection_is_replaced_and_the_pool_keeps_its_size(installation: Installation) -> None:
    async with open_database(installation.server.app_url, size=1, application="sapa lost") as database:
        held, let_go = asyncio.Event(), asyncio.Event()
        loser = asyncio.create_task(end_in_doubt(database, held, let_go))
        await held.wait()
        waiters = [asyncio.create_task(use(database)) for _ in range(3)]
        await asyncio.sleep(0)
        let_go.set()
        assert await asyncio.gather(loser, *waiters) == [1] * 4
        assert database.open_count == 1


async def test_a_closed_pool_leaves_no_connection_not_even_one_that_was_in_use(installation: Installation) -> None:
    database = Database(installation.server.app_url, 2, "sapa closing")
    held, let_go = asyncio.Event(), asyncio.Event()
    holder = asyncio.create_task(hold(database, let_go, held))
    await held.wait()
    await use(database)
    assert await sessions(installation, "sapa closing") == 2
    await database.close()
    let_go.set()
    await holder
    for _ in range(100):
        if await sessions(installation, "sapa closing") == 0:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("a session was left")


async def test_more_users_than_connections_all_have_their_turn(installation: Installation) -> None:
    async with open_database(installation.server.app_url, size=3, application="sapa crowd") as database:
        assert await asyncio.gather(*(use(database) for _ in range(100))) == [1] * 100
        assert await sessions(installation, "sapa crowd") <= 3


async def test_a_process_may_start_while_postgresql_is_away() -> None:
    async with open_database("postgresql://nobody@127.0.0.1:1/nothing") as database:
        with pytest.raises(DatabaseAway):
            await use(database)


async def test_instants_before_and_after_the_epoch_can_be_parameters(notes: Database) -> None:
    async with notes.connection() as db:
        earlier, later = datetime(1990, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
        assert await compare(db, earlier, later)
        assert not await compare(db, later, earlier)


async def compare(db: Connection, one: datetime, two: datetime) -> bool:
    return bool(await db.fetchval("SELECT $1::timestamptz < $2::timestamptz", one, two))


async def test_a_wrong_number_of_arguments_is_no_lost_database(notes: Database) -> None:
    async with notes.connection() as db:
        with pytest.raises(asyncpg.InterfaceError):
            await db.fetchrow("SELECT $1::int")
        assert await db.fetchval("SELECT 1") == 1


@pytest.mark.parametrize("method", ["fetch", "fetchrow", "fetchval", "execute"])
async def test_a_statement_that_times_out_loses_its_connection(notes: Database, method: str) -> None:
    before = await backend(notes)
    with pytest.raises(DatabaseAway, match="TimeoutError"):
        await run_too_long(notes, method)
    assert await backend(notes) != before


async def run_too_long(database: Database, method: str) -> None:
    async with database.connection() as db:
        await getattr(db, method)("SELECT pg_sleep(60)", timeout=0.05)


async def backend(database: Database) -> int:
    async with database.connection() as db:
        number: int = await db.fetchval("SELECT pg_backend_pid()")
        return number


async def test_whatever_is_done_on_a_connection_that_was_cut_the_database_is_away(notes: Database) -> None:
    async with notes.connection() as db:
        async with connect(notes.url) as other:
            await other.execute("SELECT pg_terminate_backend($1)", db.get_server_pid())
        for _ in range(2):
            with pytest.raises(DatabaseAway):
                await db.fetchval("SELECT 1")
        with pytest.raises(DatabaseAway):
            await db.execute("SELECT 1")
        with pytest.raises(DatabaseAway):
            db.transaction()
        with pytest.raises(DatabaseAway):
            await db.copy_records_to_table("notes", records=[(9,)])
    assert await use(notes) == 1


async def lose_a_savepoint(database: Database) -> None:
    async with database.transaction() as tx, tx.transaction():
        closed = asyncio.Event()
        tx.add_termination_listener(lambda _: closed.set())
        async with connect(database.url) as other:
            await other.execute("SELECT pg_terminate_backend($1)", tx.get_server_pid())
        await closed.wait()


async def test_a_savepoint_that_was_cut_cannot_be_released_because_the_database_is_away(notes: Database) -> None:
    with pytest.raises(DatabaseAway):
        await lose_a_savepoint(notes)


@pytest.fixture
async def changing(installation: Installation) -> AsyncIterator[Changing]:
    """With one table."""
    async with scratch_database(installation.server) as scratch, connect(scratch.owner_url) as owner:
        await owner.execute("CREATE TABLE labels (name varchar(5)); GRANT ALL ON labels TO sapa_app")
        await owner.execute("INSERT INTO labels VALUES ('new')")
        async with open_database(scratch.app_url, size=1, application="sapa test") as database:
            yield database, owner


async def test_a_statement_whose_table_was_changed_since_it_was_prepared_is_prepared_anew(
    changing: Changing,
) -> None:
    database, owner = changing
    async with database.connection() as db:
        assert await db.fetchval("SELECT name FROM labels") == "new"
        await owner.execute("ALTER TABLE labels ALTER name TYPE bigint USING 7")
        assert await db.fetchval("SELECT name FROM labels") == 7


async def test_in_a_transaction_such_a_statement_fails_and_the_transaction_is_retried(
    changing: Changing,
) -> None:
    database, owner = changing
    tries: list[Connection] = []

    async def read(tx: Connection) -> int:
        tries.append(tx)
        await tx.fetchval("SELECT 1")
        found: int = (await tx.fetch("SELECT name FROM labels"))[0][0]
        return found

    async with database.connection() as db:
        await db.fetch("SELECT name FROM labels")
    await owner.execute("ALTER TABLE labels ALTER name TYPE bigint USING 7")
    assert await database.transact(read) == 7
    assert len(tries) == 2


async def test_a_connection_runs_one_statement_at_a_time(notes: Database) -> None:
    async with notes.connection() as db:
        await db.fetchval("SELECT pg_sleep(0.2)")
        slow = asyncio.create_task(db.fetchval("SELECT pg_sleep(0.2)"))
        await asyncio.sleep(0.05)
        with pytest.raises(asyncpg.InterfaceError, match="another operation is in progress"):
            await db.fetchval("SELECT pg_sleep(0.2)")
        await slow
        assert await db.fetchval("SELECT 1") == 1
