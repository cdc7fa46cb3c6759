"""Callers of the messaging base, live and in the test environment."""

from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_key
from tests.http.answer_check import check_answer


def connect_messaging(installation: Installation, key: str | None) -> httpx.AsyncClient:
    """A caller of the messaging base, each of whose answers is held against the document."""
    return httpx.AsyncClient(
        base_url=f"{installation.address}/messaging/v1",
        headers={} if key is None else {"x-api-key": key},
        timeout=60,
        event_hooks={"response": [check_answer]},
        verify=TLS,
    )


@pytest.fixture
async def sandbox(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    """The messaging base with a test key that may do everything: all channels are played."""
    key = await make_key(database, company.test)
    async with connect_messaging(installation, key.raw) as client:
        yield client


@pytest.fixture
async def live(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    """The messaging base with a live key that may do everything."""
    key = await make_key(database, company.live)
    async with connect_messaging(installation, key.raw) as client:
        yield client
