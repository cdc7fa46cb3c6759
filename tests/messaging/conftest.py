"""Clients of the messaging API, live and test, and peers that simulate channels."""

from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.outbound.client import Client
from sapa.outbound.http_client import HttpClient
from sapa.settings import WebhookSettings, read_settings
from sapa.startup import build_context
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_key
from tests.http.response_check import check_answer
from tests.messaging.channels.peer import Peer, open_peer


def connect_messaging(installation: Installation, key: str | None) -> httpx.AsyncClient:
    """A client whose responses are checked against the OpenAPI document."""
    return httpx.AsyncClient(
        base_url=f"{installation.address}/messaging/v1",
        headers={} if key is None else {"x-api-key": key},
        timeout=120,
        event_hooks={"response": [check_answer]},
        verify=TLS,
    )


@pytest.fixture
async def sandbox(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    """The messaging API with a test key and all scopes: all channels are simulated."""
    key = await make_key(database, company.test)
    async with connect_messaging(installation, key.raw) as client:
        yield client


@pytest.fixture
async def live(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    """The messaging API with a live key and all scopes."""
    key = await make_key(database, company.live)
    async with connect_messaging(installation, key.raw) as client:
        yield client


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with open_peer() as opened:
        yield opened


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """May call this machine, where the peers are."""
    created = HttpClient(WebhookSettings(allow_insecure=True, allowed_networks=()))
    yield created
    await created.close()


@pytest.fixture
async def context(installation: Installation, database: Database) -> AsyncIterator[AppContext]:
    """The context of one more process of the installation."""
    created = build_context(read_settings({"SAPA_SECRET_KEY": installation.server.secret_key}), database)
    yield created
    await created.close()
