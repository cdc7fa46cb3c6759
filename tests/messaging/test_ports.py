"""The ports of messaging, and their implementations."""

import pytest

from sapa.messaging import tickets
from sapa.messaging.connections import environment
from sapa.messaging.connections.accounts import STORED
from sapa.messaging.connections.environment import MessagingEnvironment
from sapa.messaging.tickets import Tickets
from sapa.ports import NotInstalled, Port
from sapa.sandbox.channels.environment import SandboxMessaging
from sapa.support import actions
from sapa.values.company import Company

LIVE = Company(1, "live", "ID", "IDR")
TEST = Company(2, "test", "ID", "IDR")


def test_support_keeps_the_tickets() -> None:
    port: Tickets = actions  # the type checker compares the two
    assert tickets.TICKETS.installed is port


def test_a_test_company_is_the_sandbox_s_and_a_live_one_is_not() -> None:
    sandbox: MessagingEnvironment = SandboxMessaging()  # the type checker compares the two
    assert isinstance(environment.get_environment(TEST), type(sandbox))
    assert environment.get_environment(LIVE) is environment.LIVE
    assert environment.get_environment(LIVE).accounts is STORED


def test_a_port_without_an_implementation_raises() -> None:
    port: Port[Tickets] = Port("tickets")
    with pytest.raises(NotInstalled, match="tickets"):
        _ = port.installed
