"""How the loyalty program is stored: settings, tiers, and what each order has earned."""

from collections.abc import Sequence
from decimal import Decimal

import msgspec
from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.loyalty.types import EarnOn, LoyaltySettings, Position, Rounding, Tier

SETTINGS_COLUMNS = ", ".join(LoyaltySettings.__struct_fields__)

FIND_SETTINGS = sql(f"SELECT {SETTINGS_COLUMNS} FROM loyalty_settings WHERE company_id = $1", row=LoyaltySettings)

# Every change of the program locks this row first and creates it if necessary, so changes are serialized.
LOCK_SETTINGS = sql(
    f"""
    INSERT INTO loyalty_settings AS s (company_id) VALUES ($1)
        ON CONFLICT (company_id) DO UPDATE SET updated_at = excluded.updated_at WHERE s.company_id = $1
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
    """
    SELECT currency_amount, points
      FROM loyalty_tiers
     WHERE company_id = $1
       AND version = coalesce((SELECT tiers_version FROM loyalty_settings WHERE company_id = $1), 1)
     ORDER BY currency_amount""",
    row=Tier,
)

# Earlier tiers stay: orders that earned by them keep them.
REPLACE_TIERS = sql(
    """
    WITH changed AS (
        UPDATE loyalty_settings SET tiers_version = tiers_version + 1 WHERE company_id = $1 RETURNING tiers_version
    )
    INSERT INTO loyalty_tiers (company_id, version, currency_amount, points)
    SELECT $1, changed.tiers_version, t.currency_amount, t.points
      FROM changed
     CROSS JOIN unnest($2::numeric[], $3::bigint[]) AS t (currency_amount, points)"""
)


class EarningTerms(Struct, frozen=True):
    """The program's settings for one order: the tier that it reaches, if any, and what it earned before. An order that
    has earned once keeps the terms of that time."""

    enabled: bool
    earn_on: EarnOn
    rounding: Rounding
    tiers_version: int
    currency_amount: Decimal | None
    points: int | None
    position: msgspec.Raw | None


TERMS = sql(
    """
    SELECT coalesce(s.enabled, true) AS enabled, coalesce(p.earn_on, s.earn_on, 'paid') AS earn_on,
           coalesce(p.rounding, s.rounding, 'floor') AS rounding,
           coalesce(p.tiers_version, s.tiers_version, 1) AS tiers_version, t.currency_amount, t.points,
           row_to_json(p) AS position
      FROM (SELECT) AS always
      LEFT JOIN loyalty_settings s ON s.company_id = $1
      LEFT JOIN LATERAL (
           SELECT earn_on, worth, target, posted, shortfall, postings, tiers_version, rounding
             FROM loyalty_order_positions
            WHERE company_id = $1 AND order_id = $2) AS p ON true
      LEFT JOIN LATERAL (
           SELECT currency_amount, points FROM loyalty_tiers
            WHERE company_id = $1 AND version = coalesce(p.tiers_version, s.tiers_version, 1)
              AND currency_amount <= CASE coalesce(p.earn_on, s.earn_on, 'paid')
                                     WHEN 'paid' THEN $3::numeric ELSE $4::numeric END
            ORDER BY currency_amount DESC LIMIT 1) AS t ON true""",
    row=EarningTerms,
)

STORE_POSITION = sql(
    """
    INSERT INTO loyalty_order_positions AS p (company_id, order_id, wallet_id, earn_on, worth, target, posted,
                                              shortfall, postings, tiers_version, rounding)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        ON CONFLICT (company_id, order_id) DO UPDATE
       SET target = excluded.target, posted = excluded.posted, shortfall = excluded.shortfall,
           postings = excluded.postings
     WHERE p.company_id = $1"""
)


async def find_settings(db: Connection, company_id: int) -> LoyaltySettings | None:
    return await FIND_SETTINGS.find(db, company_id)


async def lock_settings(tx: Tx, company_id: int) -> LoyaltySettings:
    settings = await LOCK_SETTINGS.find(tx, company_id)
    if settings is None:
        raise AssertionError("INSERT … RETURNING always returns a row")
    return settings


async def update_settings(tx: Tx, company_id: int, settings: LoyaltySettings) -> None:
    await UPDATE_SETTINGS.run(tx, company_id, *msgspec.structs.astuple(settings))


async def list_tiers(db: Connection, company_id: int) -> list[Tier]:
    return await LIST_TIERS.all(db, company_id)


async def replace_tiers(tx: Tx, company_id: int, tiers: Sequence[Tier]) -> None:
    """The settings are locked, and so they exist."""
    await REPLACE_TIERS.run(tx, company_id, [tier.currency_amount for tier in tiers], [tier.points for tier in tiers])


async def get_terms(
    tx: Tx, company_id: int, order_id: str, paid: Decimal, sold: Decimal
) -> tuple[EarningTerms, Position | None]:
    """The terms that apply to the order, and what the order has earned so far."""
    terms = await TERMS.find(tx, company_id, order_id, paid, sold)
    if terms is None:
        raise AssertionError("this SELECT always returns a row")
    return terms, None if terms.position is None else msgspec.json.decode(terms.position, type=Position)


async def store_position(tx: Tx, company_id: int, order_id: str, wallet_id: str, position: Position) -> None:
    await STORE_POSITION.run(tx, company_id, order_id, wallet_id, *msgspec.structs.astuple(position))
