"""Whether somebody may be sent free messages now: on most channels only for a while after they wrote."""

from datetime import datetime, timedelta

from sapa.db.pool import Connection
from sapa.messaging.channels.interface import Capabilities, Identity
from sapa.messaging.connections.accounts import Opened
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.contacts import queries as contact_queries
from sapa.messaging.contacts.actions import Thread
from sapa.messaging.messages.actions import list_values
from sapa.messaging.messages.queries import Moment
from sapa.messaging.messages.types import WindowClosed
from sapa.values.company import Company

CLOSED_IN_TEST = frozenset({"+12015550122", "sim_window_closed"})
"""Recipients whose window is closed in the test environment, whatever they write."""
QUOTA_IN_TEST = "sim_quota_10"
"""Who was sent as many messages as the channel takes, until they write."""


async def check_window(db: Connection, company: Company, opened: Opened, to: Identity, moment: Moment) -> None:
    """Raises WindowClosed. The windows of a test environment are open without anybody's having written, until its clock
    is moved past them."""
    capabilities = opened.channel.capabilities
    if capabilities.window is None:
        return
    thread = await contacts.find_thread(db, company, opened.connection.id, to)
    last = thread.last_inbound_at if thread else None
    if company.environment == "test":
        await _check_played(db, company, opened, to, moment, last)
    elif last is None:
        raise WindowClosed("The customer has not written over this channel yet; send a template.")
    if thread is not None and last is not None:
        _check_thread(capabilities, capabilities.window, thread, last, moment.now)


def _check_thread(capabilities: Capabilities, window: timedelta, thread: Thread, last: datetime, now: datetime) -> None:
    if now > last + window:
        raise WindowClosed(f"The customer last wrote at {last:%Y-%m-%dT%H:%M:%SZ}, too long ago; send a template.")
    most = capabilities.most_in_window
    if most is not None and thread.sent_in_window >= most:
        raise WindowClosed(contacts.QUOTA_USED.format(most=most))


async def _check_played(
    db: Connection, company: Company, opened: Opened, to: Identity, moment: Moment, last: datetime | None
) -> None:
    """What is different in a test environment: magic recipients, and those who have not written."""
    if to.value in CLOSED_IN_TEST:
        raise WindowClosed
    if last is not None:
        return
    capabilities = opened.channel.capabilities
    if to.value == QUOTA_IN_TEST and capabilities.most_in_window is not None:
        raise WindowClosed(contacts.QUOTA_USED.format(most=capabilities.most_in_window))
    ahead, window = moment.now - moment.stored_at, capabilities.window or timedelta()
    if ahead > window and await _has_moved_on(db, company, opened, to, ahead - window):
        raise WindowClosed("The clock was moved on, and the customer has not written since; send a template.")


async def _has_moved_on(db: Connection, company: Company, opened: Opened, to: Identity, least: timedelta) -> bool:
    """Whether they were written to when the clock was not even so far ahead."""
    source = opened.connection.source
    first = await contact_queries.find_least_ahead(db, company.id, source, list_values(to))
    return first is not None and first < least
