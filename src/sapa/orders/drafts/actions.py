"""How draft orders change."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from sapa.customers import actions as customers
from sapa.db.pool import Tx
from sapa.http.errors import Invalid
from sapa.orders import actions as orders
from sapa.orders.document import NewOrder, build_address, build_new_order, build_tags, check_own_id, list_variant_ids
from sapa.orders.drafts import queries
from sapa.orders.drafts.queries import DraftContent
from sapa.orders.drafts.types import (
    DRAFT_ORDER_ID,
    DraftCompleted,
    DraftCompletion,
    DraftOrder,
    DraftOrderIn,
    DraftOrderPatch,
)
from sapa.orders.editing import EDITED, edit_priced
from sapa.orders.revision import read_priced
from sapa.orders.types import LineItemIn, Order, OrderCustomerIn, OrderIn, OrderPatch
from sapa.products import stock
from sapa.products.types import VariantOnSale
from sapa.values.change_actor import SYSTEM, ChangeActor
from sapa.values.company import Company

_read_contact = msgspec.json.Decoder(OrderCustomerIn).decode


async def create(tx: Tx, company: Company, body: DraftOrderIn) -> DraftOrder:
    order = OrderIn(**{name: getattr(body, name) for name in body.__struct_fields__})
    draft = build_new_order(company, order, await _list_variants(tx, company, body.line_items))
    await _require_customer(tx, company, body.customer_id)
    _check_contact(company, body.customer)
    content = DraftContent(
        body.customer_id, body.customer, draft.shipping_address, draft.currency, draft.notes, draft.tags
    )
    return await queries.insert_draft(tx, company.id, DRAFT_ORDER_ID.new(), content, draft.priced)


async def update(tx: Tx, company: Company, id: str, patch: DraftOrderPatch) -> DraftOrder:
    stored = await _lock_open(tx, company, id)
    lines = [] if patch.line_items is UNSET else [line for line in patch.line_items if line.id is None]
    variants = await _list_variants(tx, company, lines)
    content = _build_content(stored, patch)
    if content.customer_id != stored.customer_id:
        await _require_customer(tx, company, content.customer_id)
    _check_contact(company, patch.customer or None)
    changes = OrderPatch(**{name: getattr(patch, name) for name in EDITED})
    priced = edit_priced(read_priced(stored), changes, company, stored.currency, variants)
    return await queries.update_draft(tx, company.id, id, content, priced)


async def complete(tx: Tx, company: Company, id: str, body: DraftCompletion, *, actor: ChangeActor = SYSTEM) -> Order:
    """Places the order at the draft's prices, and takes its units from the stock."""
    stored = await _lock_open(tx, company, id)
    contact = None if stored.customer is None else _read_contact(stored.customer)
    draft = NewOrder(
        order_id=check_own_id(body.order_id),
        currency=stored.currency,
        notes=stored.notes,
        priced=read_priced(stored),
        shipping_address=None if stored.shipping_address is None else bytes(stored.shipping_address),
        tags=stored.tags,
    )
    customer = await orders.find_or_create_customer(tx, company, stored.customer_id, contact)
    order = await orders.place_new(tx, company, draft, customer, actor=actor)
    await queries.complete_draft(tx, company.id, id, order.id)
    return order


async def delete(tx: Tx, company: Company, id: str) -> None:
    await _lock_open(tx, company, id)
    await queries.delete_draft(tx, company.id, id)


async def _lock_open(tx: Tx, company: Company, id: str) -> DraftOrder:
    stored = await queries.lock_draft(tx, company.id, id)
    if stored.status == "completed":
        raise DraftCompleted(f"The draft is completed: it became the order {stored.order_id}. Change that order.")
    return stored


async def _list_variants(tx: Tx, company: Company, lines: Sequence[LineItemIn]) -> dict[str, VariantOnSale]:
    return await stock.list_on_sale(tx, company, list_variant_ids(lines))


async def _require_customer(tx: Tx, company: Company, id: str | None) -> None:
    if id is not None and await customers.find_share_locked(tx, company, id) is None:
        raise Invalid.field("customerId", "is not the id of a customer")


def _check_contact(company: Company, contact: OrderCustomerIn | None) -> None:
    """Raises Invalid now, and not when the draft is completed."""
    if contact is not None:
        orders.check_contact(company, contact)


def _build_content(stored: DraftOrder, patch: DraftOrderPatch) -> DraftContent:
    if patch.customer_id and patch.customer:
        raise Invalid.field("customer", "cannot be combined with customerId; send one of them")
    customer_id = stored.customer_id if patch.customer_id is UNSET else patch.customer_id
    contact = None if stored.customer is None else _read_contact(stored.customer)
    contact = contact if patch.customer is UNSET else patch.customer
    address = None if stored.shipping_address is None else bytes(stored.shipping_address)
    if patch.shipping_address is not UNSET:
        address = build_address(patch.shipping_address, stored.shipping_address)
    return DraftContent(
        customer_id=None if patch.customer else customer_id,
        customer=None if patch.customer_id else contact,
        shipping_address=address,
        currency=stored.currency,
        notes=stored.notes if patch.notes is UNSET else patch.notes,
        tags=stored.tags if patch.tags is UNSET else build_tags(patch.tags),
    )
