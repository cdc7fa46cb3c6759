"""What differs for messaging between a live company and a test environment, decided once in `get_environment`."""

from datetime import datetime
from typing import Protocol

from sapa.access.types import CompanyClock
from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.messaging.channels.interface import Identity
from sapa.messaging.connections.accounts import STORED, Accounts, ConnectedChannel
from sapa.ports import Port
from sapa.values.company import Company


class MessagingEnvironment(Protocol):
    """How a company reaches channels and people."""

    @property
    def accounts(self) -> Accounts:
        """The company's accounts with channels."""

    @property
    def is_paced(self) -> bool:
        """Whether messages wait for their turn at the channel's rate."""

    def accepts_recipient_id(self, id: str) -> bool:
        """Whether an id that does not have the form of the channel's ids is a valid recipient."""

    async def find_closed_reason(
        self,
        db: Connection,
        connected: ConnectedChannel,
        to: Identity,
        clock: CompanyClock,
        last_inbound_at: datetime | None,
    ) -> str | None:
        """Why a free-form message is refused, apart from the window's age and quota; None if it is not."""

    async def locate_file(self, context: AppContext, url: str) -> str:
        """The address to fetch a file from that a channel names by `url`."""


class LiveMessaging:
    accounts: Accounts = STORED
    is_paced = True

    def accepts_recipient_id(self, id: str) -> bool:
        return False

    async def find_closed_reason(
        self,
        db: Connection,
        connected: ConnectedChannel,
        to: Identity,
        clock: CompanyClock,
        last_inbound_at: datetime | None,
    ) -> str | None:
        if last_inbound_at is None:
            return "The customer has not written over this channel yet. Send a template."
        return None

    async def locate_file(self, context: AppContext, url: str) -> str:
        return url


LIVE = LiveMessaging()
TEST: Port[MessagingEnvironment] = Port("messaging in test environments")


def get_environment(company: Company) -> MessagingEnvironment:
    return TEST.installed if company.is_test else LIVE


async def find_by_token(context: AppContext, db: Connection, token: str) -> ConnectedChannel | None:
    """The account, live or test, whose callback address ends with this token."""
    accounts = TEST.installed.accounts
    return await accounts.find_by_token(context, db, token) or await STORED.find_by_token(context, db, token)
