"""The program: its settings and tiers, and what an order earns by them."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import msgspec
from msgspec import UNSET

from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.loyalty import program_queries
from sapa.loyalty.program_queries import EarningTerms
from sapa.loyalty.types import MOST_POINTS, EarnOn, LoyaltySettings, LoyaltySettingsPatch, Position, Tier
from sapa.orders.types import Order, Status
from sapa.values.company import Company
from sapa.values.money import BadMoney, parse_amount

DEFAULTS = LoyaltySettings(
    enabled=True, earn_on="paid", rounding="floor", expiry_months=None, reservation_ttl_seconds=900
)


async def get_settings(db: Connection, company: Company) -> LoyaltySettings:
    return await program_queries.find_settings(db, company.id) or DEFAULTS


async def change_settings(tx: Tx, company: Company, patch: LoyaltySettingsPatch) -> LoyaltySettings:
    before = await program_queries.lock_settings(tx, company.id)
    changes = {name: value for name in patch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
    settings = msgspec.structs.replace(before, **changes)
    await program_queries.update_settings(tx, company.id, settings)
    return settings


async def replace_tiers(tx: Tx, company: Company, given: Sequence[Tier]) -> list[Tier]:
    tiers = build_tiers(company, given)
    await program_queries.lock_settings(tx, company.id)
    await program_queries.replace_tiers(tx, company.id, tiers)
    return tiers


def build_tiers(company: Company, given: Sequence[Tier]) -> list[Tier]:
    """By amount, each amount once; raises Invalid naming the one that cannot be used."""
    tiers: dict[Decimal, Tier] = {}
    for place, tier in enumerate(given):
        field = f"tiers[{place}].currencyAmount"
        try:
            amount = parse_amount(tier.currency_amount, company.currency)
        except BadMoney as error:
            raise Invalid.field(field, str(error)) from None
        if not amount:
            raise Invalid.field(field, "must be more than 0")
        if amount in tiers:
            raise Invalid.field(field, f"names {amount} a second time; give each amount once")
        tiers[amount] = Tier(amount, tier.points)
    return [tiers[amount] for amount in sorted(tiers)]


def build_aim(
    company: Company, order: Order, status: Status, terms: EarningTerms, position: Position | None
) -> Position:
    """The order's position with the points it should have earned by now as its target.

    An order that has earned once keeps the terms of that moment. While the program is switched off nothing new is
    earned, and what was earned can still be taken back.
    """
    if position is None:
        worth = build_worth(order.total, terms) if order.currency == company.currency else 0
        position = Position(terms.earn_on, worth, target=0, posted=0, shortfall=0, postings=0)
    target = position.worth if is_earning(order, status, position.earn_on) else 0
    if not terms.enabled:
        target = min(target, position.posted)
    return msgspec.structs.replace(position, target=target)


def build_worth(total: Decimal, terms: EarningTerms) -> int:
    """How many points an order of this total is worth; exact, and bounded."""
    if terms.currency_amount is None or terms.points is None:
        return 0
    times = Fraction(total) / Fraction(terms.currency_amount)
    whole = {"floor": math.floor(times), "ceil": math.ceil(times), "round": math.floor(times + Fraction(1, 2))}
    return min(whole[terms.rounding] * terms.points, MOST_POINTS)


def is_earning(order: Order, status: Status, earn_on: EarnOn) -> bool:
    """Whether the order counts now; `status` is the one that it has, or had before it was archived."""
    if status in {"cancelled", "refunded"} or order.financial_status == "refunded":
        return False
    reached = {
        "created": True,
        "paid": order.financial_status == "paid",
        "fulfilled": order.fulfillment_status == "fulfilled",
    }
    return reached[earn_on]
