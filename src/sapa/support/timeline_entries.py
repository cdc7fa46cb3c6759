"""Timeline entries for tickets: one for each turn of the conversation, not for each message."""

from datetime import datetime

from sapa.db.pool import Tx
from sapa.support.rows import LockedTicket
from sapa.timeline import actions as timeline
from sapa.timeline.actions import NewTimelineEntry
from sapa.values.company import Company


async def record_timeline_entry(
    tx: Tx, company: Company, locked: LockedTicket, type: str, at: datetime | None = None
) -> None:
    """Only contacts that are customers have a timeline."""
    if locked.customer_id is not None:
        log = f"ticket {locked.id} on {locked.source}"
        entry = NewTimelineEntry(locked.customer_id, type, source="system", edit_log=log, at=at)
        await timeline.record(tx, company, entry)
