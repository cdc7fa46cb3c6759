"""How rewards change, and how customers redeem them.

A reservation of the ledger holds the points of a redemption. What closes the reservation closes the redemption: see
`closing.py`.
"""

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
from msgspec import Raw

from sapa.db.pool import Tx
from sapa.events import emit
from sapa.http.errors import Invalid
from sapa.loyalty import actions as points
from sapa.loyalty.ledger import WalletLedger
from sapa.loyalty.rewards import queries
from sapa.loyalty.rewards.terms import build_terms, parse_cost, revise_terms, terms_of
from sapa.loyalty.rewards.types import (
    OPTION_ID,
    REDEMPTION_ID,
    Redeemed,
    RedeemIn,
    Redemption,
    RedemptionUpdated,
    RewardOption,
    RewardOptionIn,
    RewardOptionPatch,
)
from sapa.loyalty.rewards.vouchers import new_voucher
from sapa.loyalty.types import RESERVATION_ID, LedgerEntry, Memo, Reservation, ReservationClosed, ReservationIn
from sapa.timeline import actions as timeline
from sapa.timeline.actions import NewTimelineEntry
from sapa.values.company import Company

REFERENCE = "redemption"


async def create_option(tx: Tx, company: Company, body: RewardOptionIn) -> RewardOption:
    return await queries.insert_option(tx, company.id, OPTION_ID.new(), build_terms(company, body))


async def update_option(tx: Tx, company: Company, id: str, patch: RewardOptionPatch) -> RewardOption:
    """Writes nothing when nothing changes. Redemptions keep the terms of the reward."""
    option = await queries.lock_option(tx, company.id, id)
    terms = revise_terms(company, option, patch)
    if terms == terms_of(option):
        return option
    return await queries.update_option(tx, company.id, id, terms)


async def delete_option(tx: Tx, company: Company, id: str) -> None:
    await queries.delete_option(tx, company.id, id)


async def redeem(tx: Tx, company: Company, customer_id: str, body: RedeemIn) -> Redeemed:
    """Reserves the reward's points. Idempotent by the request's key."""
    memo = _build_memo(customer_id, body)
    ledger = await _open_ledger(tx, company, customer_id, body.voucher_code)
    existing = await points.find_same_request(tx, company, memo)
    if existing is not None:
        return await _repeat_redemption(tx, company, ledger, existing)
    option = await _get_option_as_shown(tx, company, body)
    points.require_writable(ledger)
    held = ReservationIn(
        points=int(option.cost_to_redeem), reference_type=memo.reference_type, reference_id=memo.reference_id
    )
    reservation = await points.hold(tx, company, ledger, RESERVATION_ID.new(), held, memo, memo.reference_id)
    entry = ledger.entries[-1]
    redemption = _build_redemption(option, reservation, entry, memo, body.voucher_code)
    await queries.insert_redemption(tx, company.id, redemption)
    wallet = await points.close_ledger(tx, company, ledger, "api")
    log = f"{option.reward_name}: reserved"
    await timeline.record(tx, company, NewTimelineEntry(customer_id, "reward_redeemed", edit_log=log))
    await emit(tx, company, RedemptionUpdated(redemption))
    return Redeemed(wallet, redemption, entry)


async def commit(tx: Tx, company: Company, id: str) -> Redemption:
    """Spends the points, which makes the voucher valid."""
    return await _end(tx, company, id, points.commit)


async def release(tx: Tx, company: Company, id: str) -> Redemption:
    """Returns the points."""
    return await _end(tx, company, id, points.release)


async def fail(tx: Tx, company: Company, id: str, reason: str) -> Redemption:
    """Returns the points, spent ones too, because the customer cannot have the reward."""
    if not reason.strip():
        raise Invalid.field("reason", "must not be blank")
    return await _end(tx, company, id, partial(points.undo, reason=reason))


async def _end(tx: Tx, company: Company, id: str, end: Callable[[Tx, Company, str], Awaitable[object]]) -> Redemption:
    """Ends the reservation that holds the redemption's points."""
    reservation_id = await queries.get_reservation_id(tx, company.id, id)
    try:
        await end(tx, company, reservation_id)
    except ReservationClosed:
        ended = await queries.get_redemption(tx, company.id, id)
        raise ReservationClosed(f"The redemption is already {ended.status}.") from None
    return await queries.get_redemption(tx, company.id, id)


async def _open_ledger(tx: Tx, company: Company, customer_id: str, voucher_code: str | None) -> WalletLedger:
    """The customer's ledger. Settles the wallet of another customer whose overdue redemption still has the code.

    The two wallets are locked in the order of their ids, so that callers do not deadlock.
    """
    other_id = None if voucher_code is None else await queries.find_overdue_holder(tx, company.id, voucher_code)
    if other_id is not None and other_id < customer_id:
        await points.settle_wallet(tx, company, other_id)
    ledger = await points.open_ledger(tx, company, customer_id)
    if other_id is not None and other_id > customer_id:
        await points.settle_wallet(tx, company, other_id)
    return ledger


async def _repeat_redemption(tx: Tx, company: Company, ledger: WalletLedger, entry: LedgerEntry) -> Redeemed:
    redemption = await queries.get_redemption(tx, company.id, entry.reference_id or "")
    return Redeemed(await points.close_ledger(tx, company, ledger, "api"), redemption, entry)


async def _get_option_as_shown(tx: Tx, company: Company, body: RedeemIn) -> RewardOption:
    """The reward, if it is still as the customer saw it; raises Invalid with the field that differs."""
    option = None
    if OPTION_ID.matches(body.reward_option_id):
        option = await queries.find_share_locked_option(tx, company.id, body.reward_option_id)
    if option is None:
        raise Invalid.field("rewardOptionId", "is not the id of a reward")
    if body.reward_name != option.reward_name:
        raise Invalid.field("rewardName", f"must be {option.reward_name!r}, the reward's name")
    if str(parse_cost("pointsCost", body.points_cost)) != option.cost_to_redeem:
        raise Invalid.field("pointsCost", f"must be {option.cost_to_redeem}, the reward's cost")
    return option


def _build_memo(customer_id: str, body: RedeemIn) -> Memo:
    """The memo of the entry; the redemption that it refers to is inserted after it."""
    key = points.parse_key(body.idempotency_key)
    request = msgspec.structs.replace(body, points_cost=str(body.points_cost))
    return Memo(
        reference_type=REFERENCE,
        reference_id=REDEMPTION_ID.new(),
        note=body.reward_name,
        metadata=points.build_metadata(body.metadata),
        idempotency_key=key,
        fingerprint=points.build_fingerprint("redeem", customer_id, request) if key is not None else None,
    )


def _build_redemption(
    option: RewardOption, reservation: Reservation, entry: LedgerEntry, memo: Memo, voucher_code: str | None
) -> Redemption:
    return Redemption(
        id=reservation.redemption_id or "",
        customer_id=reservation.customer_id,
        wallet_id=reservation.wallet_id,
        reward_option_id=option.id,
        reward_name=option.reward_name,
        points_cost=option.cost_to_redeem,
        status="reserved",
        voucher_code=voucher_code or new_voucher(option.voucher_prefix),
        discount_type=option.discount_type,
        discount_value=option.discount_value,
        minimum_purchase_amount=option.minimum_purchase_amount,
        expiration_preset=option.expiration_preset,
        metadata=None if memo.metadata is None else Raw(memo.metadata),
        reserved_until=reservation.expires_at,
        committed_at=None,
        expires_at=None,
        created_at=entry.occurred_at,
        updated_at=entry.occurred_at,
    )
