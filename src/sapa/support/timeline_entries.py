"""Timeline entries for tickets: one for each turn of the conversation, not for each message."""

from sapa.db.pool import Tx
from sapa.support.rows import LockedTicket
from sapa.timeline import actions as timeline
from sapa.timeline.actions import NewTimelineEntry
from sapa.values.company import Company


async def record_timeline_entry(tx: Tx, company: Company, locked: LockedTicket, type: str) -> None:
    """Only contacts that are customers have a timeline."""
    if locked.customer_id is not None:
        log = f"ticket {locked.id} on {locked.source}"
        await timeline.record(tx, company, NewTimelineEntry(locked.customer_id, type, source="system", edit_log=log))
