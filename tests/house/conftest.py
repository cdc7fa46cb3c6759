from collections.abc import AsyncIterator

import pytest

from sapa.db.pool import Connection
from tests.conftest import Installation
from tests.db.scratch import Scratch, connect, migrated_database


@pytest.fixture(scope="module")
async def migrated(installation: Installation) -> AsyncIterator[Scratch]:
    async with migrated_database(installation.server) as database:
        yield database


@pytest.fixture
async def owner(migrated: Scratch) -> AsyncIterator[Connection]:
    """The schema's owner, inside a transaction that is undone: a test may plant what it likes."""
    async with connect(migrated.owner_url) as connection:
        undo = connection.transaction()
        await undo.start()
        yield connection
        await undo.rollback()
