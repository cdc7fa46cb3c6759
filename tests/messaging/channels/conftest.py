"""What the tests of channels work with."""

from collections.abc import AsyncIterator

import pytest

from sapa.context import Kit, build_kit
from sapa.db.pool import Database
from sapa.outbound.client import Client
from sapa.settings import WebhookSettings, read_settings
from tests.conftest import Installation
from tests.messaging.channels.peer import Peer, open_peer


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with open_peer() as opened:
        yield opened


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """May reach this machine, where the peers are."""
    made = Client(WebhookSettings(allow_insecure=True, allowed_networks=()))
    yield made
    await made.close()


@pytest.fixture
async def kit(installation: Installation, database: Database) -> AsyncIterator[Kit]:
    """This process as one more of the installation's."""
    made = build_kit(read_settings({"SAPA_SECRET_KEY": installation.server.secret_key}), database)
    yield made
    await made.close()
