"""How rewards and redemptions are reached."""

from datetime import UTC, datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from sapa.access.types import Scope
from sapa.customers import actions as customers
from sapa.db.listing import contains
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Invalid, NotFound
from sapa.http.query_string import POSITION, PageLimit, PageQuery, SearchText
from sapa.http.responses import Page, build_page
from sapa.loyalty.actions import wallet_id_of
from sapa.loyalty.rewards import actions, queries
from sapa.loyalty.rewards.types import (
    FailureIn,
    Redeemed,
    Redeemer,
    RedeemIn,
    Redemption,
    RedemptionId,
    Redemptions,
    RedemptionStatus,
    RedemptionSummary,
    RewardOption,
    RewardOptionId,
    RewardOptionIn,
    RewardOptionPatch,
    Tally,
    VoucherTaken,
)
from sapa.loyalty.types import (
    HistoryPagination,
    InsufficientPoints,
    LedgerKeyReused,
    LoyaltyDisabled,
    ReservationClosed,
)
from sapa.values.ids import CustomerId
from sapa.values.text_folding import fold

routes = Routes(
    "/loyalty",
    base=Base.CUSTOMER,
    tag="Rewards",
    about="What points are redeemed for, and redemptions with their vouchers.",
)

END_OF_TIME = datetime.max.replace(tzinfo=UTC)


class RewardOptionsQuery(PageQuery, frozen=True, kw_only=True):
    """Which rewards to list."""

    search: Annotated[SearchText, Meta(description="A part of the name.")] | None = None


class RedemptionsQuery(Struct, frozen=True, kw_only=True):
    """Which of a customer's redemptions to read."""

    search: Annotated[SearchText, Meta(description="A part of the voucher code or of the reward's name.")] | None = None
    status: Annotated[RedemptionStatus, Meta(description="Only redemptions with this status.")] | None = None
    limit: PageLimit = 20
    before: Annotated[datetime, Meta(description="Only redemptions made before this instant."), POSITION] | None = None


@routes.get("/reward-options", scope=Scope.CUSTOMERS_READ)
async def list_rewards(call: Call, query: RewardOptionsQuery) -> Page[RewardOption]:
    """List rewards.

    Newest first. `search` matches part of the name, ignoring case and accents.
    """
    filters: dict[str, Any] = {} if query.search is None else {"search": _pattern(query.search)}
    options, total = await queries.list_options(call.db, call.company.id, filters, query.limit, query.offset)
    return build_page(options, query.page, query.limit, total)


@routes.post("/reward-options", scope=Scope.CUSTOMERS_WRITE)
async def create_reward(call: Call, body: RewardOptionIn) -> RewardOption:
    """Create a reward.

    A percentage is at most 100, a fixed amount has at most the digits of the company's currency, and free shipping
    has no value.
    """
    return await actions.create_option(call.db, call.company, body)


@routes.get("/reward-options/{id}", scope=Scope.CUSTOMERS_READ, raises=[NotFound])
async def get_reward(call: Call, id: RewardOptionId) -> RewardOption:
    """Get one reward."""
    return await queries.get_option(call.db, call.company.id, id)


@routes.put("/reward-options/{id}", scope=Scope.CUSTOMERS_WRITE, raises=[NotFound])
async def update_reward(call: Call, id: RewardOptionId, body: RewardOptionPatch) -> RewardOption:
    """Update a reward.

    A field that you leave out keeps its value; null clears it. Existing redemptions keep the reward's previous terms.
    """
    return await actions.update_option(call.db, call.company, id, body)


@routes.delete("/reward-options/{id}", scope=Scope.CUSTOMERS_WRITE, raises=[NotFound])
async def delete_reward(call: Call, id: RewardOptionId) -> None:
    """Delete a reward.

    Its redemptions stay, and can still be committed or released.
    """
    await actions.delete_option(call.db, call.company, id)


@routes.post(
    "/customers/{customerId}/redeem",
    scope=Scope.CUSTOMERS_WRITE,
    status=200,
    raises=[NotFound, LoyaltyDisabled, InsufficientPoints, VoucherTaken, LedgerKeyReused],
)
async def redeem_reward(call: Call, customer_id: CustomerId, body: RedeemIn) -> Redeemed:
    """Redeem a reward.

    The reward's points are held for the program's reservationTtlSeconds, until you commit or release the redemption.
    The name and the cost must match the reward, so that customers pay only the price they saw. With an `idempotencyKey`
    the redemption happens only once, and the key never expires: the same request sent again returns the same redemption
    and entry, with the current wallet.
    """
    await _check_customer(call, customer_id)
    return await actions.redeem(call.db, call.company, customer_id, body)


