"""Random earning, spending, redeeming and waiting, one by one and concurrently, compared with the rules in memory.

Faults that were planted one by one, each of which these tests caught by themselves:

- a wallet that is not locked; a key that is not looked up
- points spent in the order of earning, not of expiry
- a reservation that can be committed twice, with and without a balance that turns negative
- nothing settled; lots that never expire; reservations that expire an hour late
- held points that expire; points that return to an expired lot and do not expire
- a failed redemption that returns its points twice
- an order that earns the change of its target, not what is missing of it
"""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from sapa.db.pool import Database
from tests import depth
from tests.conftest import TLS, Installation
from tests.db.scratch import connect
from tests.factories import Environments, make_key
from tests.loyalty.ledger_rules import Ledger
from tests.loyalty.machine import Machine
from tests.loyalty.redemption_rules import Redeeming


class Everything(Ledger, Redeeming):
    """Reservations and redemptions of the same points."""


@pytest.fixture
async def key(database: Database, company: Environments) -> str:
    return (await make_key(database, company.test)).raw


@pytest.fixture
def client(installation: Installation, key: str) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=installation.customer_base, headers={"x-api-key": key}, timeout=120, verify=TLS
    ) as opened:
        yield opened


@pytest.mark.parametrize(
    ("machine", "examples"),
    [
        pytest.param(Ledger, 12, marks=pytest.mark.long),
        pytest.param(Redeeming, 10, marks=pytest.mark.long),
        (Everything, 8),
    ],
)
def test_the_ledger_behaves_like_its_rules(
    client: httpx.Client, installation: Installation, company: Environments, machine: type[Machine], examples: int
) -> None:
    def move(offset: timedelta) -> None:
        asyncio.run(set_offset(installation.server.owner_url, company.test, offset))

    over_http = type(machine.__name__, (machine,), {"api": client, "set_offset": staticmethod(move)})
    run_state_machine_as_test(
        over_http,
        settings=settings(
            max_examples=depth.examples(examples),
            stateful_step_count=40,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


async def set_offset(url: str, company_id: int, offset: timedelta) -> None:
    """As the database's owner, in either direction."""
    async with connect(url) as owner:
        await owner.execute("UPDATE companies SET clock_offset = $2 WHERE company_id = $1", company_id, offset)
