"""How orders change."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import datetime

from sapa.customers import actions as customers
from sapa.customers.types import CustomerIn, CustomerRef, build_ref
from sapa.db.pool import Tx
from sapa.events import emit
from sapa.http.errors import FieldError, Invalid, NotFound
from sapa.orders import queries
from sapa.orders.document import (
    build_draft,
    build_revision,
    count_units,
    list_variant_ids,
    parse_taken,
    revision_of,
    with_sold,
)
from sapa.orders.timeline_entries import build_entries
from sapa.orders.transitions import NEW, OrderState
from sapa.orders.types import (
    ORDER_ID,
    InvalidTransition,
    LineItemVariant,
    Order,
    OrderChanged,
    OrderCreated,
    OrderCustomerIn,
    OrderIn,
    OrderPatch,
    OrderUpdated,
)
from sapa.ports import publish
from sapa.products import stock
from sapa.timeline import actions as timeline
from sapa.values.company import Company


async def place(
    tx: Tx,
    company: Company,
    body: OrderIn,
    *,
    placed_at: datetime | None = None,
    sold: Sequence[LineItemVariant | None] = (),
) -> Order:
    """A new order. For an imported one, pass when it was `placed_at` and which variant each line `sold`."""
    variants = await stock.list_on_sale(tx, company, list_variant_ids(body))
    draft = with_sold(build_draft(company, body, variants), sold)
    customer = await _find_or_create_customer(tx, company, body)
    taken = await stock.take(tx, company, count_units(draft.line_items))
    order = await queries.insert_order(tx, company.id, ORDER_ID.new(), draft, customer, taken, placed_at)
    await emit(tx, company, OrderCreated(order))
    await _announce_change(tx, company, order, None, NEW)
    return order


async def update(tx: Tx, company: Company, id: str, patch: OrderPatch) -> Order:
    """Writes and announces nothing when nothing changes."""
    stored = await queries.lock_order(tx, company.id, id)
    before, after = revision_of(stored), build_revision(stored, patch)
    if after == before:
        return stored.order
    if after.state.restocked and not stored.restocked:
        await stock.restock(tx, company, parse_taken(stored.taken))
    order = await queries.update_order(tx, company.id, id, after, before.state.cell)
    await emit(tx, company, OrderUpdated(order))
    await _announce_change(tx, company, order, before.state, after.state)
    return order


async def _announce_change(
    tx: Tx, company: Company, order: Order, before: OrderState | None, after: OrderState
) -> None:
    await timeline.record_all(tx, company, build_entries(order, before, after))
    await publish(tx, company, OrderChanged(order, after.real_status))


async def fulfil(tx: Tx, company: Company, id: str) -> None:
    """Marks an order as fulfilled because its parcel was shipped; an order that is not active stays unchanged."""
    with suppress(InvalidTransition):
        await update(tx, company, id, OrderPatch(fulfillment_status="fulfilled"))


async def find(tx: Tx, company: Company, id: str) -> Order | None:
    """The order with this id, ours or the caller's own."""
    if ORDER_ID.matches(id):
        with suppress(NotFound):
            return await queries.get_order(tx, company.id, id)
    return await queries.find_by_order_id(tx, company.id, id)


def stream_all(tx: Tx, company_id: int) -> AsyncIterator[list[Order]]:
    """All orders of the company in batches, the oldest first."""
    return queries.stream_all_orders(tx, company_id)


async def find_by_order_id(tx: Tx, company: Company, order_id: str) -> Order | None:
    """The order with the caller's own id."""
    return await queries.find_by_order_id(tx, company.id, order_id)


async def _find_or_create_customer(tx: Tx, company: Company, body: OrderIn) -> CustomerRef | None:
    if body.customer_id is not None:
        return await _get_customer(tx, company, body.customer_id)
    return None if body.customer is None else await _find_or_create_by_contact(tx, company, body.customer)


async def _get_customer(tx: Tx, company: Company, id: str) -> CustomerRef:
    customer = await customers.find_share_locked(tx, company, id)
    if customer is None:
        raise Invalid.field("customerId", "is not the id of a customer")
    return build_ref(customer)


async def _find_or_create_by_contact(tx: Tx, company: Company, body: OrderCustomerIn) -> CustomerRef:
    fields = {name: getattr(body, name) for name in body.__struct_fields__}
    try:
        return build_ref(await customers.find_or_create(tx, company, CustomerIn(**fields)))
    except Invalid as error:
        raise _in_customer(error) from None


def _in_customer(error: Invalid) -> Invalid:
    """The error of the customer, with its fields named as in the order."""
    if not error.details:
        return Invalid(error.message, details=[FieldError("customer", error.message)])
    details = [FieldError(f"customer.{detail.field}", detail.message) for detail in error.details]
    return Invalid(f"customer.{error.message}", details=details)
