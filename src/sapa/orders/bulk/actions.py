"""Places many orders at once, by the same rules as one.

Other orders of the company wait from the first number to the commit. So the orders are computed before, if possible
ahead of the transaction, and what they announce while the database inserts them.
"""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import msgspec
from msgspec import UNSET, Struct

from sapa.customers import bulk as customers
from sapa.customers.profile import Profile, build_profile
from sapa.customers.types import CustomerRef, build_ref
from sapa.db.pool import Tx
from sapa.events import EncodedEvents, Event, encode_events
from sapa.http.errors import ApiError, Invalid
from sapa.orders.actions import EARLIEST, build_contact, build_customer_error, parse_past
from sapa.orders.announcements import build_placed, encode_list
from sapa.orders.bulk import queries
from sapa.orders.bulk.queries import EncodedOrder, OrderClock, OrderInsert, OrderNumbers
from sapa.orders.document import NewOrder, build_address, build_tags
from sapa.orders.history.changes import build_changes
from sapa.orders.history.types import Action, NewHistoryEntry
from sapa.orders.revision import Revision
from sapa.orders.settlement.balance import (
    add_payment,
    add_refund,
    build_balance,
    build_payment,
    plan_refund,
    require_outstanding,
)
from sapa.orders.settlement.transfers import build_transfers
from sapa.orders.settlement.types import PaymentIn, RefundIn
from sapa.orders.timeline_entries import build_entries
from sapa.orders.transitions import NEW, apply_statuses, begin, with_balance
from sapa.orders.types import (
    ORDER_ID,
    KnownOrder,
    Order,
    OrderChanged,
    OrderCreated,
    OrderCustomerIn,
    OrderPatch,
    OrdersPlaced,
    OrderUpdated,
)
from sapa.ports import publish
from sapa.timeline import actions as timeline
from sapa.timeline.actions import NewTimelineEntry
from sapa.timeline.types import EncodedEntries
from sapa.values.change_actor import ChangeActor
from sapa.values.company import Company
from sapa.values.instants import format_instant

END_OF_TIME = "9000-01-01T00:00:00.000Z"
LONGEST_AHEAD = timedelta(seconds=60)
"""How long before its transaction an order may be built: payments without a date have the instant of building."""


class BulkPayment(Struct, frozen=True):
    """A payment of an order to place."""

    amount: Decimal
    method: str | None
    """None for one that somebody had recorded by setting the status."""
    reference: str | None
    paid_at: datetime | None

    @property
    def body(self) -> PaymentIn:
        return PaymentIn(amount=self.amount, method=self.method or "", reference=self.reference, paid_at=self.paid_at)


class BulkRefund(Struct, frozen=True):
    """A refund of an order to place, and when it was made."""

    body: RefundIn
    at: datetime | None


class BulkOrder(Struct, frozen=True, kw_only=True):
    """One of many orders to place, without variants by id, and what happened to it since."""

    new_order: NewOrder
    customer_id: str | None = None
    contact: Profile | None = None
    """The customer's, who may be new."""
    placed_at: datetime | None = None
    payments: Sequence[BulkPayment] = ()
    refunds: Sequence[BulkRefund] = ()
    statuses: OrderPatch = OrderPatch()
    is_export: bool = False
    """Whether it is an order as an export of ours has it: then its payments may exceed its total, because it cost more
    when they were made."""
    is_history: bool = False
    """Whether it is imported without effects: only the order itself is stored, dated at its own time."""


class Step(Struct, frozen=True):
    """The order after one change, and when that happened."""

    revision: Revision
    action: Action
    at: str
    reference: str | None = None
    """The payment or refund that was recorded."""


class BuiltOrder(Struct, frozen=True):
    """A checked order, and the steps to its state."""

    order: BulkOrder
    id: str
    placed_at: str | None
    steps: list[Step]
    encoded: EncodedOrder
    built_at: str

    @property
    def latest(self) -> str:
        """The latest instant that it names."""
        return max(self.placed_at or "", *(step.at for step in self.steps))

    @property
    def new_order(self) -> NewOrder:
        return self.order.new_order

    @property
    def revision(self) -> Revision:
        return self.steps[-1].revision


