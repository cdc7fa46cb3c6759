"""The ports of messaging, and their implementations."""

import pytest

from sapa.messaging import environment, tickets
from sapa.messaging.connections import accounts
from sapa.messaging.connections.accounts import Accounts
from sapa.messaging.environment import MessagingEnvironment
from sapa.messaging.tickets import Tickets
from sapa.ports import NotInstalled, Port
from sapa.sandbox.channels.environment import SandboxMessaging, SimulatedAccounts
from sapa.support import actions
from sapa.values.company import Company

LIVE = Company(1, "live", "ID", "IDR")
TEST = Company(2, "test", "ID", "IDR")


def test_support_keeps_the_tickets() -> None:
    port: Tickets = actions  # the type checker compares the two
    assert tickets.TICKETS.installed is port


def test_a_test_company_is_the_sandbox_s_and_a_live_one_is_not() -> None:
    simulated: Accounts = SimulatedAccounts()
    sandbox: MessagingEnvironment = SandboxMessaging()
    assert isinstance(accounts.get_accounts(TEST), type(simulated))
    assert isinstance(environment.get_environment(TEST), type(sandbox))
    assert accounts.get_accounts(LIVE) is accounts.STORED
    assert environment.get_environment(LIVE) is environment.LIVE


def test_a_port_without_an_implementation_raises() -> None:
    port: Port[Tickets] = Port("tickets")
    with pytest.raises(NotInstalled, match="tickets"):
        _ = port.installed
