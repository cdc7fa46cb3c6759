"""A company of the installation that may deliver to this machine, and a station to deliver to."""

from collections.abc import AsyncIterator

import pytest

from sapa.db.pool import Database
from sapa.values.sealing import Vault
from tests.conftest import Installation
from tests.factories import Environments, make_company
from tests.webhooks.station import Station, open_station


@pytest.fixture
def seal(post_office: Installation) -> Vault:
    return Vault(post_office.server.secret_key)


@pytest.fixture
async def client(post: Database) -> Environments:
    """A fresh company at the post office."""
    return await make_company(post)


@pytest.fixture
async def station() -> AsyncIterator[Station]:
    async with open_station() as opened:
        yield opened
