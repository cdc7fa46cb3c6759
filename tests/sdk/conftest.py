from collections.abc import AsyncIterator, Iterator

import pytest

from sapa.db.pool import Database
from sapa_client import AsyncSapa, Sapa
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.sdk.proxy import FaultyProxy, run_proxy


@pytest.fixture
async def key(database: Database, company: Environments) -> str:
    """A test key that may do everything: in the test environment every channel and carrier is played."""
    return (await make_key(database, company.test)).raw


@pytest.fixture
async def sapa(installation: Installation, key: str) -> AsyncIterator[Sapa]:
    with Sapa(key, base_url=installation.address) as client:
        yield client


@pytest.fixture
async def async_sapa(installation: Installation, key: str) -> AsyncIterator[AsyncSapa]:
    async with AsyncSapa(key, base_url=installation.address) as client:
        yield client


@pytest.fixture
def proxy(installation: Installation) -> Iterator[FaultyProxy]:
    with run_proxy(installation.address) as running:
        yield running
