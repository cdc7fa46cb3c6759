"""Fixes what a message costs: once, when it is known to have arrived and its channel has said how it charges.

Channels report both late, twice and in any order. A rate that is imported later changes nothing that is fixed.
"""

from datetime import datetime

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from sapa.db.pool import Tx
from sapa.messaging.channels.interface import ReportedPricing
from sapa.messaging.costs import actions as costs
from sapa.messaging.costs.types import ChargedMessage, MessagePricing
from sapa.messaging.messages import queries
from sapa.messaging.messages.types import LockedMessage
from sapa.values.company import Company
from sapa.values.json import encode
from sapa.values.money import shorten


async def price(
    tx: Tx, company: Company, locked: LockedMessage, reported: ReportedPricing | None, delivered_at: datetime | None
) -> bytes | Raw | None:
    """The message's pricing after a report. What fails, or is not known to have arrived, has no cost."""
    is_fixed = locked.pricing is not None and locked.delivered_at is not None
    pricing = None if is_fixed else _choose(locked.pricing, reported)
    if pricing is None:
        return locked.pricing
    if delivered_at is not None:
        message = ChargedMessage(locked.id, locked.source, locked.template_id, delivered_at)
        pricing = await costs.charge(tx, company, message, pricing)
    encoded = encode(pricing)
    return locked.pricing if locked.pricing is not None and bytes(locked.pricing) == encoded else encoded


def _choose(stored: Raw | None, reported: ReportedPricing | None) -> MessagePricing | None:
    """The latest report's."""
    if reported is not None:
        return MessagePricing(reported.category, reported.type, reported.is_billable, reported.country)
    return None if stored is None else msgspec.json.decode(stored, type=MessagePricing)


async def backfill(tx: Tx, company: Company, after: str, limit: int) -> tuple[int, str | None]:
    """Prices the next messages that had no rate when they arrived, by the rates of their days. The number of those that
    have a cost now, and where to continue."""
    priced = 0
    found = await costs.price_missing(tx, company, after, limit)
    for cost, rate in found:
        if rate is not None and (stored := await queries.find_locked_pricing(tx, company.id, cost.message_id)):
            pricing = msgspec.json.decode(stored, type=MessagePricing)
            fixed = replace(pricing, amount=shorten(rate.price), currency=rate.currency)
            await queries.set_pricing(tx, company.id, cost.message_id, encode(fixed))
            priced += 1
    return priced, found[-1][0].message_id if len(found) == limit else None
