"""How rewards and redemptions are stored."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from sapa.db.due import add_interval
from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.loyalty.rewards.terms import RewardTerms
from sapa.loyalty.rewards.types import Redeemer, Redemption, RewardOption
from sapa.values.text_folding import fold

COUNTER = "loyalty_reward_options"

OPTION_TEXTS = {name: f"r.{name}::text" for name in ("cost_to_redeem", "discount_value")}
OPTION_COLUMNS = ", ".join(
    f"{OPTION_TEXTS[name]} AS {name}" if name in OPTION_TEXTS else f"r.{name}"
    for name in RewardOption.__struct_fields__
)

GET_OPTION = sql(
    f"SELECT {OPTION_COLUMNS} FROM loyalty_reward_options AS r WHERE company_id = $1 AND id = $2", row=RewardOption
)

LOCK_OPTION = sql(
    f"SELECT {OPTION_COLUMNS} FROM loyalty_reward_options AS r WHERE company_id = $1 AND id = $2 FOR UPDATE",
    row=RewardOption,
)

# Shared: any number of redemptions may run at once, but no change of the reward.
SHARE_LOCK_OPTION = sql(
    f"SELECT {OPTION_COLUMNS} FROM loyalty_reward_options AS r WHERE company_id = $1 AND id = $2 FOR SHARE",
    row=RewardOption,
)

INSERT_OPTION = sql(
    f"""
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'loyalty_reward_options', '', 1)
    )
    INSERT INTO loyalty_reward_options AS r (company_id, id, reward_name, cost_to_redeem, discount_type,
                                             discount_value, expiration_preset, voucher_prefix,
                                             minimum_purchase_amount, search_text)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    RETURNING {OPTION_COLUMNS}""",
    row=RewardOption,
)

UPDATE_OPTION = sql(
    f"""
    UPDATE loyalty_reward_options AS r
       SET reward_name = $3, cost_to_redeem = $4, discount_type = $5, discount_value = $6, expiration_preset = $7,
           voucher_prefix = $8, minimum_purchase_amount = $9, search_text = $10,
           updated_at = GREATEST(statement_timestamp(), updated_at)
     WHERE company_id = $1 AND id = $2
    RETURNING {OPTION_COLUMNS}""",
    row=RewardOption,
)

DELETE_OPTION = sql(
    """
    WITH deleted AS (
        DELETE FROM loyalty_reward_options WHERE company_id = $1 AND id = $2 RETURNING id
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'loyalty_reward_options', '', -1 FROM deleted
    )
    SELECT id FROM deleted"""
)

OPTIONS = Listing(
    "loyalty_reward_options",
    row=RewardOption,
    counter=COUNTER,
    filters={"search": "search_text LIKE {}"},
    sorts={"createdAt": "created_at"},
    columns=OPTION_TEXTS,
)

REDEMPTION_TEXTS = {name: f"r.{name}::text AS {name}" for name in ("points_cost", "discount_value")}
REDEMPTION_COLUMNS = ", ".join(REDEMPTION_TEXTS.get(name, f"r.{name}") for name in Redemption.__struct_fields__)

# The status as the next settlement stores it: an overdue reservation counts as expired.
STATUS = "CASE WHEN r.status = 'reserved' AND r.reserved_until <= t.now THEN 'expired' ELSE r.status END"
NOW = "(SELECT now() + clock_offset AS now FROM companies WHERE company_id = $1) AS t"

GET_REDEMPTION = sql(
    f"SELECT {REDEMPTION_COLUMNS} FROM loyalty_redemptions AS r WHERE company_id = $1 AND id = $2", row=Redemption
)

RESERVATION_OF = sql("SELECT id FROM loyalty_reservations WHERE company_id = $1 AND redemption_id = $2")

# The holder of a code whose redemption is overdue, but not settled yet.
OVERDUE_HOLDER = sql(
    f"""
    SELECT r.customer_id
      FROM loyalty_redemptions r CROSS JOIN {NOW}
     WHERE r.company_id = $1 AND upper(r.voucher_code) = upper($2) AND r.status = 'reserved'
       AND r.reserved_until <= t.now"""
)

INSERT_REDEMPTION = sql(
    """
    INSERT INTO loyalty_redemptions (company_id, id, wallet_id, customer_id, reward_option_id, reward_name,
                                     points_cost, voucher_code, discount_type, discount_value,
                                     minimum_purchase_amount, expiration_preset, metadata, reserved_until, created_at,
                                     updated_at, search_text)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14::text::timestamptz,
            $15::text::timestamptz, $15::text::timestamptz, $16)"""
)

_VALIDITY = """CASE WHEN expiration_preset = 'SEVEN_DAYS' THEN interval '7 days'
                WHEN expiration_preset = 'THIRTY_DAYS' THEN interval '30 days'
                WHEN expiration_preset = 'NINETY_DAYS' THEN interval '90 days'
                WHEN expiration_preset = 'ONE_YEAR' THEN interval '1 year' END"""

CLOSE_REDEMPTIONS = sql(
    f"""
    UPDATE loyalty_redemptions AS r
       SET status = $3, updated_at = GREATEST(updated_at, $4),
           committed_at = CASE WHEN $3 = 'committed' THEN $4 END,
           expires_at = CASE WHEN $3 = 'committed' THEN {add_interval("$4::timestamptz", _VALIDITY)} END
     WHERE company_id = $1 AND id = ANY($2) AND status = $5
    RETURNING {REDEMPTION_COLUMNS}""",
    row=Redemption,
)

LIST_REDEMPTIONS = sql(
    f"""
    SELECT {REDEMPTION_COLUMNS.replace("r.status", f"{STATUS} AS status")}
      FROM loyalty_redemptions r CROSS JOIN {NOW}
     WHERE r.company_id = $1 AND r.wallet_id = $2 AND r.created_at < $3
       AND ($5::text IS NULL OR r.search_text LIKE $5)
       AND ($6::text IS NULL OR {STATUS} = $6)
     ORDER BY r.created_at DESC
     LIMIT $4""",
    row=Redemption,
)


class StatusTally(Struct, frozen=True):
    status: str
    count: int
    points: int


TALLY_REDEMPTIONS = sql(
    f"""
    SELECT {STATUS} AS status, count(*) AS count, sum(r.points_cost)::bigint AS points
      FROM loyalty_redemptions r CROSS JOIN {NOW}
     WHERE r.company_id = $1 AND r.wallet_id = $2
     GROUP BY 1""",
    row=StatusTally,
)

REDEEMED = f"""
      FROM loyalty_redemptions r
     CROSS JOIN {NOW}
      JOIN customers c ON c.company_id = $1 AND c.id = r.customer_id
     WHERE r.company_id = $1 AND r.reward_option_id = $2 AND r.status IN ('reserved', 'committed')
       AND {STATUS} <> 'expired'"""

COUNT_REDEEMERS = sql(f"SELECT count(DISTINCT r.customer_id) {REDEEMED}")

# Only the rows of the page's customers are read.
LIST_REDEEMERS = sql(
    f"""
    SELECT c.id AS customer_id, c.first_name, c.last_name, c.email, c.phone_number, page.redemptions, page.points,
           page.last_redeemed_at
      FROM (SELECT r.customer_id, count(*) AS redemptions, sum(r.points_cost)::text AS points,
                   max(r.created_at) AS last_redeemed_at
              {REDEEMED}
             GROUP BY r.customer_id
             ORDER BY last_redeemed_at DESC, r.customer_id DESC
             LIMIT $3 OFFSET $4) AS page
      JOIN customers c ON c.company_id = $1 AND c.id = page.customer_id
     ORDER BY page.last_redeemed_at DESC, page.customer_id DESC""",
    row=Redeemer,
)


async def get_option(db: Connection, company_id: int, id: str) -> RewardOption:
    return _or_not_found(await GET_OPTION.find(db, company_id, id))


async def lock_option(tx: Tx, company_id: int, id: str) -> RewardOption:
    return _or_not_found(await LOCK_OPTION.find(tx, company_id, id))


async def find_share_locked_option(tx: Tx, company_id: int, id: str) -> RewardOption | None:
    """It cannot change until the transaction ends."""
    return await SHARE_LOCK_OPTION.find(tx, company_id, id)


async def insert_option(tx: Tx, company_id: int, id: str, terms: RewardTerms) -> RewardOption:
    return _or_not_found(await INSERT_OPTION.find(tx, company_id, id, *_columns(terms)))


async def update_option(tx: Tx, company_id: int, id: str, terms: RewardTerms) -> RewardOption:
    return _or_not_found(await UPDATE_OPTION.find(tx, company_id, id, *_columns(terms)))


async def delete_option(tx: Tx, company_id: int, id: str) -> None:
    if await DELETE_OPTION.value(tx, company_id, id) is None:
        raise NotFound


async def list_options(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[RewardOption], int]:
    """One page, newest first, and the total number of matches."""
    return await OPTIONS.page(db, company_id, filters, "createdAt:desc", limit, offset)


async def get_redemption(db: Connection, company_id: int, id: str) -> Redemption:
    redemption = await GET_REDEMPTION.find(db, company_id, id)
    if redemption is None:
        raise NotFound
    return redemption


async def get_reservation_id(db: Connection, company_id: int, redemption_id: str) -> str:
    """The reservation that holds, or held, the redemption's points."""
    id: str | None = await RESERVATION_OF.value(db, company_id, redemption_id)
    if id is None:
        raise NotFound
    return id


