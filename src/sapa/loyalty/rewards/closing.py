"""Closes a redemption together with the reservation that holds its points. A failed redemption has a reservation that
was released, or was committed and its points returned."""

from sapa.db.pool import Tx
from sapa.events import emit_all
from sapa.loyalty.rewards import queries
from sapa.loyalty.rewards.types import RedemptionStatus, RedemptionUpdated
from sapa.loyalty.types import ReservationClosed, ReservationsClosed
from sapa.timeline import actions as timeline
from sapa.timeline.actions import NewTimelineEntry
from sapa.timeline.types import Source
from sapa.values.company import Company

TYPES: dict[RedemptionStatus, str] = {
    "committed": "redemption_committed",
    "released": "redemption_released",
    "expired": "redemption_expired",
    "failed": "redemption_failed",
}
"""The timeline's entry type of each final status."""


async def close_redemptions(tx: Tx, company: Company, closed: ReservationsClosed) -> None:
    """Closes the redemptions whose points these reservations held; runs under the wallet's lock."""
    ids = [reservation.redemption_id for reservation in closed.reservations if reservation.redemption_id is not None]
    if not ids:
        return
    redemptions = await queries.close_redemptions(tx, company.id, ids, closed.was, closed.status, closed.now)
    if not redemptions:
        if closed.status == "failed":
            raise ReservationClosed
        return
    redemptions.sort(key=lambda redemption: redemption.created_at)
    source: Source = "system" if closed.status == "expired" else "api"
    change = f"{closed.was} → {closed.status}"
    entries = [
        NewTimelineEntry(one.customer_id, TYPES[closed.status], source, f"{one.reward_name}: {change}", closed.reason)
        for one in redemptions
    ]
    await timeline.record_all(tx, company, entries)
    await emit_all(tx, company, [RedemptionUpdated(one) for one in redemptions])
