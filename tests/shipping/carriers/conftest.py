"""What the tests of carriers work with: this process as one more of the installation's."""

from collections.abc import AsyncIterator

import pytest

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.domains import build_process_kit
from sapa.settings import read_settings
from sapa.values.company import Company
from tests.conftest import Installation
from tests.factories import Environments


@pytest.fixture(scope="session")
async def kit(installation: Installation, database: Database) -> AsyncIterator[AppContext]:
    server = installation.server
    settings = read_settings({"SAPA_DATABASE_URL": server.app_url, "SAPA_SECRET_KEY": server.secret_key})
    made = build_process_kit(settings, database)
    yield made
    await made.close()


@pytest.fixture
def tester(company: Environments) -> Company:
    """The company's test environment."""
    return Company(company.test, "test", "ID", "IDR")


@pytest.fixture
def owner(company: Environments) -> Company:
    """The company's live environment."""
    return Company(company.live, "live", "ID", "IDR")
