"""How orders change.

Every change locks the order, builds its next revision (pure: `transitions.py`, `editing.py`, `settlement`) and saves
it: one statement stores the order with its history and the money that moved.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import UNSET

from sapa.access import actions as access
from sapa.customers import actions as customers
from sapa.customers.types import CustomerIn, CustomerRef, build_ref
from sapa.db.pool import Connection, Tx, notify_after_commit
from sapa.events import CHANNEL, is_silent
from sapa.http.errors import FieldError, Invalid, NotFound
from sapa.orders import queries
from sapa.orders.announcements import announce_change, announce_new, build_placed, build_revised
from sapa.orders.backfill import actions as backfill
from sapa.orders.document import (
    NewOrder,
    build_address,
    build_new_order,
    build_tags,
    count_units,
    list_variant_ids,
    with_sold,
)
from sapa.orders.editing import edit, is_edit
from sapa.orders.history.changes import build_changes
from sapa.orders.history.types import Action, NewHistoryEntry
from sapa.orders.pricing.types import LineItemVariant
from sapa.orders.revision import Revision, revision_of
from sapa.orders.settlement.balance import (
    add_payment,
    add_refund,
    build_payment,
    find_same_payment,
    plan_refund,
    require_names,
    require_outstanding,
)
from sapa.orders.settlement.fulfilment import build_fulfillment
from sapa.orders.settlement.restocking import build_restocking, count_restocked, refund_lines
from sapa.orders.settlement.transfers import build_transfers
from sapa.orders.settlement.types import (
    Fulfillment,
    FulfillmentIn,
    InvalidTransition,
    OrderFull,
    Payment,
    PaymentIn,
    Refund,
    RefundIn,
)
from sapa.orders.shipments import SHIPMENTS
from sapa.orders.transitions import (
    NEW,
    apply_statuses,
    begin,
    derive_fulfilment,
    record_statuses,
    with_balance,
    with_fulfillment,
)
from sapa.orders.types import (
    ORDER_ID,
    CustomerSales,
    Order,
    OrderChanged,
    OrderCustomerIn,
    OrderIn,
    OrderPatch,
    StoredOrder,
)
from sapa.ports import publish
from sapa.products import stock
from sapa.products.types import VariantOnSale
from sapa.values.change_actor import SYSTEM, ChangeActor
from sapa.values.company import Company
from sapa.values.instants import format_instant

MAX_SUMMED = 10_000
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
CLOCK_SKEW = timedelta(minutes=5)
"""How far ahead of ours a caller's clock may be."""


async def place(
    tx: Tx,
    company: Company,
    body: OrderIn,
    *,
    placed_at: datetime | None = None,
    sold: Sequence[LineItemVariant | None] = (),
    actor: ChangeActor = SYSTEM,
) -> Order:
    """Places an order. For an imported one, pass when it was `placed_at` and which variant each line `sold`."""
    variants = await stock.list_on_sale(tx, company, list_variant_ids(body.line_items))
    order = with_sold(build_new_order(company, body, variants), sold)
    customer = await find_or_create_customer(tx, company, body.customer_id, body.customer)
    return await place_new(tx, company, order, customer, placed_at=placed_at, actor=actor)


async def place_new(
    tx: Tx,
    company: Company,
    new: NewOrder,
    customer: CustomerRef | None,
    *,
    placed_at: datetime | None = None,
    actor: ChangeActor = SYSTEM,
) -> Order:
    """Places an order that is already checked and priced."""
    taken = await stock.take(tx, company, count_units(new.priced.line_items))
    order = build_placed(ORDER_ID.new(), new, begin(new), customer)
    announcement = announce_new(order, is_silent=is_silent(tx))
    inserted = await queries.insert_order(tx, company.id, order, customer, taken, placed_at, actor, announcement)
    order = msgspec.structs.replace(
        order, order_number=inserted.order_number, created_at=inserted.created_at, updated_at=inserted.updated_at
    )
    if inserted.has_deliveries:
        notify_after_commit(tx, CHANNEL)
    await publish(tx, company, OrderChanged(order, NEW.real_status))
    return order


