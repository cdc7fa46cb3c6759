"""How the ledger and the program are reached."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.access.types import Scope
from sapa.customers import actions as customers
from sapa.customers.types import Customer
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.errors import NotFound
from sapa.http.query_string import POSITION, PageLimit
from sapa.loyalty import actions, queries
from sapa.loyalty.adjust import adjust, adjust_all
from sapa.loyalty.program import actions as program
from sapa.loyalty.reconciliation import actions as reconciliation
from sapa.loyalty.types import (
    Adjusted,
    AdjustmentIn,
    History,
    HistoryPagination,
    InsufficientPoints,
    LedgerKeyReused,
    LoyaltyDisabled,
    LoyaltySettings,
    LoyaltySettingsPatch,
    PointConversion,
    PointConversionIn,
    Reconciliation,
    Reservation,
    ReservationClosed,
    ReservationId,
    ReservationIn,
    Wallet,
    WalletFull,
)
from sapa.values.enum_names import EnumName
from sapa.values.ids import CustomerId

routes = Routes(
    "/loyalty",
    base=Base.CUSTOMER,
    tag="Loyalty",
    about="Points: the program's settings, wallets, the ledger, adjustments and reservations.",
)

END_OF_TIME = datetime.max.replace(tzinfo=UTC)
LONGEST_CHECK_SECONDS = 60.0


class HistoryQuery(Struct, frozen=True, kw_only=True):
    """Which part of the ledger to read."""

    filter: Annotated[
        Literal["all", "points_added", "points_deducted"],
        EnumName("LedgerFilter"),
        Meta(description="Entries that raised the points, lowered them, or all; holds are only in all."),
    ] = "all"
    limit: PageLimit = 20
    before: (
        Annotated[datetime, Meta(description="Only entries that occurred before this instant."), POSITION] | None
    ) = None


@routes.get("/settings", scope=Scope.CUSTOMERS_READ)
async def get_loyalty_settings(call: Call) -> LoyaltySettings:
    """Get the loyalty program's settings."""
    return await program.get_settings(call.db, call.company)


@routes.put("/settings", scope=Scope.CUSTOMERS_WRITE)
async def update_loyalty_settings(call: Call, body: LoyaltySettingsPatch) -> LoyaltySettings:
    """Update the loyalty program's settings.

    A field that you leave out keeps its value. Points that are already earned keep their expiry, and an order that has
    already earned points keeps its terms.
    """
    return await program.change_settings(call.db, call.company, body)


@routes.get("/point-conversion", scope=Scope.CUSTOMERS_READ)
async def get_point_conversion(call: Call) -> PointConversion:
    """Get the tiers that decide how many points orders earn."""
    return PointConversion(await program.list_tiers(call.db, call.company))


@routes.post("/point-conversion", scope=Scope.CUSTOMERS_WRITE, status=200, tool=ToolTraits(is_destructive=True))
async def replace_point_conversion(call: Call, body: PointConversionIn) -> PointConversion:
    """Replace the tiers that decide how many points orders earn.

    The highest tier whose currencyAmount does not exceed the order's total applies: the order earns its points once for
    each time that the amount fits into the total. Amounts are in the company's currency; orders in another currency
    earn nothing.
    """
    return PointConversion(await program.replace_tiers(call.db, call.company, body.tiers))


@routes.get("/customers/{customerId}/wallet", scope=Scope.CUSTOMERS_READ, raises=[NotFound])
async def get_loyalty_wallet(call: Call, customer_id: CustomerId) -> Wallet:
    """Get a customer's points.

    Expired points and expired reservations count as expired, even before the ledger has entries for them.
    """
    customer = await _get_customer(call, customer_id)
    wallet = await queries.find_wallet(call.db, call.company.id, actions.wallet_id_of(customer_id))
    return wallet or _build_empty_wallet(call.company.id, customer)


@routes.get("/customers/{customerId}/history", scope=Scope.CUSTOMERS_READ, raises=[NotFound])
async def list_loyalty_history(call: Call, customer_id: CustomerId, query: HistoryQuery) -> History:
    """List a customer's ledger entries.

    Newest first. To read older entries, send the response's nextBefore as `before`. No entry is skipped or repeated,
    even while new ones are written.
    """
    await _get_customer(call, customer_id)
    before = query.before or END_OF_TIME
    entries = await queries.list_entries(call.db, call.company.id, customer_id, query.filter, query.limit + 1, before)
    page, has_more = entries[: query.limit], len(entries) > query.limit
    return History(page, HistoryPagination(query.limit, has_more, page[-1].occurred_at if has_more else None))


@routes.post(
    "/customers/{customerId}/points/adjust",
    scope=Scope.CUSTOMERS_WRITE,
    status=200,
    raises=[NotFound, LoyaltyDisabled, InsufficientPoints, LedgerKeyReused, WalletFull],
    group=adjust_all,
)
async def adjust_points(call: Call, customer_id: CustomerId, body: AdjustmentIn) -> Adjusted:
    """Add or deduct points.

    The points that expire soonest are deducted first. With an `idempotencyKey` the adjustment happens only once, and
    the key never expires: the same request sent again returns the same entry, with the current wallet.
    """
    return await adjust(call.db, call.company, customer_id, body)


@routes.post(
    "/customers/{customerId}/reservations",
    scope=Scope.CUSTOMERS_WRITE,
    raises=[NotFound, LoyaltyDisabled, InsufficientPoints],
)
async def reserve_points(call: Call, customer_id: CustomerId, body: ReservationIn) -> Reservation:
    """Reserve points.

    Points are held until you commit or release the reservation, or until it expires and they become available again.
    Held points do not expire.
    """
    await _get_customer(call, customer_id)
    return await actions.reserve(call.db, call.company, customer_id, body)


@routes.post(
    "/reservations/{id}/commit",
    scope=Scope.CUSTOMERS_WRITE,
    status=200,
    raises=[NotFound, LoyaltyDisabled, ReservationClosed],
)
async def commit_point_reservation(call: Call, id: ReservationId) -> Reservation:
    """Spend the reserved points."""
    return await actions.commit(call.db, call.company, id)


@routes.post(
    "/reservations/{id}/release",
    scope=Scope.CUSTOMERS_WRITE,
    status=200,
    raises=[NotFound, LoyaltyDisabled, ReservationClosed],
)
async def release_point_reservation(call: Call, id: ReservationId) -> Reservation:
    """Release the reserved points."""
    return await actions.release(call.db, call.company, id)


@routes.get("/reconciliation", scope=Scope.CUSTOMERS_READ, is_long_read=True)
async def check_loyalty_ledger(call: Call) -> Reconciliation:
    """Check the loyalty ledger.

    Recomputes every wallet from its entries, lots and reservations, and lists every mismatch.
    """
    return await reconciliation.reconcile(call.db, call.company.id, LONGEST_CHECK_SECONDS)


async def _get_customer(call: Call, id: str) -> Customer:
    customer = await customers.find_customer(call.db, call.company, id)
    if customer is None:
        raise NotFound
    return customer


def _build_empty_wallet(company_id: int, customer: Customer) -> Wallet:
    """The wallet of a customer who never had points."""
    return Wallet(
        id=actions.wallet_id_of(customer.id),
        company_id=company_id,
        customer_id=customer.id,
        available_points="0",
        reserved_points="0",
        lifetime_earned_points="0",
        lifetime_burned_points="0",
        version="0",
        last_ledger_at=None,
        created_at=customer.created_at,
        updated_at=customer.created_at,
    )
