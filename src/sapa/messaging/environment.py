"""What differs between live and test companies besides their accounts, decided once."""

from datetime import datetime
from typing import Protocol

from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.messaging.channels.interface import Identity
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.messages.types import ClockReading
from sapa.ports import Port
from sapa.values.company import Company


class MessagingEnvironment(Protocol):
    is_paced: bool
    """Whether messages wait for their turn, no faster than the channel takes them."""
    has_template_review: bool
    """Whether channels decide on templates; else each is approved at once."""
    has_simulated_people: bool
    """Whether simulators' ids and addresses of reserved domains name people."""

    async def find_closed_reason(
        self,
        db: Connection,
        company: Company,
        connected: ConnectedChannel,
        to: Identity,
        clock: ClockReading,
        last_inbound_at: datetime | None,
    ) -> str | None:
        """Why a free message may not be sent, besides the age and number of messages in the window; None if it may."""

    async def locate_file(self, context: AppContext, url: str) -> str:
        """Where a file that a channel names can be fetched."""


class LiveMessaging:
    is_paced = True
    has_template_review = True
    has_simulated_people = False

    async def find_closed_reason(
        self,
        db: Connection,
        company: Company,
        connected: ConnectedChannel,
        to: Identity,
        clock: ClockReading,
        last_inbound_at: datetime | None,
    ) -> str | None:
        if last_inbound_at is None:
            return "The customer has not written over this channel yet; send a template."
        return None

    async def locate_file(self, context: AppContext, url: str) -> str:
        return url


LIVE = LiveMessaging()
TEST: Port[MessagingEnvironment] = Port("the test environment")


def get_environment(company: Company) -> MessagingEnvironment:
    return TEST.installed if company.is_test else LIVE
