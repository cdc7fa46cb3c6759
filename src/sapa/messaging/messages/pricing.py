"""Fixes what a message costs: once, when it is known to have arrived and its channel has said how it charges.

Channels report both late, twice and in any order. A rate that is imported later changes nothing that is fixed.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec import Raw, Struct
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


class PricedReport(Struct, frozen=True):
    """A message with what its channel reported, and when it arrived."""

    locked: LockedMessage
    reported: ReportedPricing | None
    delivered_at: datetime | None


async def price(tx: Tx, company: Company, reports: Sequence[PricedReport]) -> list[bytes | Raw | None]:
    """The pricing of each message after its report. What fails, or is not known to have arrived, has no cost."""
    chosen = [_choose(report) for report in reports]
    charged = {
        place: (ChargedMessage(locked.id, locked.source, locked.template_id, delivered_at), pricing)
        for place, pricing in enumerate(chosen)
        if pricing is not None
        and (locked := reports[place].locked)
        and (delivered_at := reports[place].delivered_at) is not None
    }
    fixed = dict(zip(charged, await costs.charge(tx, company, list(charged.values())), strict=True))
    return [
        _encode_new(report.locked.pricing, fixed.get(place, pricing))
        for place, (report, pricing) in enumerate(zip(reports, chosen, strict=True))
    ]


def _encode_new(stored: Raw | None, pricing: MessagePricing | None) -> bytes | Raw | None:
    """Returns the stored value itself if nothing changes."""
    if pricing is None:
        return stored
    encoded = encode(pricing)
    return stored if stored is not None and bytes(stored) == encoded else encoded


def _choose(report: PricedReport) -> MessagePricing | None:
    """The pricing of the latest report; None if there is none, or if the cost is fixed already."""
    stored, reported = report.locked.pricing, report.reported
    if stored is not None and report.locked.delivered_at is not None:
        return None
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
