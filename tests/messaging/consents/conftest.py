"""The customer API of the test environment, beside the messaging API."""

from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.factories import Environments, make_key


@pytest.fixture
async def shop(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with connect(installation, (await make_key(database, company.test)).raw) as client:
        yield client
