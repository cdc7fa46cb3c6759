"""A chat, its pages, and the shop's API client."""

from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import TLS, Installation
from tests.factories import Environments
from tests.messaging.shop_site import Browser, Chat, build_chat


@pytest.fixture
def chat(installation: Installation, database: Database, company: Environments) -> Chat:
    return build_chat(installation, database, company.test)


@pytest.fixture
async def client(installation: Installation) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=installation.address, timeout=120, verify=TLS) as opened:
        yield opened


@pytest.fixture
def page(client: httpx.AsyncClient, chat: Chat) -> Browser:
    return Browser(client, chat)


@pytest.fixture
def shop(sandbox: httpx.AsyncClient) -> httpx.AsyncClient:
    """The messaging API with a test key."""
    return sandbox