class Announcements(Struct, frozen=True):
    """What orders that were placed together announce."""

    events: EncodedEvents
    history: bytes | None
    entries: EncodedEntries
    changed: list[OrderChanged]


def build_contact_profile(company: Company, contact: OrderCustomerIn) -> Profile:
    """Raises the customer's error, with its fields named as in the order."""
    try:
        return build_profile(company, build_contact(contact))
    except Invalid as error:
        raise build_customer_error(error) from None


def build_ahead(order: BulkOrder) -> BulkOrder | BuiltOrder:
    """Computes what needs no database; an invalid order is refused when it is placed."""
    now = format_instant(datetime.now(UTC))
    built = _build_or_refuse(order, OrderClock(now, company_now=END_OF_TIME))
    return order if isinstance(built, ApiError) else built


async def place_together(
    tx: Tx, company: Company, orders: Sequence[BulkOrder | BuiltOrder], *, actor: ChangeActor
) -> list[ApiError | None]:
    """For each, why it was refused, or None. Raises ConcurrentChange, or a unique violation, when another transaction
    stored the same customer or order: then place them one by one."""
    clock = await queries.get_clock(tx, company.id)
    built = _build_rest(orders, clock)
    valid = [one for one in built if isinstance(one, BuiltOrder)]
    refs = await _list_customers(tx, company, valid)
    new = [(one, ref) for one in valid if not isinstance(ref := refs[one.id], ApiError)]
    if new:
        await _insert(tx, company, new, actor)
    return [_find_refusal(one, refs) for one in built]


async def list_by_order_id(db: Tx, company: Company, order_ids: Sequence[str]) -> dict[str, KnownOrder]:
    """The orders with the caller's own ids."""
    found = await queries.list_by_order_ids(db, company.id, order_ids) if order_ids else []
    return {order.order_id: order for order in found}


def has_same_contents(order: Order, patch: OrderPatch) -> bool:
    """Whether the patch changes nothing; raises Invalid. It must not edit lines or prices."""
    if any(getattr(patch, name) not in {UNSET, getattr(order, name)} for name in ("fulfillment_status", "status")):
        return False
    if patch.financial_status not in {UNSET, order.financial_status}:
        return False
    if patch.notes not in {UNSET, order.notes} or (patch.tags is not UNSET and build_tags(patch.tags) != order.tags):
        return False
    if patch.shipping_address is UNSET:
        return True
    stored = None if order.shipping_address is None else bytes(order.shipping_address)
    return build_address(patch.shipping_address, order.shipping_address) == stored


def _find_refusal(one: BuiltOrder | ApiError, refs: dict[str, CustomerRef | ApiError | None]) -> ApiError | None:
    refusal = one if isinstance(one, ApiError) else refs[one.id]
    return refusal if isinstance(refusal, ApiError) else None


def _build_rest(orders: Sequence[BulkOrder | BuiltOrder], clock: OrderClock) -> list[BuiltOrder | ApiError]:
    """Those that were built ahead are built again if they name the future, or were built too long ago or by a clock
    that differs."""
    earliest = format_instant(datetime.fromisoformat(clock.now) - LONGEST_AHEAD)
    built: list[BuiltOrder | ApiError] = []
    for order in orders:
        if isinstance(order, BulkOrder):
            built.append(_build_or_refuse(order, clock))
        elif order.latest <= clock.company_now and earliest <= order.built_at <= clock.now:
            built.append(order)
        else:
            built.append(_build_or_refuse(order.order, clock))
    return built


