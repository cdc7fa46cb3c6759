"""The messages of a ticket, as those who look after it read them."""

from sapa.db.pool import Connection
from sapa.db.sql import sql
from sapa.http.errors import Invalid
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.messages.queries import COLUMNS
from sapa.messaging.messages.types import Message, Source, Window
from sapa.values.company import Company

# In the order in which they were stored, which their ids tell: channels give the time in whole seconds, and by that
# an answer would come before its question.
NEWEST = sql(
    f"""
    SELECT {COLUMNS}
      FROM messages
     WHERE company_id = $1 AND ticket_id = $2 AND ($4::text IS NULL OR id < $4)
     ORDER BY id DESC
     LIMIT $3""",
    row=Message,
)

IS_IN = sql("SELECT EXISTS (SELECT FROM messages WHERE company_id = $1 AND ticket_id = $2 AND id = $3)")

FIND_WINDOW = sql(
    """
    SELECT last_inbound_at + make_interval(secs => $4) AS closes_at
      FROM message_threads
     WHERE company_id = $1 AND connection_id = $2 AND contact_id = $3 AND last_inbound_at IS NOT NULL""",
    row=Window,
)


async def list_messages(
    db: Connection, company: Company, ticket_id: str, limit: int, before: str | None
) -> tuple[list[Message], str | None]:
    """The newest ones, or those before another, in the order in which they were written; and before which one there
    are more."""
    if before is not None and not await IS_IN.value(db, company.id, ticket_id, before):
        raise Invalid.field("before", "must be the `earlier` of an answer for this ticket")
    found = await NEWEST.all(db, company.id, ticket_id, limit + 1, before)
    shown = found[:limit][::-1]
    return shown, shown[0].message_id2 if len(found) > limit else None


async def find_window(
    db: Connection, company: Company, source: Source, connection_id: str, contact_id: str
) -> Window | None:
    """For how long the contact may be sent free messages; None where that is always so."""
    lasts = CHANNELS[source].capabilities.window
    if lasts is None:
        return None
    return await FIND_WINDOW.find(db, company.id, connection_id, contact_id, lasts.total_seconds())
