"""What a customer's timeline says of tickets: one entry for each turn of the conversation, not for each message."""

from sapa.db.pool import Tx
from sapa.support.types import LockedTicket
from sapa.timeline import actions as timeline
from sapa.timeline.actions import NewTimelineEntry
from sapa.values.company import Company


async def tell(tx: Tx, company: Company, held: LockedTicket, type: str) -> None:
    """A contact that is no customer has no timeline."""
    if held.customer_id is not None:
        log = f"ticket {held.id} on {held.source}"
        await timeline.record(tx, company, NewTimelineEntry(held.customer_id, type, source="system", edit_log=log))