def _build_or_refuse(order: BulkOrder, clock: OrderClock) -> BuiltOrder | ApiError:
    try:
        placed_at = None if order.placed_at is None else _format_placed_at(order.placed_at, clock)
        now = clock.now if placed_at is None or not order.is_history else placed_at
        steps = list(_list_steps(order, placed_at, now, clock.company_now))
    except ApiError as error:
        return error
    id, new_order, revision = ORDER_ID.new(), order.new_order, steps[-1].revision
    transfers = build_transfers(build_balance(new_order.priced.total), revision.balance)
    insert = OrderInsert(id, new_order, revision, placed_at, not order.is_history, transfers)
    return BuiltOrder(order, id, placed_at, steps, queries.encode_order(insert), clock.now)


def _format_placed_at(instant: datetime, clock: OrderClock) -> str:
    """Truncated to milliseconds, because PostgreSQL would round, and the current instant could round into the future.
    Instants in this format sort like their texts."""
    if instant < EARLIEST:
        raise Invalid.field("createdAt", f"must not be before {EARLIEST.year}")
    placed_at = format_instant(instant)
    if placed_at > clock.company_now:
        raise Invalid.field("createdAt", "must not be in the future")
    return placed_at


def _list_steps(order: BulkOrder, placed_at: str | None, now: str, clock: str) -> Iterator[Step]:
    """From a new order to its state: payments, refunds, then the statuses. A refunded order was paid first. Payments
    and refunds without a date have the order's."""
    new_order = order.new_order
    revision = begin(new_order)
    yield Step(revision, "created", now)
    for payment in order.payments:
        paid_at = placed_at or now if payment.paid_at is None else parse_past("paidAt", payment.paid_at, clock)
        new_payment = build_payment(new_order.currency, payment.body, paid_at, now)
        if not order.is_export:
            require_outstanding(revision.balance, new_payment.amount)
        new_payment = msgspec.structs.replace(new_payment, method=payment.method)
        revision = with_balance(revision, add_payment(revision.balance, new_order.priced.total, new_payment))
        yield Step(revision, "payment_recorded", paid_at, new_payment.id)
    for refund in order.refunds:
        refunded_at = placed_at or now if refund.at is None else parse_past("createdAt", refund.at, clock)
        planned = plan_refund(new_order.currency, revision.priced, revision.balance, refund.body, refunded_at)
        revision = with_balance(revision, add_refund(revision.balance, revision.priced, planned))
        yield Step(revision, "refund_recorded", refunded_at, planned.refund.id)
    is_unpaid = revision.state.financial_status == "pending"
    for patch in list_patches(order.statuses, is_unpaid=is_unpaid, is_export=order.is_export):
        revision = apply_statuses(revision, patch, now)
        yield Step(revision, "updated", now)


def list_patches(statuses: OrderPatch, *, is_unpaid: bool, is_export: bool) -> Iterator[OrderPatch]:
    """From a new order with its payments to its statuses. A refunded order was paid first; but an archived one that an
    export of ours shows without payments had been set to refunded."""
    if statuses.financial_status == "refunded" and statuses.status != "refunded" and is_unpaid:
        if is_export and statuses.status == "archived":
            yield OrderPatch(status="refunded", fulfillment_status=statuses.fulfillment_status)
        else:
            yield OrderPatch(financial_status="paid")
    if statuses != OrderPatch():
        yield statuses


async def _list_customers(
    tx: Tx, company: Company, orders: Sequence[BuiltOrder]
) -> dict[str, CustomerRef | ApiError | None]:
    """The customer of each order by the order's id."""
    refs: dict[str, CustomerRef | ApiError | None] = dict.fromkeys((one.id for one in orders), None)
    named = {one.id: name for one in orders if (name := one.order.customer_id) is not None}
    known_ids = await customers.list_share_locked(tx, company, sorted(set(named.values())))
    for id, name in named.items():
        customer = known_ids.get(name)
        refs[id] = build_ref(customer) if customer else Invalid.field("customerId", "is not the id of a customer")
    by_contact = [(one, one.order.contact) for one in orders if one.order.contact is not None]
    is_history = any(one.order.is_history for one, _ in by_contact)
    contacts = [contact for _, contact in by_contact]
    found = await customers.find_or_create_together(tx, company, contacts, prefers_email=is_history) if contacts else []
    for (one, _), result in zip(by_contact, found, strict=True):
        refs[one.id] = result
    return refs


