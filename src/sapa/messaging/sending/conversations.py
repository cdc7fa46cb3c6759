"""What a send reads before it checks anything, with one statement."""

import time

from sapa.access.types import CompanyClock
from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.messaging.channels.interface import Identity, Source
from sapa.messaging.connections.accounts import ConnectedChannel, open_account
from sapa.messaging.connections.environment import get_environment
from sapa.messaging.contacts.types import Thread
from sapa.messaging.sending import queries
from sapa.messaging.sending.queries import StoredConversation
from sapa.messaging.sending.types import Conversation
from sapa.values.company import Company


async def find_conversation(
    context: AppContext, db: Connection, company: Company, source: Source, to: Identity | None
) -> Conversation | None:
    """None if the channel is not connected."""
    unstored = await get_environment(company).accounts.find_unstored(context, company, source)
    stored = await queries.get_conversation(db, company.id, source, unstored.connection.id if unstored else None, to)
    connected = unstored or _open_account(context, company, source, stored)
    if connected is None:
        return None
    return Conversation(
        CompanyClock(stored.now, stored.real),
        time.monotonic(),
        connected,
        _build_thread(stored),
        stored.customer_id,
        throughput=stored.throughput,
    )


def _build_thread(stored: StoredConversation) -> Thread | None:
    if stored.contact_id is None:
        return None
    return Thread(
        stored.contact_id,
        stored.last_inbound_at,
        stored.sent_in_window or 0,
        stored.last_message_id,
        stored.last_inbound_id,
    )


def _open_account(
    context: AppContext, company: Company, source: Source, stored: StoredConversation
) -> ConnectedChannel | None:
    if stored.connection_id is None or stored.account is None or stored.credentials is None:
        return None
    account, credentials = bytes(stored.account), stored.credentials
    return open_account(context, company, source, stored.connection_id, account, credentials, stored.last_error)
