"""How a redemption ends: always together with the reservation that holds its points, and as that does. One that failed
has a reservation that was released, or was committed and its points given back."""

from collections.abc import Sequence
from datetime import datetime

from sapa.db.pool import Tx
from sapa.events import emit_all
from sapa.loyalty.rewards import queries
from sapa.loyalty.rewards.types import RedemptionStatus, RedemptionUpdated
from sapa.loyalty.types import Reservation
from sapa.timeline import actions as timeline
from sapa.timeline.actions import Happening
from sapa.timeline.types import Source
from sapa.values.company import Company

TYPES: dict[RedemptionStatus, str] = {
    "committed": "redemption_committed",
    "released": "redemption_released",
    "expired": "redemption_expired",
    "failed": "redemption_failed",
}
"""What each ending is called on the timeline."""


async def close_with(
    tx: Tx, company: Company, closed: Sequence[Reservation], status: RedemptionStatus, now: datetime,
    was: RedemptionStatus = "reserved", reason: str | None = None,
) -> bool:  # fmt: skip
    """Closes the redemptions of these reservations under the same wallet's lock; whether there was one to close."""
    ids = [reservation.redemption_id for reservation in closed if reservation.redemption_id is not None]
    if not ids:
        return False
    source: Source = "system" if status == "expired" else "api"
    redemptions = await queries.close_redemptions(tx, company.id, ids, was, status, now)
    redemptions.sort(key=lambda redemption: redemption.created_at)
    told = [
        Happening(one.customer_id, TYPES[status], source, f"{one.reward_name}: {was} → {status}", reason)
        for one in redemptions
    ]
    await timeline.record_all(tx, company, told)
    await emit_all(tx, company, [RedemptionUpdated(one) for one in redemptions])
    return bool(redemptions)
