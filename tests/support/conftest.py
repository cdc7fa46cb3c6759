from collections.abc import AsyncIterator

import pytest

from sapa.db.pool import Database
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.messaging.conftest import connect_messaging
from tests.support.ticket_steps import Desk


@pytest.fixture
async def desk(installation: Installation, database: Database, company: Environments) -> AsyncIterator[Desk]:
    key = await make_key(database, company.test)
    async with connect_messaging(installation, key.raw) as client:
        yield Desk(client)
