"""Reads what the console's inbox offers. It has no public API: each list has a call of its own."""

from sapa.db.pool import Connection
from sapa.support.inbox import queries
from sapa.support.inbox.types import InboxChoices


async def get_choices(db: Connection, company_id: int, user_id: int, *, with_replies: bool) -> InboxChoices:
    """The views are those of the person and of everybody. Macros and saved replies only `with_replies`."""
    return await queries.get_choices(db, company_id, user_id, with_replies=with_replies)
