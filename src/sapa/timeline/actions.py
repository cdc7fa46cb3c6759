"""How the timeline grows: every domain writes to it in its own transaction."""

from collections.abc import Sequence

from msgspec import Struct

from sapa.db.pool import Tx
from sapa.timeline import queries
from sapa.timeline.types import Source
from sapa.values.company import Company


class NewTimelineEntry(Struct, frozen=True):
    """Something to be told on a customer's timeline."""

    customer_id: str
    type: str
    source: Source = "api"
    edit_log: str | None = None
    notes: str | None = None


async def record(tx: Tx, company: Company, happening: NewTimelineEntry) -> None:
    await record_all(tx, company, [happening])


async def record_all(tx: Tx, company: Company, happenings: Sequence[NewTimelineEntry]) -> None:
    rows = [(one.customer_id, one.type, one.source, one.edit_log, one.notes) for one in happenings]
    await queries.insert_entries(tx, company.id, rows)


async def purge_customer(tx: Tx, company: Company, customer_id: str) -> None:
    """With the customer goes what is told of them."""
    await queries.delete_entries(tx, company.id, customer_id)