@routes.post(
    "/redemptions/{id}/commit",
    scope=Scope.CUSTOMERS_WRITE,
    status=200,
    raises=[NotFound, LoyaltyDisabled, ReservationClosed],
)
async def commit_redemption(call: Call, id: RedemptionId) -> Redemption:
    """Commit a redemption.

    Its points are spent, and its voucher becomes valid for the time that the reward's expirationPreset sets.
    """
    return await actions.commit(call.db, call.company, id)


@routes.post(
    "/redemptions/{id}/release",
    scope=Scope.CUSTOMERS_WRITE,
    status=200,
    raises=[NotFound, LoyaltyDisabled, ReservationClosed],
)
async def release_redemption(call: Call, id: RedemptionId) -> Redemption:
    """Release a redemption.

    Its points become available again, and its voucher code can be used again.
    """
    return await actions.release(call.db, call.company, id)


@routes.post(
    "/redemptions/{id}/fail",
    scope=Scope.CUSTOMERS_WRITE,
    status=200,
    raises=[NotFound, LoyaltyDisabled, ReservationClosed],
)
async def fail_redemption(call: Call, id: RedemptionId, body: FailureIn) -> Redemption:
    """Report that a redemption failed.

    Use it when the customer cannot have the reward after all: the voucher could not be issued or is not accepted. The
    points are returned, even if the redemption is committed. They keep their expiry; points that are past it expire at
    once. The voucher code can be used again.
    """
    return await actions.fail(call.db, call.company, id, body.reason)


@routes.get("/customers/{customerId}/redemptions", scope=Scope.CUSTOMERS_READ, raises=[NotFound])
async def list_redemptions(call: Call, customer_id: CustomerId, query: RedemptionsQuery) -> Redemptions:
    """List a customer's redemptions.

    Newest first. To read older ones, send the response's nextBefore as `before`. None is skipped or repeated, even
    while new ones are created. An overdue redemption is shown as expired, even before the ledger has returned its
    points.
    """
    await _check_customer(call, customer_id)
    pattern = None if query.search is None else _pattern(query.search)
    found = await queries.list_redemptions(
        call.db, call.company.id, wallet_id_of(customer_id), query.limit + 1, query.before or END_OF_TIME, pattern,
        query.status,
    )  # fmt: skip
    page, has_more = found[: query.limit], len(found) > query.limit
    return Redemptions(page, HistoryPagination(query.limit, has_more, page[-1].created_at if has_more else None))


@routes.get("/customers/{customerId}/redemptions/summary", scope=Scope.CUSTOMERS_READ, raises=[NotFound])
async def get_redemption_summary(call: Call, customer_id: CustomerId) -> RedemptionSummary:
    """Get a summary of a customer's redemptions.

    The number of redemptions and their points, by status.
    """
    await _check_customer(call, customer_id)
    tallies = await queries.list_tallies(call.db, call.company.id, wallet_id_of(customer_id))
    return _build_summary(tallies)


@routes.get("/rewards/{rewardOptionId}/redeemers", scope=Scope.CUSTOMERS_READ, raises=[NotFound])
async def list_reward_redeemers(call: Call, reward_option_id: RewardOptionId, query: PageQuery) -> Page[Redeemer]:
    """List the customers who redeemed a reward.

    The latest redeemer comes first. Reserved and committed redemptions count; released, expired and failed ones do not.
    """
    await queries.get_option(call.db, call.company.id, reward_option_id)
    redeemers, total = await queries.list_redeemers(
        call.db, call.company.id, reward_option_id, query.limit, query.offset
    )
    return build_page(redeemers, query.page, query.limit, total)


async def _check_customer(call: Call, id: str) -> None:
    if await customers.find_customer(call.db, call.company, id) is None:
        raise NotFound


def _pattern(search: str) -> str:
    text = fold(search)
    if not text:
        raise Invalid.field("search", "must not be blank")
    return contains(text)


def _build_summary(tallies: list[queries.StatusTally]) -> RedemptionSummary:
    found = {tally.status: Tally(tally.count, str(tally.points)) for tally in tallies}
    total = Tally(sum(tally.count for tally in tallies), str(sum(tally.points for tally in tallies)))
    statuses = [name for name in RedemptionSummary.__struct_fields__ if name != "total"]
    return RedemptionSummary(total, *(found.get(status, Tally(0, "0")) for status in statuses))