async def update(tx: Tx, company: Company, id: str, patch: OrderPatch, *, actor: ChangeActor = SYSTEM) -> Order:
    """Writes and announces nothing when nothing changes."""
    stored = await _lock(tx, company, id)
    before = revision_of(stored)
    lines = [] if patch.line_items is UNSET else [line for line in patch.line_items if line.id is None]
    variants = await stock.list_on_sale(tx, company, list_variant_ids(lines))
    after = _build_revision(company, stored, before, patch, variants)
    if after == before:
        return stored.order
    after = await _move_stock(tx, company, before, after)
    action: Action = "edited" if is_edit(patch) and after.priced != before.priced else "updated"
    return await _save(tx, company, stored, before, after, action, actor)


async def record_payment(
    tx: Tx, company: Company, id: str, body: PaymentIn, *, actor: ChangeActor = SYSTEM
) -> tuple[Payment, bool]:
    """The payment, and whether it is new: one with the same reference is recorded once."""
    require_names(body)
    stored = await _lock(tx, company, id)
    before = revision_of(stored)
    if existing := find_same_payment(before.balance, body):
        return existing, False
    if before.state.real_status == "refunded":
        raise InvalidTransition("The order is refunded; it cannot be paid.")
    paid_at = await _get_past_instant(tx, company, "paidAt", body.paid_at, stored.now)
    payment = build_payment(stored.currency, body, paid_at, stored.now)
    require_outstanding(before.balance, payment.amount)
    after = with_balance(before, add_payment(before.balance, before.priced.total, payment))
    await _save(tx, company, stored, before, after, "payment_recorded", actor, payment.id)
    return payment, True


async def record_past_payment(
    tx: Tx, company: Company, id: str, body: PaymentIn, *, has_method: bool, may_exceed: bool, actor: ChangeActor
) -> None:
    """A payment of an imported order. One that somebody had recorded by setting the status has no method. It may exceed
    the outstanding amount if the order cost more when it was made."""
    stored = await _lock(tx, company, id)
    before = revision_of(stored)
    paid_at = await _get_past_instant(tx, company, "paidAt", body.paid_at, stored.now)
    payment = build_payment(stored.currency, body, paid_at, stored.now)
    if not may_exceed:
        require_outstanding(before.balance, payment.amount)
    if not has_method:
        payment = msgspec.structs.replace(payment, method=None)
    after = with_balance(before, add_payment(before.balance, before.priced.total, payment))
    await _save(tx, company, stored, before, after, "payment_recorded", actor, payment.id)


async def record_collected(
    tx: Tx, company: Company, id: str, body: PaymentIn, *, actor: ChangeActor = SYSTEM
) -> Payment | None:
    """A payment that a carrier collected, by its reference once: at most the outstanding amount is recorded. None if
    nothing was outstanding, or the order is refunded."""
    revision = revision_of(await _lock(tx, company, id))
    existing = next((one for one in revision.balance.payments if one.reference == body.reference), None)
    amount = min(body.amount, revision.balance.outstanding)
    if existing is not None or amount <= 0 or revision.state.real_status == "refunded":
        return existing
    payment, _ = await record_payment(tx, company, id, msgspec.structs.replace(body, amount=amount), actor=actor)
    return payment


async def refund(
    tx: Tx, company: Company, id: str, body: RefundIn, *, at: datetime | None = None, actor: ChangeActor = SYSTEM
) -> Refund:
    """Returns money, at most what was paid, and units to the stock, at most those that the order took from it. For an
    imported refund, pass when it was made."""
    stored = await _lock(tx, company, id)
    before = revision_of(stored)
    refunded_at = await _get_past_instant(tx, company, "createdAt", at, stored.now)
    planned = plan_refund(stored.currency, before.priced, before.balance, body, refunded_at)
    restocking = build_restocking(before.priced.line_items, body, before.taken)
    tracked = await stock.restock(tx, company, restocking.returned)
    lines = count_restocked(planned.refund.line_items, restocking, before.priced.line_items, tracked)
    new_refund = msgspec.structs.replace(planned.refund, line_items=lines)
    priced = msgspec.structs.replace(before.priced, line_items=refund_lines(before.priced.line_items, new_refund))
    balance = add_refund(before.balance, priced, msgspec.structs.replace(planned, refund=new_refund))
    revised = msgspec.structs.replace(before, priced=priced, taken=restocking.taken)
    after = derive_fulfilment(with_balance(revised, balance))
    await _save(tx, company, stored, before, after, "refund_recorded", actor, new_refund.id)
    return new_refund