async def find_overdue_holder(tx: Tx, company_id: int, voucher_code: str) -> str | None:
    """The customer whose overdue redemption still has this code."""
    customer_id: str | None = await OVERDUE_HOLDER.value(tx, company_id, voucher_code)
    return customer_id


async def insert_redemption(tx: Tx, company_id: int, new: Redemption) -> None:
    await INSERT_REDEMPTION.run(
        tx, company_id, new.id, new.wallet_id, new.customer_id, new.reward_option_id, new.reward_name,
        int(new.points_cost), new.voucher_code, new.discount_type, new.discount_value, new.minimum_purchase_amount,
        new.expiration_preset, new.metadata, new.reserved_until, new.created_at,
        f"{fold(new.reward_name)}\n{fold(new.voucher_code)}",
    )  # fmt: skip


async def close_redemptions(
    tx: Tx, company_id: int, ids: Sequence[str], was: str, status: str, now: datetime
) -> list[Redemption]:
    """Returns the redemptions that had the status `was`."""
    return await CLOSE_REDEMPTIONS.all(tx, company_id, ids, status, now, was)


async def list_redemptions(
    db: Connection, company_id: int, wallet_id: str, limit: int, before: datetime, pattern: str | None,
    status: str | None,
) -> list[Redemption]:  # fmt: skip
    """Newest first, before an instant."""
    return await LIST_REDEMPTIONS.all(db, company_id, wallet_id, before, limit, pattern, status)


async def list_tallies(db: Connection, company_id: int, wallet_id: str) -> list[StatusTally]:
    return await TALLY_REDEMPTIONS.all(db, company_id, wallet_id)


async def list_redeemers(
    db: Connection, company_id: int, option_id: str, limit: int, offset: int
) -> tuple[list[Redeemer], int]:
    """One page, the last to redeem first, and the total number."""
    total = int(await COUNT_REDEEMERS.value(db, company_id, option_id))
    return await LIST_REDEEMERS.all(db, company_id, option_id, limit, offset), total


def _or_not_found(option: RewardOption | None) -> RewardOption:
    if option is None:
        raise NotFound
    return option


def _columns(terms: RewardTerms) -> list[object]:
    return [*msgspec.structs.astuple(terms), terms.search_text]
