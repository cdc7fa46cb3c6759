"""An installation that may deliver to this machine, and a station to deliver to."""

from collections.abc import AsyncIterator, Iterator

import pytest

from sapa.db.pool import Database, open_database
from sapa.values.sealing import Vault
from tests.conftest import Installation, start_installation, stop_installation
from tests.factories import Environments, make_company
from tests.webhooks.station import Station, open_station


@pytest.fixture(scope="session")
def post_office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    running = start_installation(tmp_path_factory.mktemp("post") / "data", SAPA_WEBHOOK_ALLOW_INSECURE="1")
    yield running
    assert stop_installation(running) == 0
    assert "stumbled" not in running.log.read_text()


@pytest.fixture(scope="session")
async def post(post_office: Installation) -> AsyncIterator[Database]:
    """The database of the post office."""
    async with open_database(post_office.server.app_url, size=10) as opened:
        yield opened


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
