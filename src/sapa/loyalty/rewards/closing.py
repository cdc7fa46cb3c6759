"""How a redemption ends: always together with the reservation that holds its points, and as that does."""

from collections.abc import Sequence
from datetime import datetime

from sapa.company import Company
from sapa.db.pool import Tx
from sapa.events import emit_all
from sapa.loyalty.rewards import queries
from sapa.loyalty.rewards.types import RedemptionUpdated
from sapa.loyalty.types import Reservation, ReservationStatus
from sapa.timeline import actions as timeline
from sapa.timeline.actions import Happening
from sapa.timeline.types import Source

TYPES: dict[ReservationStatus, str] = {
    "committed": "redemption_committed",
    "released": "redemption_released",
    "expired": "redemption_expired",
}
"""What each ending is called on the timeline."""


async def close_with(
    tx: Tx, company: Company, closed: Sequence[Reservation], status: ReservationStatus, now: datetime
) -> None:
    """Closes the redemptions whose reservations were just closed, under the same wallet's lock."""
    ids = [reservation.redemption_id for reservation in closed if reservation.redemption_id is not None]
    if not ids:
        return
    source: Source = "system" if status == "expired" else "api"
    redemptions = await queries.close_redemptions(tx, company.id, ids, status, now)
    redemptions.sort(key=lambda redemption: redemption.created_at)
    told = [
        Happening(one.customer_id, TYPES[status], source, f"{one.reward_name}: reserved → {status}")
        for one in redemptions
    ]
    await timeline.record_all(tx, company, told)
    await emit_all(tx, company, [RedemptionUpdated(one) for one in redemptions])
