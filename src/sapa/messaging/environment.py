"""The differences between live and test companies, apart from their accounts."""

from datetime import datetime
from typing import Protocol

from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.messaging.channels.interface import Identity
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.messages.types import ClockReading
from sapa.ports import Port
from sapa.values.company import Company


class SimulatedWindows(Protocol):
    async def find_closed_reason(
        self,
        db: Connection,
        company: Company,
        connected: ConnectedChannel,
        to: Identity,
        clock: ClockReading,
        last_inbound_at: datetime | None,
    ) -> str | None:
        """Why the window is closed for a free message, apart from the window's age and quota; None if it is open."""


class MessagingEnvironment(Protocol):
    is_paced: bool
    """Whether messages wait for their turn at the channel's rate."""
    has_template_review: bool
    """Whether channels review templates; without a review each template is approved at once."""
    has_simulated_people: bool
    """Whether ids of simulators and addresses in reserved domains are valid recipients."""
    simulated_windows: SimulatedWindows | None
    """Which windows simulators keep closed; None where a window opens only when the contact writes."""

    async def locate_file(self, context: AppContext, url: str) -> str:
        """The address to fetch a file from that a channel names by `url`."""


class LiveMessaging:
    is_paced = True
    has_template_review = True
    has_simulated_people = False
    simulated_windows: SimulatedWindows | None = None

    async def locate_file(self, context: AppContext, url: str) -> str:
        return url


LIVE = LiveMessaging()
TEST: Port[MessagingEnvironment] = Port("the test environment")


def get_environment(company: Company) -> MessagingEnvironment:
    return TEST.installed if company.is_test else LIVE