async def fulfil(tx: Tx, company: Company, id: str, body: FulfillmentIn, *, actor: ChangeActor = SYSTEM) -> Fulfillment:
    """Hands over the units that the body names, or all that are open."""
    stored = await _lock(tx, company, id)
    before = revision_of(stored)
    if before.state.status != "active":
        raise InvalidTransition(f"Units are fulfilled only while the order is active; it is {before.state.status}.")
    if body.shipment_id is not None and await SHIPMENTS.installed.find_order_id(tx, company, body.shipment_id) != id:
        raise Invalid.field("shipmentId", "is not the id of a shipment of this order")
    fulfillment = build_fulfillment(before.priced.line_items, body.line_items, body.shipment_id, stored.now)
    await _save(tx, company, stored, before, with_fulfillment(before, fulfillment), "fulfilled", actor, fulfillment.id)
    return fulfillment


async def fulfil_by_shipment(tx: Tx, company: Company, id: str, shipment_id: str) -> None:
    """The order's parcel was shipped: fulfils all open units, unless the shipment has a fulfilment of its own. An order
    that is not active, or has nothing open, stays unchanged."""
    stored = await _lock(tx, company, id)
    fulfillments = revision_of(stored).balance.fulfillments
    if any(one.shipment_id == shipment_id and not one.cancelled_at for one in fulfillments):
        return
    with suppress(InvalidTransition, OrderFull):
        await fulfil(tx, company, id, FulfillmentIn(shipment_id=shipment_id))


async def record_earlier_changes(tx: Tx, company: Company, id: str) -> None:
    """Adds the payments, refunds and fulfilments that a process of an earlier version left out, if there are any."""
    await _lock(tx, company, id)


async def find(tx: Tx, company: Company, id: str) -> Order | None:
    """The order with this id, ours or the caller's own."""
    if ORDER_ID.matches(id):
        with suppress(NotFound):
            return await queries.get_order(tx, company.id, id)
    return await queries.find_by_order_id(tx, company.id, id)


def stream_all(tx: Tx, company_id: int) -> AsyncIterator[list[Order]]:
    """All orders of the company in batches, the oldest first."""
    return queries.stream_all_orders(tx, company_id)


async def sum_sales_to(db: Connection, company: Company, customer_id: str) -> list[CustomerSales]:
    """What a customer bought, by currency, the currency with the most orders first."""
    return await queries.sum_sales(db, company.id, customer_id, MAX_SUMMED)


async def find_by_order_id(tx: Tx, company: Company, order_id: str) -> Order | None:
    """The order with the caller's own id."""
    return await queries.find_by_order_id(tx, company.id, order_id)


async def find_or_create_customer(
    tx: Tx, company: Company, customer_id: str | None, contact: OrderCustomerIn | None
) -> CustomerRef | None:
    if customer_id is not None:
        return await _get_customer(tx, company, customer_id)
    return None if contact is None else await _find_or_create_by_contact(tx, company, contact)


async def _lock(tx: Tx, company: Company, id: str) -> StoredOrder:
    """Locks the order. Adds first what a process of an earlier version left out during an upgrade."""
    stored = await queries.lock_order(tx, company.id, id)
    if stored.is_complete and stored.is_recorded:
        return stored
    if not stored.is_complete:
        await backfill.complete(tx, company, id)
        return await queries.lock_order(tx, company.id, id)
    before = revision_of(stored)
    after = record_statuses(before, stored.now)
    if after == before:
        await queries.mark_recorded(tx, company.id, id)
        return stored
    await _save(tx, company, stored, before, after, "updated", SYSTEM)
    return await queries.lock_order(tx, company.id, id)


def _build_revision(
    company: Company,
    stored: StoredOrder,
    before: Revision,
    patch: OrderPatch,
    variants: dict[str, VariantOnSale],
) -> Revision:
    """The order with the patch applied; raises Invalid or InvalidTransition.

    The contents of an active order change before its statuses, so that one call can edit and pay it; otherwise after
    them, so that one call can unarchive and edit it.
    """
    address, tags = patch.shipping_address, patch.tags
    after = msgspec.structs.replace(
        before,
        notes=before.notes if patch.notes is UNSET else patch.notes,
        shipping_address=before.shipping_address
        if address is UNSET
        else build_address(address, stored.shipping_address),
        tags=before.tags if tags is UNSET else build_tags(tags),
    )
    is_active = before.state.status == "active"
    if is_edit(patch) and is_active:
        after = edit(after, patch, company, stored.currency, variants)
    after = apply_statuses(after, patch, stored.now)
    if is_edit(patch) and not is_active:
        after = edit(after, patch, company, stored.currency, variants)
    return after


