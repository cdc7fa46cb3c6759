from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.messaging.conftest import connect_messaging


@pytest.fixture
async def sandbox(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    """The messaging API with a test key and all scopes."""
    key = await make_key(database, company.test)
    async with connect_messaging(installation, key.raw) as client:
        yield client
