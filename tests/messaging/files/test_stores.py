"""Files in PostgreSQL and in a bucket: the same content, streamed in parts, and nothing left of what was deleted."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from sapa.access.actions import get_company
from sapa.context import AppContext
from sapa.db.pool import Database, open_database
from sapa.http.uploads import FileStream
from sapa.messaging.files import actions, jobs
from sapa.messaging.files.stores import BucketStore, DatabaseStore
from sapa.messaging.files.types import FILE_ID, FileUnavailable, StoredFile
from sapa.messaging.files.uploads import UploadRules, upload
from sapa.settings import read_settings
from sapa.startup import build_context
from sapa.values.company import Company
from tests.cli.command import sapa
from tests.conftest import Installation
from tests.db.scratch import migrated_database
from tests.factories import Environments, make_company
from tests.http.wire import eventually
from tests.messaging.files import victim_upload
from tests.messaging.files.object_server import list_objects, run_object_server
from tests.messaging.files.steps import count_rows, drip

MIB = 1_048_576
NOTHING = {"files": 0, "file_parts": 0, "file_thumbnails": 0, "channel_files": 0}


@pytest.fixture(scope="module")
def bucket_url() -> Iterator[str]:
    with run_object_server() as url:
        yield url


@pytest.fixture(params=["database", "bucket"])
def variables(request: pytest.FixtureRequest, installation: Installation) -> dict[str, str]:
    found = {"SAPA_SECRET_KEY": installation.server.secret_key or ""}
    if request.param == "bucket":
        found["SAPA_FILES_URL"] = request.getfixturevalue("bucket_url")
    return found


@pytest.fixture
async def files(variables: dict[str, str], database: Database) -> AsyncIterator[AppContext]:
    """The context of a process that stores files in one place or the other."""
    created = build_context(read_settings(variables), database)
    yield created
    await created.close()


@pytest.fixture
async def owner(database: Database, company: Environments) -> Company:
    async with database.connection() as db:
        return await get_company(db, company.test)


async def store(
    context: AppContext, owner: Company, chunks: AsyncIterator[bytes], rules: UploadRules = UploadRules()
) -> StoredFile:
    incoming = FileStream(chunks, 25 * MIB)
    return await upload(context, owner, incoming, context.database.transact, rules, "nota.bin")


async def expire_all(database: Database, owner: Company) -> None:
    """As if a day had passed."""
    async with database.connection() as db:
        await db.execute("UPDATE files SET expires_at = now() WHERE company_id = $1 AND expires_at > now()", owner.id)


async def purge_all(context: AppContext) -> None:
    while await jobs.purge_expired(context):
        pass


async def test_a_file_is_stored_in_parts_and_deleted_without_a_trace(
    files: AppContext, database: Database, owner: Company, request: pytest.FixtureRequest
) -> None:
    piece = bytes(range(256)) * 1000
    stored = await store(files, owner, drip(36, piece))
    assert stored.size == 36 * len(piece)
    part_bytes = (BucketStore if files.bucket else DatabaseStore).part_bytes
    assert stored.parts == -(-stored.size // part_bytes)
    parts = [part async for part in actions.open_content(files, owner.id, stored)]
    assert b"".join(parts) == piece * 36
    assert max(map(len, parts)) <= part_bytes
    rows = await count_rows(database, owner.id)
    assert rows == {**NOTHING, "files": 1, "file_parts": 0 if files.bucket else stored.parts}
    if files.bucket:
        bucket_url = request.getfixturevalue("bucket_url")
        assert list_objects(bucket_url) == [f"shop/{owner.id}/{stored.id}/{part:05}" for part in range(stored.parts)]
    await purge_all(files)
    assert (await count_rows(database, owner.id))["files"] == 1
    await expire_all(database, owner)
    await purge_all(files)
    assert await count_rows(database, owner.id) == NOTHING
    if files.bucket:
        assert list_objects(request.getfixturevalue("bucket_url")) == []


async def test_an_upload_that_breaks_is_purged_at_once(
    files: AppContext, database: Database, owner: Company, request: pytest.FixtureRequest
) -> None:
    async def break_off() -> AsyncIterator[bytes]:
        for _ in range(9):
            yield bytes(MIB)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await store(files, owner, break_off())
    await purge_all(files)
    assert await count_rows(database, owner.id) == NOTHING
    if files.bucket:
        assert list_objects(request.getfixturevalue("bucket_url")) == []


async def test_a_process_that_is_killed_while_it_uploads_leaves_nothing(
    files: AppContext, variables: dict[str, str], database: Database, owner: Company, request: pytest.FixtureRequest
) -> None:
    command = [sys.executable, "-m", victim_upload.__name__, database.url, str(owner.id)]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, env=os.environ | variables)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"in the middle\n"
    process.kill()
    await process.wait()
    rows = await count_rows(database, owner.id)
    assert rows["files"] == 1
    assert bool(rows["file_parts"]) != bool(files.bucket)
    if files.bucket:
        assert list_objects(request.getfixturevalue("bucket_url"))
    await purge_all(files)
    assert (await count_rows(database, owner.id))["files"] == 1  # it might still be written
    await expire_all(database, owner)
    await purge_all(files)
    assert await count_rows(database, owner.id) == NOTHING
    if files.bucket:
        assert list_objects(request.getfixturevalue("bucket_url")) == []


async def test_files_of_the_database_move_to_a_bucket(bucket_url: str, installation: Installation) -> None:
    """An operator who sets SAPA_FILES_URL later, and attachments of mail, which are stored with their mail."""
    variables = {"SAPA_SECRET_KEY": installation.server.secret_key or "", "SAPA_FILES_URL": bucket_url}
    content, id, stopping = bytes(range(256)) * 20_000, FILE_ID.new(), asyncio.Event()
    async with migrated_database(installation.server) as scratch, open_database(scratch.app_url, size=4) as quiet:
        context = build_context(read_settings(variables), quiet)
        async with quiet.connection() as db:
            owner = await get_company(db, (await make_company(quiet)).test)
        async with quiet.transaction() as tx:
            stored = await actions.store(tx, owner.id, id, "nota.bin", content)
        mover = asyncio.create_task(jobs.move_to_bucket(context, stopping))

        async def find_moved() -> StoredFile | None:
            found = await find(quiet, owner, id)
            return found if found.storage == "bucket" else None

        moved = await eventually(find_moved)
        stopping.set()
        await mover
        assert (moved.size, moved.parts) == (stored.size, 2)
        assert (await count_rows(quiet, owner.id))["file_parts"] == 0
        assert await actions.read_content(context, owner.id, moved) == content
        await expire_all(quiet, owner)
        await purge_all(context)
        assert list_objects(bucket_url) == []
        await context.close()


async def find(database: Database, owner: Company, id: str) -> StoredFile:
    async with database.connection() as db:
        found = await actions.find_file(db, owner.id, id)
    assert found is not None
    return found


async def test_a_bucket_that_is_away_is_a_503_and_deletes_nothing(
    installation: Installation, database: Database, owner: Company
) -> None:
    variables = {
        "SAPA_SECRET_KEY": installation.server.secret_key or "",
        "SAPA_FILES_URL": "http://key:secret@127.0.0.1:1/files",
    }
    context = build_context(read_settings(variables), database)
    with pytest.raises(FileUnavailable):
        await store(context, owner, drip(1, b"kopi"))
    await purge_all(context)
    assert (await count_rows(database, owner.id))["files"] == 1
    await context.close()


@pytest.mark.long
def test_the_doctor_tries_the_bucket(bucket_url: str, installation: Installation) -> None:
    def find(url: str) -> dict[str, Any]:
        outcome = sapa(installation.data, "doctor", "--json", SAPA_FILES_URL=url)
        (found,) = [finding for finding in json.loads(outcome.out) if finding["what"] == "files"]
        checked: dict[str, Any] = found
        return checked

    assert find(bucket_url)["well"]
    assert list_objects(bucket_url) == []
    away = find("http://key:hush@127.0.0.1:1/files")
    assert (away["well"], "SAPA_FILES_URL" in away["mend"], "hush" in str(away)) == (False, True, False)
