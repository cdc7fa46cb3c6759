"""How rewards change, and how they are redeemed.

A redemption's points are held by a reservation of the ledger. Whatever closes that closes the redemption, see
`closing.py`.
"""

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
from msgspec import Raw

from sapa.db.pool import Tx
from sapa.events import emit
from sapa.http.errors import Invalid
from sapa.loyalty import actions as ledger
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
from sapa.loyalty.types import RESERVATION_ID, LedgerEntry, Memo, Reservation, ReservationClosed
from sapa.timeline import actions as timeline
from sapa.timeline.actions import NewTimelineEntry
from sapa.values.company import Company

REFERENCE = "redemption"


async def create_option(tx: Tx, company: Company, given: RewardOptionIn) -> RewardOption:
    return await queries.insert_option(tx, company.id, OPTION_ID.new(), build_terms(company, given))


async def update_option(tx: Tx, company: Company, id: str, patch: RewardOptionPatch) -> RewardOption:
    """Nothing is written when nothing changes. Redemptions keep what the reward was."""
    option = await queries.lock_option(tx, company.id, id)
    terms = revise_terms(company, option, patch)
    if terms == terms_of(option):
        return option
    return await queries.update_option(tx, company.id, id, terms)


async def delete_option(tx: Tx, company: Company, id: str) -> None:
    await queries.delete_option(tx, company.id, id)


async def redeem(tx: Tx, company: Company, customer_id: str, given: RedeemIn) -> Redeemed:
    """Puts the reward's points aside. With a key that was used before, nothing happens again."""
    memo = _build_memo(customer_id, given)
    book = await _open_book(tx, company, customer_id, given.voucher_code)
    known = await ledger.find_repeated(tx, company, memo)
    if known is not None:
        return await _answer_again(tx, company, book, known)
    option = await _get_offered(tx, company, given)
    ledger.refuse_closed(book)
    reservation = await _hold(tx, company, book, option, memo)
    entry = book.written[-1]
    redemption = _build_redemption(option, reservation, entry, given.voucher_code)
    await queries.insert_redemption(tx, company.id, redemption)
    wallet = await ledger.close_book(tx, company, book, "api")
    log = f"{option.reward_name}: reserved"
    await timeline.record(tx, company, NewTimelineEntry(customer_id, "reward_redeemed", edit_log=log))
    await emit(tx, company, RedemptionUpdated(redemption))
    return Redeemed(wallet, redemption, entry)


async def commit(tx: Tx, company: Company, id: str) -> Redemption:
    """Spends the points, which makes the voucher valid."""
    return await _end(tx, company, id, ledger.commit)


async def release(tx: Tx, company: Company, id: str) -> Redemption:
    """Gives the points back."""
    return await _end(tx, company, id, ledger.release)


async def fail(tx: Tx, company: Company, id: str, reason: str) -> Redemption:
    """Gives the points back, spent ones too, since the customer cannot have the reward."""
    if not reason.strip():
        raise Invalid.field("reason", "must hold more than blanks")
    return await _end(tx, company, id, partial(ledger.undo, reason=reason))


async def _end(tx: Tx, company: Company, id: str, end: Callable[[Tx, Company, str], Awaitable[object]]) -> Redemption:
    """By ending the reservation of its points."""
    reservation_id = await queries.get_reservation_id(tx, company.id, id)
    try:
        await end(tx, company, reservation_id)
    except ReservationClosed:
        ended = await queries.get_redemption(tx, company.id, id)
        raise ReservationClosed(f"The redemption is already {ended.status}.") from None
    return await queries.get_redemption(tx, company.id, id)


async def _open_book(tx: Tx, company: Company, customer_id: str, voucher_code: str | None) -> WalletLedger:
    """The customer's book; and the wallet settled of whoever still has the code though their time is over.

    The two wallets are locked in the order of their ids, so that no two callers wait for each other.
    """
    late = None if voucher_code is None else await queries.find_late_holder(tx, company.id, voucher_code)
    if late is not None and late < customer_id:
        await ledger.settle_wallet(tx, company, late)
    book = await ledger.open_book(tx, company, customer_id)
    if late is not None and late > customer_id:
        await ledger.settle_wallet(tx, company, late)
    return book


async def _answer_again(tx: Tx, company: Company, book: WalletLedger, known: LedgerEntry) -> Redeemed:
    redemption = await queries.get_redemption(tx, company.id, known.reference_id or "")
    return Redeemed(await ledger.close_book(tx, company, book, "api"), redemption, known)


async def _get_offered(tx: Tx, company: Company, given: RedeemIn) -> RewardOption:
    """The reward, if it is still what the customer was shown; raises Invalid naming what is not."""
    option = None
    if OPTION_ID.matches(given.reward_option_id):
        option = await queries.find_held_option(tx, company.id, given.reward_option_id)
    if option is None:
        raise Invalid.field("rewardOptionId", "is not the id of a reward")
    if given.reward_name != option.reward_name:
        raise Invalid.field("rewardName", f"must be {option.reward_name!r}, as the reward is called")
    if str(parse_cost("pointsCost", given.points_cost)) != option.cost_to_redeem:
        raise Invalid.field("pointsCost", f"must be {option.cost_to_redeem}, as the reward costs")
    return option


async def _hold(tx: Tx, company: Company, book: WalletLedger, option: RewardOption, memo: Memo) -> Reservation:
    portions = await ledger.pick_lots(tx, company, book, int(option.cost_to_redeem))
    id, standing = RESERVATION_ID.new(), book.standing
    book.hold(id, portions, memo)
    return await ledger.insert_reservation(
        tx, company.id, id, book.balance, standing.instant, standing.reservation_ttl_seconds, portions,
        memo.reference_type, memo.reference_id, memo.reference_id,
    )  # fmt: skip


def _build_memo(customer_id: str, given: RedeemIn) -> Memo:
    """What the entry says; the redemption that it refers to is made after it."""
    key = ledger.parse_key(given.idempotency_key)
    asked = msgspec.structs.replace(given, points_cost=str(given.points_cost))
    return Memo(
        reference_type=REFERENCE,
        reference_id=REDEMPTION_ID.new(),
        note=given.reward_name,
        metadata=ledger.build_metadata(given.metadata),
        idempotency_key=key,
        fingerprint=ledger.build_fingerprint("redeem", customer_id, asked) if key is not None else None,
    )


def _build_redemption(
    option: RewardOption, reservation: Reservation, entry: LedgerEntry, voucher_code: str | None
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
        metadata=None if entry.metadata is None else Raw(entry.metadata),
        reserved_until=reservation.expires_at,
        committed_at=None,
        expires_at=None,
        created_at=entry.occurred_at,
        updated_at=entry.occurred_at,
    )
