"""The loyalty program: its settings and tiers, and how many points an order earns."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import msgspec
from msgspec import UNSET

from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.loyalty.program import queries
from sapa.loyalty.program.queries import EarningTerms
from sapa.loyalty.types import MAX_POINTS, EarnOn, LoyaltySettings, LoyaltySettingsPatch, Position, Tier
from sapa.orders.types import Order, Status
from sapa.values.company import Company
from sapa.values.money import BadMoney, parse_amount

DEFAULTS = LoyaltySettings(
    enabled=True, earn_on="paid", rounding="floor", expiry_months=None, reservation_ttl_seconds=900
)


async def get_settings(db: Connection, company: Company) -> LoyaltySettings:
    return await queries.find_settings(db, company.id) or DEFAULTS


async def change_settings(tx: Tx, company: Company, patch: LoyaltySettingsPatch) -> LoyaltySettings:
    before = await queries.lock_settings(tx, company.id)
    changes = {name: value for name in patch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
    settings = msgspec.structs.replace(before, **changes)
    await queries.update_settings(tx, company.id, settings)
    return settings


async def list_tiers(db: Connection, company: Company) -> list[Tier]:
    """By amount."""
    return await queries.list_tiers(db, company.id)


async def replace_tiers(tx: Tx, company: Company, tiers: Sequence[Tier]) -> list[Tier]:
    checked = build_tiers(company, tiers)
    await queries.lock_settings(tx, company.id)
    await queries.replace_tiers(tx, company.id, checked)
    return checked


async def has_terms(tx: Tx, company: Company) -> bool:
    """Whether a new order can earn points at all."""
    return bool(await queries.list_tiers(tx, company.id))


async def get_positions(tx: Tx, company: Company, order: Order, status: Status) -> tuple[Position | None, Position]:
    """What the order has earned so far, if anything, and the same with what it should have earned by now."""
    terms, before = await queries.get_terms(tx, company.id, order.id, _paid(order), order.total_sold)
    return before, build_target_position(company, order, status, terms, before)


async def store_position(tx: Tx, company: Company, order: Order, wallet_id: str, position: Position) -> None:
    await queries.store_position(tx, company.id, order.id, wallet_id, position)


def build_tiers(company: Company, tiers: Sequence[Tier]) -> list[Tier]:
    """The tiers sorted by amount; raises Invalid with the field of a bad or repeated amount."""
    by_amount: dict[Decimal, Tier] = {}
    for index, tier in enumerate(tiers):
        field = f"tiers[{index}].currencyAmount"
        try:
            amount = parse_amount(tier.currency_amount, company.currency)
        except BadMoney as error:
            raise Invalid.field(field, str(error)) from None
        if not amount:
            raise Invalid.field(field, "must be more than 0")
        if amount in by_amount:
            raise Invalid.field(field, f"repeats {amount}; send each amount once")
        by_amount[amount] = Tier(amount, tier.points)
    return [by_amount[amount] for amount in sorted(by_amount)]


def build_target_position(
    company: Company, order: Order, status: Status, terms: EarningTerms, position: Position | None
) -> Position:
    """The order's position, with the points that it should have earned by now as its target.

    While the program is disabled an order earns nothing new, but points can still be taken back.
    """
    amount = _paid(order) if terms.earn_on == "paid" else order.total_sold
    if position is None:
        worth = build_worth(amount, terms) if order.currency == company.currency else 0
        position = Position(terms.earn_on, worth, 0, 0, 0, 0, terms.tiers_version, terms.rounding)
    elif position.tiers_version is None:
        worth = build_share(position.worth, amount, order.total)
    else:
        worth = build_worth(amount, terms)
    target = worth if is_earning(order, status, position.earn_on) else 0
    if not terms.enabled:
        target = min(target, position.posted)
    return msgspec.structs.replace(position, target=target)


def build_share(worth: int, amount: Decimal, total: Decimal) -> int:
    """The part of an order's points that belongs to this part of its total."""
    return min(worth, math.floor(worth * Fraction(amount) / Fraction(total))) if total else 0


def build_worth(amount: Decimal, terms: EarningTerms) -> int:
    """How many points this amount earns; exact, at most MAX_POINTS."""
    if terms.currency_amount is None or terms.points is None:
        return 0
    times = Fraction(amount) / Fraction(terms.currency_amount)
    whole = {"floor": math.floor(times), "ceil": math.ceil(times), "round": math.floor(times + Fraction(1, 2))}
    return min(whole[terms.rounding] * terms.points, MAX_POINTS)


def is_earning(order: Order, status: Status, earn_on: EarnOn) -> bool:
    """Whether the order earns points now; `status` is its status, or the one before it was archived."""
    if status in {"cancelled", "refunded"} or order.financial_status == "refunded":
        return False
    return earn_on != "fulfilled" or order.fulfillment_status == "fulfilled"


def _paid(order: Order) -> Decimal:
    return order.total_paid - order.total_refunded
