"""Callers of the messaging base, live and in the test environment, and peers that play channels."""

from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.context import AppContext, build_context
from sapa.db.pool import Database
from sapa.outbound.client import Client
from sapa.settings import WebhookSettings, read_settings
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_key
from tests.http.response_check import check_answer
from tests.messaging.channels.peer import Peer, open_peer


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
async def kit(installation: Installation, database: Database) -> AsyncIterator[AppContext]:
    """This process as one more of the installation's."""
    made = build_context(read_settings({"SAPA_SECRET_KEY": installation.server.secret_key}), database)
    yield made
    await made.close()
