"""Fixtures of the shipping tests."""

from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.domains import build_process_context
from sapa.settings import read_settings
from sapa.values.company import Company
from tests.conftest import Installation, connect
from tests.factories import Environments, make_key


@pytest.fixture
async def sandbox(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    """The customer base with a test key: every carrier is simulated."""
    key = await make_key(database, company.test)
    async with connect(installation, key.raw) as client:
        yield client


@pytest.fixture(scope="session")
async def context(installation: Installation, database: Database) -> AsyncIterator[AppContext]:
    """This process as another process of the installation."""
    server = installation.server
    settings = read_settings({"SAPA_DATABASE_URL": server.app_url, "SAPA_SECRET_KEY": server.secret_key})
    created = build_process_context(settings, database)
    yield created
    await created.close()


@pytest.fixture
def tester(company: Environments) -> Company:
    """The company's test environment."""
    return Company(company.test, "test", "ID", "IDR")


@pytest.fixture
def owner(company: Environments) -> Company:
    """The company's live environment."""
    return Company(company.live, "live", "ID", "IDR")
