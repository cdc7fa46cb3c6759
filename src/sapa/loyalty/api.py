"""How the ledger and the program are reached."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.access.types import Scope
from sapa.customers import actions as customers
from sapa.customers.types import Customer
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.http.query_string import PageLimit
from sapa.loyalty import actions, queries
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
from sapa.values.ids import CustomerId

routes = Routes("/loyalty", base=Base.CUSTOMER, tag="Loyalty")

END_OF_TIME = datetime.max.replace(tzinfo=UTC)
LONGEST_CHECK_SECONDS = 60.0


class HistoryQuery(Struct, frozen=True, kw_only=True):
    """Which part of the ledger to read."""

    filter: Annotated[
        Literal["all", "points_added", "points_deducted"],
        Meta(description="Entries that raised the points, lowered them, or all; holds are only in all."),
    ] = "all"
    limit: PageLimit = 20
    before: Annotated[datetime, Meta(description="Only entries that occurred before this instant.")] | None = None


@routes.get("/settings", scope=Scope.CUSTOMERS_READ)
async def get_settings(call: Call) -> LoyaltySettings:
    """Get the loyalty program's settings."""
    return await program.get_settings(call.db, call.company)


@routes.put("/settings", scope=Scope.CUSTOMERS_WRITE)
async def update_settings(call: Call, body: LoyaltySettingsPatch) -> LoyaltySettings:
    """Update the loyalty program's settings.

    A field that is absent keeps its value. Points that were earned keep the expiry that they were earned with, and an
    order that has earned keeps the terms under which it did.
    """
    return await program.change_settings(call.db, call.company, body)


@routes.get("/point-conversion", scope=Scope.CUSTOMERS_READ)
async def get_point_conversion(call: Call) -> PointConversion:
    """Get the tiers by which orders earn points."""
    return PointConversion(await program.list_tiers(call.db, call.company))


@routes.post("/point-conversion", scope=Scope.CUSTOMERS_WRITE, status=200)
async def replace_point_conversion(call: Call, body: PointConversionIn) -> PointConversion:
    """Replace the tiers by which orders earn points.

    An order earns the points of the highest tier whose currencyAmount is not above its total, times how often that
    amount is in the total. Amounts are in the company's currency; orders in another earn nothing.
    """
    return PointConversion(await program.replace_tiers(call.db, call.company, body.tiers))


@routes.get("/customers/{customerId}/wallet", scope=Scope.CUSTOMERS_READ, raises=[NotFound])
async def get_wallet(call: Call, customer_id: CustomerId) -> Wallet:
    """Get a customer's points.

    Points past their time and reservations past theirs are counted as what they are, even before the ledger has
    their entries.
    """
    customer = await _get_customer(call, customer_id)
    wallet = await queries.find_wallet(call.db, call.company.id, actions.wallet_id_of(customer_id))
    return wallet or _build_empty_wallet(call.company.id, customer)


@routes.get("/customers/{customerId}/history", scope=Scope.CUSTOMERS_READ, raises=[NotFound])
async def get_history(call: Call, customer_id: CustomerId, query: HistoryQuery) -> History:
    """Get a customer's ledger entries.

    Newest first. Go on with `before` and the answer's nextBefore: no entry is left out and none comes twice, also
    while new ones are written.
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
)
async def adjust_points(call: Call, customer_id: CustomerId, body: AdjustmentIn) -> Adjusted:
    """Add or deduct points.

    Deducted points are those that expire soonest. With an `idempotencyKey` the adjustment happens once for ever: sent
    again, the same request gets the same entry, with the wallet as it is by then.
    """
    await _get_customer(call, customer_id)
    return await actions.adjust(call.db, call.company, customer_id, body)


@routes.post(
    "/customers/{customerId}/reservations",
    scope=Scope.CUSTOMERS_WRITE,
    raises=[NotFound, LoyaltyDisabled, InsufficientPoints],
)
async def reserve_points(call: Call, customer_id: CustomerId, body: ReservationIn) -> Reservation:
    """Reserve points.

    They are held until the reservation is committed or released, or its time is over; then they are available again.
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
async def commit_reservation(call: Call, id: ReservationId) -> Reservation:
    """Spend the reserved points."""
    return await actions.commit(call.db, call.company, id)


@routes.post(
    "/reservations/{id}/release",
    scope=Scope.CUSTOMERS_WRITE,
    status=200,
    raises=[NotFound, LoyaltyDisabled, ReservationClosed],
)
async def release_reservation(call: Call, id: ReservationId) -> Reservation:
    """Give the reserved points back."""
    return await actions.release(call.db, call.company, id)


@routes.get("/reconciliation", scope=Scope.CUSTOMERS_READ)
async def reconcile(call: Call) -> Reconciliation:
    """Check the ledger.

    Computes every wallet anew from its entries, lots and reservations, and lists what contradicts.
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