async def _move_stock(tx: Tx, company: Company, before: Revision, after: Revision) -> Revision:
    """Takes the units that an edit added and returns those that it removed; a cancelled order returns all."""
    if after.state.restocked and not before.state.restocked:
        await stock.restock(tx, company, before.taken)
        return msgspec.structs.replace(after, taken={})
    old, new = count_units(before.priced.line_items), count_units(after.priced.line_items)
    changes = {id: n for id in old | new if (n := new.get(id, 0) - old.get(id, 0))}
    if not changes:
        return after
    returned = {id: min(-n, before.taken.get(id, 0)) for id, n in changes.items() if n < 0}
    taken = await stock.exchange(tx, company, {id: n for id, n in changes.items() if n > 0}, returned)
    left = {id: before.taken.get(id, 0) + taken.get(id, 0) - returned.get(id, 0) for id in before.taken | taken}
    return msgspec.structs.replace(after, taken={id: units for id, units in left.items() if units})


async def _save(
    tx: Tx,
    company: Company,
    stored: StoredOrder,
    before: Revision,
    after: Revision,
    action: Action,
    actor: ChangeActor,
    reference: str | None = None,
) -> Order:
    entry = NewHistoryEntry(action, actor, reference, build_changes(before, after))
    transfers = build_transfers(before.balance, after.balance)
    order = build_revised(stored, before, after)
    announcement = announce_change(order, before.state, after.state, is_silent=is_silent(tx))
    updated = await queries.update_order(tx, company.id, stored.id, before, after, entry, transfers, announcement)
    order = msgspec.structs.replace(order, updated_at=updated.updated_at)
    if updated.has_deliveries:
        notify_after_commit(tx, CHANNEL)
    await publish(tx, company, OrderChanged(order, after.state.real_status, stored.earns))
    return order


async def _get_past_instant(tx: Tx, company: Company, field: str, instant: datetime | None, now: str) -> str:
    """The instant, or now. It is in the past by the company's clock, which a test environment can move ahead."""
    if instant is None:
        return now
    if company.is_test:
        now = format_instant((await access.read_clock(tx, company.id)).now)
    return parse_past(field, instant, now)


def parse_past(field: str, instant: datetime, now: str) -> str:
    if instant < EARLIEST:
        raise Invalid.field(field, f"must not be before {EARLIEST.year}")
    if instant > datetime.fromisoformat(now) + CLOCK_SKEW:
        raise Invalid.field(field, "must not be in the future")
    return format_instant(instant)


async def _get_customer(tx: Tx, company: Company, id: str) -> CustomerRef:
    customer = await customers.find_share_locked(tx, company, id)
    if customer is None:
        raise Invalid.field("customerId", "is not the id of a customer")
    return customer


async def _find_or_create_by_contact(tx: Tx, company: Company, body: OrderCustomerIn) -> CustomerRef:
    try:
        return build_ref(await customers.find_or_create(tx, company, build_contact(body)))
    except Invalid as error:
        raise build_customer_error(error) from None


def check_contact(company: Company, body: OrderCustomerIn) -> None:
    """Raises Invalid if no customer can be found or created by it."""
    try:
        customers.check(company, build_contact(body))
    except Invalid as error:
        raise build_customer_error(error) from None


def build_contact(body: OrderCustomerIn) -> CustomerIn:
    return CustomerIn(**{name: getattr(body, name) for name in OrderCustomerIn.__struct_fields__})


def build_customer_error(error: Invalid) -> Invalid:
    """The error of the customer, with its fields named as in the order."""
    if not error.details:
        return Invalid(error.message, details=[FieldError("customer", error.message)])
    details = [FieldError(f"customer.{detail.field}", detail.message) for detail in error.details]
    return Invalid(f"customer.{error.message}", details=details)
