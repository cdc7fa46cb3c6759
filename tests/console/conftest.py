"""Fixtures of an installation that may deliver to this machine, and of an agent at its inbox."""

from collections.abc import AsyncIterator

import pytest

from sapa.db.pool import Database
from sapa.people.types import Role
from tests.conftest import Installation
from tests.console.people import make_person, open_browser
from tests.console.seats import Seat
from tests.factories import Environments, make_key
from tests.messaging.conftest import connect_messaging
from tests.support.ticket_steps import Desk
from tests.webhooks.conftest import client, seal, station  # noqa: F401 - fixtures


@pytest.fixture
async def desk(installation: Installation, database: Database, company: Environments) -> AsyncIterator[Desk]:
    async with connect_messaging(installation, (await make_key(database, company.test)).raw) as messaging:
        yield Desk(messaging)


@pytest.fixture
async def seat(installation: Installation, database: Database, company: Environments) -> AsyncIterator[Seat]:
    """A person with the role agent, who answers as Sari."""
    async with open_browser(installation, await make_person(database, company, Role.AGENT)) as browser:
        seat = Seat(browser)
        await seat.post("agent", name="Sari")
        yield seat
