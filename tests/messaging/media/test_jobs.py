"""Slow files do not block others."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from sapa.access.actions import get_company
from sapa.context import AppContext
from sapa.db.pool import Database, open_database
from sapa.messaging.channels.interface import ChannelAccount, InboundMedia, Source
from sapa.messaging.connections import accounts
from sapa.messaging.connections import actions as connecting
from sapa.messaging.media import jobs as media
from sapa.messaging.media.actions import build_received, record_received
from sapa.settings import read_settings
from sapa.startup import build_context
from tests.conftest import Installation
from tests.db.scratch import migrated_database
from tests.factories import make_company
from tests.http.wire import eventually
from tests.messaging.channels.peer import open_peer

PAGE = {"page_id": "5566", "access_token": "token", "app_secret": "secret"}


@pytest.fixture
async def context(installation: Installation) -> AsyncIterator[AppContext]:
    """A worker's context, on a database without other workers; it may call this machine."""
    variables = {"SAPA_SECRET_KEY": installation.server.secret_key, "SAPA_WEBHOOK_ALLOW_INSECURE": "1"}
    async with migrated_database(installation.server) as scratch, open_database(scratch.app_url, size=4) as quiet:
        created = build_context(read_settings(variables), quiet)
        yield created
        await created.close()


async def connect_page(context: AppContext) -> ChannelAccount:
    created = await make_company(context.database)
    async with context.database.transaction() as tx:
        company = await get_company(tx, created.live)
        draft = await connecting.prepare(context, tx, company, Source.SOCIAL_NETWORK, PAGE)
        await connecting.connect(context, tx, company, draft)
        opened = await accounts.STORED.find_by_source(context, tx, company, Source.SOCIAL_NETWORK)
    assert opened is not None
    return opened.connection


async def bring(context: AppContext, connection: ChannelAccount, *urls: str) -> str:
    """Stores a message with these files; returns its id."""
    id = str(uuid4())
    received = [InboundMedia("image", url=url) for url in urls]
    async with context.database.transaction() as tx:
        await record_received(tx, connection, build_received(connection, id, received), received)
    return id


async def list_statuses(database: Database, id: str) -> list[str]:
    async with database.connection() as db:
        rows = await db.fetch("SELECT status FROM message_media WHERE message_id = $1 ORDER BY number", id)
    return [row[0] for row in rows]


async def test_slow_files_do_not_block_other_companies(context: AppContext) -> None:
    slow_page, quick_page, stopping = await connect_page(context), await connect_page(context), asyncio.Event()
    async with open_peer() as slow, open_peer() as quick:
        slow.answers, quick.answers = [30.0], [(200, b"GIF89a")]
        hanging = await bring(context, slow_page, *(f"{slow.address}/{number}" for number in range(8)))
        fetched = await bring(context, quick_page, *(f"{quick.address}/{number}" for number in range(3)))
        service = asyncio.create_task(media.fetch_waiting(context, stopping))

        async def is_there() -> bool | None:
            return await list_statuses(context.database, fetched) == ["stored"] * 3 or None

        async def has_asked() -> bool | None:
            return len(slow.requests) >= media.MAX_PER_COMPANY or None

        await eventually(is_there)
        await eventually(has_asked)
        assert len(slow.requests) == media.MAX_PER_COMPANY
        assert await list_statuses(context.database, hanging) == ["waiting"] * 8
        stopping.set()
        await service
