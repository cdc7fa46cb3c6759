"""The program: its settings and tiers, and what an order earns by them."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import msgspec
from msgspec import UNSET, Struct

from sapa.company import Company
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import Invalid
from sapa.loyalty.types import (
    MOST_POINTS,
    EarnOn,
    LoyaltySettings,
    LoyaltySettingsPatch,
    Position,
    Rounding,
    Tier,
)
from sapa.money import BadMoney, parse_amount
from sapa.orders.types import Order, Status

DEFAULTS = LoyaltySettings(
    enabled=True, earn_on="paid", rounding="floor", expiry_months=None, reservation_ttl_seconds=900
)
SETTINGS_COLUMNS = ", ".join(LoyaltySettings.__struct_fields__)

FIND_SETTINGS = sql(f"SELECT {SETTINGS_COLUMNS} FROM loyalty_settings WHERE company_id = $1", row=LoyaltySettings)

# Whoever changes the program takes this row first, made if need be, so that two changes come one after the other.
LOCK_SETTINGS = sql(
    f"""
    INSERT INTO loyalty_settings AS s (company_id) VALUES ($1)
        ON CONFLICT (company_id) DO UPDATE SET updated_at = now() WHERE s.company_id = $1
    RETURNING {SETTINGS_COLUMNS}""",
    row=LoyaltySettings,
)

UPDATE_SETTINGS = sql(
    """
    UPDATE loyalty_settings
       SET enabled = $2, earn_on = $3, rounding = $4, expiry_months = $5, reservation_ttl_seconds = $6
     WHERE company_id = $1"""
)

LIST_TIERS = sql(
    "SELECT currency_amount, points FROM loyalty_tiers WHERE company_id = $1 ORDER BY currency_amount", row=Tier
)

DELETE_TIERS = sql("DELETE FROM loyalty_tiers WHERE company_id = $1")

INSERT_TIERS = sql(
    """
    INSERT INTO loyalty_tiers (company_id, currency_amount, points)
    SELECT $1, currency_amount, points FROM unnest($2::numeric[], $3::bigint[]) AS t (currency_amount, points)"""
)


class Terms(Struct, frozen=True):
    """The program as an order meets it: the tier that its total reaches, if any, and what it earned before."""

    enabled: bool
    earn_on: EarnOn
    rounding: Rounding
    currency_amount: Decimal | None
    points: int | None
    position: msgspec.Raw | None


TERMS = sql(
    """
    SELECT coalesce(s.enabled, true) AS enabled, coalesce(s.earn_on, 'paid') AS earn_on,
           coalesce(s.rounding, 'floor') AS rounding, t.currency_amount, t.points, row_to_json(p) AS position
      FROM (SELECT) AS always
      LEFT JOIN loyalty_settings s ON s.company_id = $1
      LEFT JOIN LATERAL (
           SELECT currency_amount, points FROM loyalty_tiers
            WHERE company_id = $1 AND currency_amount <= $3
            ORDER BY currency_amount DESC LIMIT 1) AS t ON true
      LEFT JOIN LATERAL (
           SELECT earn_on, worth, target, posted, shortfall, postings FROM loyalty_order_positions
            WHERE company_id = $1 AND order_id = $2) AS p ON true""",
    row=Terms,
)

STORE_POSITION = sql(
    """
    INSERT INTO loyalty_order_positions AS p (company_id, order_id, wallet_id, earn_on, worth, target, posted,
                                              shortfall, postings)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (company_id, order_id) DO UPDATE
       SET target = excluded.target, posted = excluded.posted, shortfall = excluded.shortfall,
           postings = excluded.postings
     WHERE p.company_id = $1"""
)


async def get_settings(db: Connection, company: Company) -> LoyaltySettings:
    return await FIND_SETTINGS.find(db, company.id) or DEFAULTS


async def change_settings(tx: Tx, company: Company, patch: LoyaltySettingsPatch) -> LoyaltySettings:
    before = await LOCK_SETTINGS.find(tx, company.id) or DEFAULTS
    changes = {name: value for name in patch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
    settings = msgspec.structs.replace(before, **changes)
    await UPDATE_SETTINGS.run(tx, company.id, *msgspec.structs.astuple(settings))
    return settings


async def list_tiers(db: Connection, company: Company) -> list[Tier]:
    return await LIST_TIERS.all(db, company.id)


async def replace_tiers(tx: Tx, company: Company, given: Sequence[Tier]) -> list[Tier]:
    tiers = build_tiers(company, given)
    await LOCK_SETTINGS.find(tx, company.id)
    await DELETE_TIERS.run(tx, company.id)
    await INSERT_TIERS.run(tx, company.id, [tier.currency_amount for tier in tiers], [tier.points for tier in tiers])
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


async def get_terms(tx: Tx, company: Company, order: Order) -> tuple[Terms, Position | None]:
    terms = await TERMS.find(tx, company.id, order.id, order.total)
    if terms is None:
        raise AssertionError("a statement that always gives a row gave none")
    position = None if terms.position is None else msgspec.json.decode(terms.position, type=Position)
    return terms, position


async def store_position(tx: Tx, company: Company, order: Order, wallet_id: str, position: Position) -> None:
    await STORE_POSITION.run(tx, company.id, order.id, wallet_id, *msgspec.structs.astuple(position))


def build_aim(company: Company, order: Order, status: Status, terms: Terms, position: Position | None) -> Position:
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


def build_worth(total: Decimal, terms: Terms) -> int:
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
