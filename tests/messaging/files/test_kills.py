"""A process that is killed between the upload and the send, or in the middle of either, leaves no orphan."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import pytest

from sapa.context import AppContext
from sapa.db.due import add_interval
from sapa.db.pool import Database, open_database
from sapa.messaging.files import jobs
from sapa.settings import read_settings
from sapa.startup import build_context
from tests.conftest import Installation
from tests.db.scratch import connect
from tests.factories import Environments, make_company, make_key
from tests.faults.traffic import api_processes
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.files.corpus import PDF
from tests.messaging.files.steps import count_rows, list_media, send_file, upload

NOTHING = {"files": 0, "file_parts": 0, "file_thumbnails": 0, "channel_files": 0}


@pytest.fixture
async def database(victim: Installation) -> AsyncIterator[Database]:
    async with open_database(victim.server.app_url, size=3, application="onlooker") as opened:
        yield opened


@pytest.fixture
async def company(database: Database) -> Environments:
    return await make_company(database)


@pytest.fixture
async def context(victim: Installation, database: Database) -> AsyncIterator[AppContext]:
    created = build_context(read_settings({"SAPA_SECRET_KEY": victim.server.secret_key or ""}), database)
    yield created
    await created.close()


@pytest.mark.long
async def test_nothing_is_left_of_an_upload_without_a_send(
    victim: Installation, database: Database, company: Environments, context: AppContext
) -> None:
    key = (await make_key(database, company.test)).raw
    has_parts = asyncio.Event()

    async def drip() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield bytes(1_048_576)
        await has_parts.wait()
        yield b"never"

    async with connect_messaging(victim, key) as client:
        used = await upload(client, PDF, "terkirim.pdf")
        sent = await send_file(client, used["id"])
        await upload(client, PDF, "tidak terkirim.pdf")
        half = asyncio.create_task(client.post("/attachments", content=drip()))

        async def is_half_stored() -> bool | None:
            return (await count_rows(database, company.test))["file_parts"] >= 4 or None

        await eventually(is_half_stored)
        for process in api_processes(victim):
            process.kill()
        has_parts.set()
        with suppress(httpx.TransportError):
            await half
        assert (await count_rows(database, company.test))["files"] == 3
        await let_a_day_pass(victim, company.test)
        while await jobs.purge_expired(context):
            pass
        assert await count_rows(database, company.test) == {**NOTHING, "files": 1, "file_parts": 1}
        (kept,) = await eventually(lambda: media_again(client, sent["messageId2"]))
        assert (kept["id"], kept["status"]) == (used["id"], "stored")
        # The last one goes with its message.
        async with connect(victim.server.owner_url) as owner:
            await owner.execute("DELETE FROM messages WHERE company_id = $1", company.test)
        await let_a_day_pass(victim, company.test)
        await jobs.check_use(context)
        while await jobs.purge_expired(context):
            pass
        assert await count_rows(database, company.test) == NOTHING


async def media_again(client: httpx.AsyncClient, message_id: str) -> list[dict[str, object]] | None:
    """None while the processes are restarted."""
    with suppress(httpx.TransportError):
        return await list_media(client, message_id)
    return None


async def let_a_day_pass(victim: Installation, company_id: int) -> None:
    async with connect(victim.server.owner_url) as owner:
        await owner.execute(
            f"""
            UPDATE files SET expires_at = {add_interval("expires_at", "interval '-1 day'")},
                             checked_at = {add_interval("checked_at", "interval '-25 hours'")}
             WHERE company_id = $1""",
            company_id,
        )
