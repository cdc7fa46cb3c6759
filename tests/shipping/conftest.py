from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.factories import Environments, make_key


@pytest.fixture
async def sandbox(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    """The customer base with a test key: every carrier is played by its simulator."""
    key = await make_key(database, company.test)
    async with connect(installation, key.raw) as client:
        yield client