async def _insert(
    tx: Tx, company: Company, new: Sequence[tuple[BuiltOrder, CustomerRef | None]], actor: ChangeActor
) -> None:
    documents = queries.build_documents([(one.encoded, customer) for one, customer in new])
    numbers = await queries.take_numbers(tx, company.id, len(new))
    inserting = asyncio.create_task(queries.insert_orders(tx, company.id, actor, numbers, documents))
    try:
        await asyncio.sleep(0)  # it sends its statement, and the database stores the orders meanwhile
        announcements = _build_announcements(new, numbers, actor)
    finally:
        await inserting
    await _announce(tx, company, announcements, actor)


def _build_order(one: BuiltOrder, customer: CustomerRef | None, place: int, numbers: OrderNumbers) -> Order:
    """The order as the database has it."""
    return msgspec.structs.replace(
        build_placed(one.id, one.new_order, one.revision, customer),
        order_number=str(numbers.first + place),
        created_at=one.placed_at or numbers.at,
        updated_at=max(one.placed_at or "", numbers.at),
    )


def _build_announcements(
    new: Sequence[tuple[BuiltOrder, CustomerRef | None]], numbers: OrderNumbers, actor: ChangeActor
) -> Announcements:
    """Step by step, as if they had been placed and changed one after the other."""
    events: list[Event] = []
    history: list[tuple[str, NewHistoryEntry, str]] = []
    entries: list[NewTimelineEntry] = []
    changed: list[OrderChanged] = []
    for place, (one, customer) in enumerate(new):
        order, first, is_history = _build_order(one, customer, place, numbers), one.steps[0], one.order.is_history
        at = datetime.fromisoformat(first.at) if is_history else None
        entries.extend(build_entries(order, None, NEW, at))
        if not is_history:
            events.append(OrderCreated(_with_step(order, one, first)))
            changed.append(OrderChanged(order, one.revision.state.real_status))
        for before, after in pairwise(one.steps):
            at = datetime.fromisoformat(after.at) if is_history else None
            entries.extend(build_entries(order, before.revision.state, after.revision.state, at))
            if not is_history:
                events.append(OrderUpdated(_with_step(order, one, after)))
                changes = build_changes(before.revision, after.revision)
                entry = NewHistoryEntry(after.action, actor, after.reference, changes)
                history.append((one.id, entry, order.updated_at))
    encoded_history = queries.encode_history(history) if history else None
    return Announcements(encode_events(events), encoded_history, timeline.encode_entries(entries), changed)


async def _announce(tx: Tx, company: Company, announcements: Announcements, actor: ChangeActor) -> None:
    await timeline.announce_encoded(tx, company, announcements.events, announcements.entries, are_known=True)
    if announcements.history is not None:
        await queries.insert_history(tx, company.id, actor, announcements.history)
    if announcements.changed:
        await publish(tx, company, OrdersPlaced(announcements.changed))


def _with_step(order: Order, one: BuiltOrder, step: Step) -> Order:
    """The order as it was after a step."""
    if step is one.steps[-1]:
        return order
    state, balance = step.revision.state, step.revision.balance
    return msgspec.structs.replace(
        order,
        status=state.status,
        fulfillment_status=state.fulfillment_status,
        financial_status=state.financial_status,
        line_items=encode_list(step.revision.priced.line_items),
        total_paid=balance.total_paid,
        total_refunded=balance.total_refunded,
        outstanding=balance.outstanding,
        payments=encode_list(balance.payments),
        refunds=encode_list(balance.refunds),
        fulfillments=encode_list(balance.fulfillments),
    )
